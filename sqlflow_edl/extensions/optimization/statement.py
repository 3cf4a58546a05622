"""Statements MAXIMIZE and MINIMIZE: rows to a problem, and its solution to a table or a result set.

The problem is solved in this process, also where jobs run on Kubernetes.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from edl import data
from edl.data.cells import format_count
from edl.extensions.optimization import problem, solver
from edl.extensions.optimization.spec import Domain, Optimization
from edl.jobs.job_folder import JobFolder
from edl.run.result_tables import store
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.errors.spans import set_missing_spans, shift_spans
from sqlflow_edl.extensions.optimization import plan
from sqlflow_edl.reports.plan import Row
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import number
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.session.observer import Observer, report
from sqlflow_edl.syntax.ast import Statement

SPEC = "optimization.json"  # in the folder of a job


def check(statement: Statement) -> None:
    """Check the statement without the columns of its query. Raises all errors together."""
    plan.check(statement)


def check_of_place(compiler: Compiler, statement: Statement) -> None:
    """Check the statement. Its problem is solved in this process, wherever jobs run."""
    check(statement)


def check_columns(compiler: Compiler, statement: Statement) -> Optimization:
    """Return the problem of a statement. Raises all its errors together."""
    if not statement.select:
        check(statement)
    schema, query = compiler.describe(statement)
    optimization = plan.plan(statement, query, schema)
    compiler.check_target(statement, optimization.target)
    return optimization


def run(compiler: Compiler, statement: Statement, job: JobFolder, observer: Observer) -> Result:
    """Solve the problem over pinned rows; store its solution if the statement names a table."""
    spec, source = check_columns(compiler, statement), compiler.source
    (job.path / SPEC).write_bytes(msgspec.json.encode(spec))
    notes = plan.optimization_notes(statement)
    report(observer, notes)
    observer.doing("pinning the rows")
    with shift_spans(statement.select_span):
        pinned = source.pin(statement.select, job.rows, seed=0, shuffle=False)
    batches = data.open_reader(pinned, job.rows).read(0, pinned.rows, spec.needed_columns)
    with set_missing_spans(statement.objective.span if statement.objective else None):
        built = problem.build(spec, _table(batches, compiler, spec))
        observer.doing(f"solving for {format_count(len(built.cost), 'variable')}")
        solution = solver.solve(built)
    table = solver.answer(built, solution)
    kind = "optimal" if solution.optimal else "best found in the time limit"
    message = f"the {kind} value of the objective is {number(solution.objective)}"
    if not spec.target:
        return Result(statement, message, notes, reader=table.to_reader(), computed=(spec.value,))
    observer.doing(f"writing {spec.target}")
    [rows] = store(source, job.id, {spec.target: table.to_batches})
    return Result(statement, f"{message}; wrote {format_count(rows)} to {spec.target}", notes, rows=rows)


def rows_of_plan(compiler: Compiler, statement: Statement) -> list[Row]:
    """Return the plan: numbers of variables and constraints, from a look at the rows."""
    spec = check_columns(compiler, statement)
    with shift_spans(statement.select_span):
        reader = compiler.source.stream(statement.select)
        rows = reader.read_all().select(list(spec.needed_columns))
    with set_missing_spans(statement.objective.span if statement.objective else None):
        built = problem.build(spec, rows)
    into = f"into {spec.target}" if spec.target else "as a result set"
    values = f"{spec.domain.name}: {_values(spec.domain)}"
    keys = ", ".join(spec.keys)
    return [
        ("statement", title(statement, compiler.dialect), f"would be solved by HiGHS {into}", ""),
        (
            "problem",
            "variables",
            f"{len(built.cost):,}",
            f"{spec.variable} of each row, named by {keys}; {values}",
        ),
        ("problem", "constraints", f"{built.constraints:,}", ""),
        *(
            (
                "constraint",
                block.condition.text,
                f"{block.count:,}",
                _describe_repetition(block.condition.per_group, block.condition.group),
            )
            for block in built.blocks
        ),
    ]


def _describe_repetition(per_group: bool, group: str) -> str:
    if not per_group:
        return "one for each row"
    return f"one for each {group}" if group else "over all rows"


def _values(domain: Domain) -> str:
    kind = "whole numbers" if domain.whole else "numbers"
    lower = "" if domain.lower is None else f" from {domain.lower:g}"
    upper = "" if domain.upper is None else f" up to {domain.upper:g}"
    return kind + lower + upper


def _table(batches: object, compiler: Compiler, spec: Optimization) -> pa.Table:
    schema = compiler.source.schema(spec.query.select)
    fields = pa.schema([schema.field(name) for name in spec.needed_columns])
    batch_list = list(batches)  # type: ignore[call-overload]
    return pa.Table.from_batches(batch_list) if batch_list else fields.empty_table()
