"""EXPLAIN and --dry-run: effects of a statement, found without executing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from edl.data.source import RowEstimate
from edl.errors import SourceError, SQLFlowError
from edl.extension_loader import load
from edl.models.registry.records import split_reference
from edl.sources.pinning_cost import pinning_cost
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.errors.spans import shift_spans
from sqlflow_edl.reports import models, plan, table, text
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session import extended_statements
from sqlflow_edl.session.activation import current_version, find_comparison
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.session.extended_statements import phase_of_extensions
from sqlflow_edl.session.predictions import rewrite_refused, used_statements
from sqlflow_edl.session.segments import segment_columns
from sqlflow_edl.syntax import Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.kinds import Kind
from sqlflow_edl.syntax.predict_calls import calls_predict, predict_calls
from sqlflow_edl.syntax.queries import objection

if TYPE_CHECKING:
    import pyarrow as pa


def explain(compiler: Compiler, statement: Statement, *, syntax: bool = True) -> Result:
    """Return the plan as a result set: section, name, value, reason. syntax: check it by the database's parser.

    Raises SQLFlowError for the errors that `execute` would find before it runs.
    """
    if syntax:
        compiler.check_syntax(statement)
    if present := models.find_present(compiler.registry, statement):
        rows = [("statement", title(statement, compiler.dialect), f"nothing, as there is {present}", "")]
    else:
        rows = PLANNERS[statement.kind](compiler, statement)
        if columns := segment_columns(statement):
            rows.append(
                (
                    "segments",
                    ", ".join(map(str, columns)),
                    "a row for each combination of values",
                    plan.WRITTEN,
                )
            )
    return Result(statement, reader=table.texts(plan.COLUMNS, rows), view="sections")


def _train(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    planned = compiler.plan(statement)
    compiler.check_rights(statement)
    rows = _with_pinning(plan.training(planned), compiler, planned.read, shuffled=planned.plan.shuffle)
    return rows + _activation_rows(compiler, planned)


def _activation_rows(compiler: Compiler, planned: plan.Planned) -> list[plan.Row]:
    """Describe the condition under which the new version becomes the current one."""
    if find_comparison(planned.plan) is None:
        return []
    current = current_version(compiler.registry, str(planned.plan.statement.into[0]))
    rival = f"only if it is at least as good as {current.reference}" if current else "the first version"
    return [("version", "current", rival, plan.WRITTEN)]


def _use(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    append = statement.append is not None
    rows = plan.use(compiler.job_spec(statement), compiler.source.url, append=append)
    return _with_pinning(rows, compiler, _estimate(compiler, statement))


def _measure(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    from sqlflow_edl.session import measuring

    rows = measuring.rows_of_plan(compiler, statement)
    return _with_pinning(rows, compiler, _estimate(compiler, statement))


def _plan_of_extension(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    rows = phase_of_extensions("rows_of_plan")[statement.kind](compiler, statement)
    return _with_pinning(rows, compiler, _estimate(compiler, statement))


def _estimate(compiler: Compiler, statement: Statement) -> RowEstimate | None:
    """Estimate the rows of the statement's query. A plan does not fail where that fails, and does not wait for it."""
    if compiler.only_schema or not statement.select:
        return None
    with suppress(SQLFlowError):
        return compiler.source.estimate_rows(statement.select)
    return None


def _with_pinning(
    rows: list[plan.Row], compiler: Compiler, estimate: RowEstimate | None, *, shuffled: bool = False
) -> list[plan.Row]:
    """Add what is done with the rows before the first step, and what it costs, to the section of the rows."""
    how = compiler.source.how_rows_are_kept()
    if estimate is None and not how:
        return rows
    cost = ""
    if estimate is not None:
        costs = pinning_cost(estimate, compiler.source.pinning_rates(), shuffled=shuffled)
        cost = text.pinned_rows(estimate, costs)
    end = next((at for at in range(len(rows), 0, -1) if rows[at - 1][0] == "rows"), len(rows))
    pinned = ("rows", "pinned", cost or how, how if cost else "")
    return [*rows[:end], pinned, *rows[end:]]


