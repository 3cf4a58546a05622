"""EVALUATE without a model: predictions in the rows of a query are compared with the truth beside them.

It runs in this process, block by block, also where jobs run on Kubernetes.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from edl import data
from edl.data.cells import format_count
from edl.evaluation.predicted_rows import Found, measure
from edl.jobs.job_folder import JobFolder
from edl.run.result_tables import store
from edl.spec.measurement import Measurement
from sqlflow_edl.analysis import measurement
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.errors.spans import shift_spans
from sqlflow_edl.reports.plan import Row
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.session.observer import Observer, report
from sqlflow_edl.syntax.ast import Statement

SPEC = "measurement.json"  # in the folder of a job


def run(compiler: Compiler, statement: Statement, job: JobFolder, observer: Observer) -> Result:
    """Compare the pinned rows; store the figures if the statement names a table."""
    planned, source = compiler.measurement(statement), compiler.source
    (job.path / SPEC).write_bytes(msgspec.json.encode(planned))
    observer.doing("pinning the rows")
    with shift_spans(statement.select_span):
        pinned = source.pin(statement.select, job.rows, seed=0, shuffle=False)
    observer.doing(f"comparing {format_count(pinned.rows)}")
    with shift_spans(statement.select_span):
        measured = measure(planned, data.open_reader(pinned, job.rows))
    notes, warnings = (
        measurement.measurement_notes(planned, measured.label),
        _warnings(planned, measured, pinned.rows),
    )
    report(observer, notes, warnings)
    message = f"{planned.kind} of {format_count(measured.rows)}"
    if planned.report == "roc_curve" and measured.label is not None and measured.label.has_classes:
        message += f"; the positive class is {measured.label.classes[1]}"
    if not planned.target:
        reader = pa.Table.from_batches([measured.table]).to_reader()
        return Result(
            statement, message, notes, warnings, measured.figures, reader=reader, view=planned.report
        )
    observer.doing(f"writing {planned.target}")
    [rows] = store(source, job.id, {planned.target: lambda: [measured.table]})
    message += f"; wrote {format_count(rows)} to {planned.target}"
    return Result(statement, message, notes, warnings, measured.figures, rows=rows)


def _warnings(planned: Measurement, measured: Found, rows: int) -> tuple[str, ...]:
    columns = " or ".join(filter(None, (planned.prediction, *planned.probabilities)))
    warnings = []
    if measured.unpredicted:
        what = (
            "NULL" if planned.kind == "classification" and not planned.probabilities else "NULL or not finite"
        )
        some = f"{measured.unpredicted:,} of {format_count(rows)}"
        warnings.append(f"{columns} is {what} in {some}, which the figures leave out")
    if not measured.overlap:
        warnings.append(
            f"no value of {planned.prediction} is one of {planned.label}: are they the same classes?"
        )
    if measured.uneven:
        warnings.append(f"the probabilities of {format_count(measured.uneven)} do not add up to 1")
    return tuple(warnings)


def rows_of_plan(compiler: Compiler, statement: Statement) -> list[Row]:
    """Return the plan: the columns that would be compared, and how."""
    planned = compiler.measurement(statement)
    why = "written" if statement.attribute("evaluate.kind") else "by the types of the columns"
    rows = [
        ("statement", title(statement, compiler.dialect), "would be measured in this process", ""),
        ("kind", "", planned.kind, why),
        ("label", planned.label, "the true values", ""),
    ]
    if planned.prediction:
        rows.append(("prediction", planned.prediction, "", "compared with them"))
    classes = planned.classes or ("the second of two classes",)
    rows += (
        ("probability", name, str(of), "") for name, of in zip(planned.probabilities, classes, strict=False)
    )
    if planned.weight:
        rows.append(("weight", planned.weight, "", ""))
    rows += (("metrics", name, "", "") for name in planned.metrics)
    rows.append(("report", "", planned.report, ""))
    rows += (
        ("note", str(place), note, "") for place, note in enumerate(measurement.measurement_notes(planned), 1)
    )
    where = f"a table in {compiler.source.url}" if planned.target else "a result set"
    return [*rows, ("result", planned.target, where, "" if planned.target else "no table is named")]