def _import(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    return list(load("sqlflow_edl.extensions.imported", "rows_of_plan")(statement))


def _drop(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    reference = str(statement.model)
    name, selector = split_reference(reference)
    versions = [
        version
        for version in compiler.registry.list()
        if version.name == name and version.is_selected(selector)
    ]
    if not versions and not statement.if_exists:
        compiler.registry.look_up(reference)  # says what there is instead
    gone = ", ".join(version.reference for version in versions) or "nothing"
    return [("statement", title(statement, compiler.dialect), f"{gone} would be dropped", "")]


def _set(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    version = compiler.registry.find(str(statement.model))
    what = "is current already" if version.current else "would be current"
    return [("statement", title(statement, compiler.dialect), f"{version.reference} {what}", "")]


def _set_tag(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    version = compiler.registry.find(str(statement.model))
    what = f"{version.name}@{statement.tag} would be {version.reference}"
    return [("statement", title(statement, compiler.dialect), what, "")]


def _rename(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    registry, name = compiler.registry, str(statement.model)
    if statement.if_exists and not registry.has(name):
        what = f"there is no model {name}; nothing would be renamed"
    else:
        count = len([version for version in registry.list() if version.name == registry.look_up(name).name])
        what = f"would be named {statement.into[0]}, {count:,} version{'' if count == 1 else 's'}"
    return [("statement", title(statement, compiler.dialect), what, "")]


def _set_facts(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    registry, name = compiler.registry, str(statement.model)
    if statement.if_exists and not registry.has(name):
        what = f"there is no model {name}; nothing would be changed"
    else:
        names = ", ".join(option.key for option in statement.attributes)
        what = f"{registry.look_up(name).name} would keep its {names}"
    return [("statement", title(statement, compiler.dialect), what, "")]


def _drop_tag(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    version = compiler.registry.look_up(f"{statement.model}@{statement.tag}")
    what = f"{version.reference} would lose the tag {statement.tag}"
    return [("statement", title(statement, compiler.dialect), what, "")]


def _sql(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    """Plan ordinary SQL: describe the columns of a query, and pass other SQL through.

    Queries are described because most mistakes are in queries; other SQL cannot be tried without executing
    it.
    """
    if calls_predict(statement.text) and predict_calls(statement.text, compiler.dialect):
        done = "is passed to the database, with predictions in it"
        rows = [("statement", title(statement, compiler.dialect), done, "")]
        used = used_statements(statement, compiler.dialect)
        return [
            *rows,
            *(
                row
                for used_statement in used
                for row in PLANNERS[used_statement.kind](compiler, used_statement)
            ),
        ]
    done, columns = "is passed to the database unchanged", list[plan.Row]()
    if objection(statement.text, dialect_named(compiler.dialect)) is None:
        schema, is_rewritten = _describe_query(compiler, statement)
        columns = [("column", field.name, str(field.type), "") for field in schema]
        if is_rewritten:
            done = "is passed to the database, with what BigQuery ML alone has as ordinary SQL"
    return [("statement", title(statement, compiler.dialect), done, ""), *columns]


def _describe_query(compiler: Compiler, statement: Statement) -> tuple[pa.Schema, bool]:
    """Return the columns of a query, and True if the database would get it rewritten."""
    text, source = statement.text, compiler.source
    try:
        with shift_spans(statement.span):
            return source.schema(text), False
    except SourceError as error:
        rewritten = rewrite_refused(statement, text, compiler.dialect, compiler.registry)
        if rewritten == text:
            raise statement.refused or error from None
    return source.schema(rewritten), True


def _export(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    version = compiler.registry.find(str(statement.model))
    return [
        ("statement", title(statement, compiler.dialect), f"would write {version.reference} to a file", "")
    ]


def _reads_models(compiler: Compiler, statement: Statement) -> list[plan.Row]:
    return [("statement", title(statement, compiler.dialect), "reads the stored models", "")]


PLANNERS: Mapping[Kind, Callable[[Compiler, Statement], list[plan.Row]]] = {
    "train": _train,
    "auto": _train,
    "predict": _use,
    "evaluate": _use,
    "explain": _use,
    "measure": _measure,
    **dict.fromkeys(extended_statements.MODULES, _plan_of_extension),
    **dict.fromkeys(models.HANDLERS, _reads_models),
    "import_model": _import,
    "export_model": _export,
    "drop_model": _drop,
    "set_model": _set,
    "set_tag": _set_tag,
    "rename_model": _rename,
    "set_facts": _set_facts,
    "drop_tag": _drop_tag,
    "sql": _sql,
}
