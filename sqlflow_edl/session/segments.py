"""EVALUATE by segments: the figures of the rows with each value of some columns.

    SELECT * FROM visits TO EVALUATE churn BY region, plan

The statement is evaluated as a whole, so that its notes tell of rows from the training; then the predictions of all
rows are measured segment by segment, like predictions from another system. Intervals have 95 % confidence and take the
rows as independent: Wilson's of an accuracy, Hanley and McNeil's (1982) of an AUC, the normal approximation of a mean
of errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.data.cells import format_count
from edl.data.names import unique_names
from edl.data.readers import BatchReader
from edl.errors import SemanticError, Span
from edl.evaluation.predicted_rows import Found, find_classes, measure
from edl.features.arrays import numbers
from edl.metrics.names import kind_of
from edl.spec import JobSpec
from edl.spec.measurement import Measurement
from sqlflow_edl.analysis.inference.evaluation import UNSEEN_ONLY, unseen_only
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings.uses import BY
from sqlflow_edl.errors.spans import set_missing_spans, shift_spans
from sqlflow_edl.reports.intervals import Interval, hanley_mcneil, mean_interval, wilson
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.syntax.ast import Attribute, Constant, ListValue, Name, Statement

MOST_SEGMENTS = 200
_ROWS = "row_count"
_OF_BOTH = ("threshold", "batch_size", "num_workers", "device")  # settings that PREDICT has, too


class Segments(NamedTuple):
    """Figures of each segment, a row each, the largest first. notes: with the new ones, which nobody has told yet."""

    table: pa.Table
    message: str
    notes: tuple[str, ...]
    new_notes: tuple[str, ...]


def evaluate_segments(
    compiler: Compiler,
    run: Callable[[Statement], Result],
    predict: Callable[[Statement], Result],
    statement: Statement,
) -> Segments:
    """Evaluate a statement with evaluate.by. run: runs a statement without it; predict: the same, without its notes.

    Raises SQLFlowError, with a place in the program's text where there is one.
    """
    as_whole = without_segments(statement)
    schema, _ = compiler.describe(as_whole)
    columns = _resolve_columns(statement, schema)
    if statement.kind == "measure":
        spec = compiler.measurement(as_whole)
        _check_report(statement, spec.report)
        whole = run(as_whole)
        with shift_spans(statement.select_span):
            rows = compiler.source.stream(statement.select).read_all()
    else:
        planned = compiler.job_spec(as_whole)
        _check_model(statement, planned)
        whole = run(as_whole)
        predicted = predict(make_prediction(statement, planned))
        spec, rows = make_measurement(statement, planned, predicted.computed), predicted.to_arrow()
    with set_missing_spans(statement.select_span):
        table, left_out, rows_left_out = measure_segments(spec, rows, columns)
    notes: tuple[str, ...] = ()
    if left_out:
        notes = (
            f"{format_count(left_out, 'smaller segment')} with {format_count(rows_left_out)} are left out",
        )
    message = f"{format_count(rows.num_rows)} in {format_count(table.num_rows + left_out, 'segment')}"
    return Segments(table, message, (*whole.notes, *notes), notes)


def segment_columns(statement: Statement) -> tuple[Name, ...]:
    """Return the columns of evaluate.by as written, none without it. Raises SemanticError if it lists no columns."""
    if statement.kind not in ("evaluate", "measure"):
        return ()
    attributes = [attribute for attribute in statement.attributes if attribute.key.casefold() == BY]
    if not attributes:
        return ()
    if len(attributes) > 1:
        raise SemanticError(f"{BY} is given twice", span=attributes[1].span, hint="keep one of them")
    value = attributes[0].value
    items = value.items if isinstance(value, ListValue) else (value,)
    names = tuple(name for name in map(_name_of, items) if name is not None)
    if not names or len(names) < len(items):
        raise SemanticError(
            f"{BY} is a column or a list of columns", span=value.span, hint=f"write {BY} = [region]"
        )
    return names


def _name_of(value: object) -> Name | None:
    if isinstance(value, Constant) and isinstance(value.value, str):
        return Name((value.value,), value.value, value.span)
    return value if isinstance(value, Name) else None


def without_segments(statement: Statement) -> Statement:
    """Return the statement without evaluate.by, and with its figures as a result set."""
    attributes = tuple(attribute for attribute in statement.attributes if attribute.key.casefold() != BY)
    return replace(statement, attributes=attributes, into=())


def _resolve_columns(statement: Statement, schema: Schema) -> tuple[str, ...]:
    """Return the columns by their names in the query, each once.

    Raises SemanticError for a column that the query lacks or that holds lists, and for rows that are left out.
    """
    columns = []
    for name in segment_columns(statement):
        column = schema.resolve(name)
        if types.is_nested(schema.arrow.field(column).type):
            raise SemanticError(
                f"{column} has several values in a row, so it names no segment",
                span=name.span,
                hint="leave it out",
            )
        columns.append(column)
    if statement.kind == "evaluate" and (attribute := unseen_only(statement)) is not None:
        raise SemanticError(
            f"{BY} measures all rows of the query",
            span=attribute.written.span,
            hint=f"leave {UNSEEN_ONLY} out",
        )
    return tuple(dict.fromkeys(columns))


def _check_report(statement: Statement, name: str) -> None:
    if name != "figures":
        raise SemanticError(
            f"{BY} gives figures, and no {name}", span=_span(statement), hint="leave evaluate.report out"
        )


def _check_model(statement: Statement, planned: JobSpec) -> None:
    """Raise SemanticError for labels that have no segments, and programs that may have other figures."""
    _check_report(statement, planned.report)
    if planned.own is not None or planned.zoo is not None or not _is_measured(planned):
        raise SemanticError(
            f"{statement.model} predicts neither classes nor numbers, so its segments are not measured",
            span=_span(statement),
            hint=f"leave {BY} out, and filter the rows with WHERE",
        )


def _is_measured(planned: JobSpec) -> bool:
    try:
        return kind_of(planned.label) in ("binary", "multiclass", "regression")
    except SemanticError:
        return False


def _span(statement: Statement) -> Span:
    attribute = statement.attribute(BY)
    return attribute.span if attribute else statement.span


def make_prediction(statement: Statement, planned: JobSpec) -> Statement:
    """Return the PREDICT statement for the rows of an EVALUATE, with the probabilities of classes."""
    span = _span(statement)
    attributes = []
    for attribute in statement.attributes:
        name = attribute.key.casefold().removeprefix("evaluate.")
        if name in _OF_BOTH:
            attributes.append(replace(attribute, key=f"predict.{name}"))
    if planned.label.has_classes:
        attributes.append(Attribute("predict.probabilities", Constant(True, span), span))
    return replace(
        statement,
        kind="predict",
        using=statement.model,
        model=None,
        labels=(),
        into=(),
        prefix="predicted_",  # else the prediction would stand in the place of the label
        attributes=tuple(attributes),
    )


def make_measurement(statement: Statement, planned: JobSpec, computed: Sequence[str]) -> Measurement:
    """Return the comparison of a model's predictions with the label. computed: columns that PREDICT has added."""
    label = planned.label
    classes = tuple(label.classes) if label.has_classes else ()
    return Measurement(
        statement.text,
        planned.query,
        "classification" if classes else "regression",
        label.column,
        computed[0],
        tuple(computed[2 : 2 + len(classes)]),
        classes,
        planned.weights.column if planned.weights else "",
        tuple(planned.metrics),
    )


def measure_segments(spec: Measurement, rows: pa.Table, columns: Sequence[str]) -> tuple[pa.Table, int, int]:
    """Measure the rows of each combination of values, NULL included.

    Return the figures, the number of segments beyond MOST_SEGMENTS, and the number of their rows. Raises the errors of
    `measure`.
    """
    needed = rows.select(list(dict.fromkeys([*spec.columns, *columns]))).combine_chunks()
    if spec.kind == "classification" and not spec.classes:
        # The classes of all rows: a segment may have one of them only.
        classes, _ = find_classes(spec, BatchReader(_batch(needed)))
        spec = msgspec.structs.replace(spec, classes=classes)
    codes = _codes(needed.select(list(columns)))
    order = np.argsort(codes, kind="stable")
    batch = _batch(needed.take(pa.array(order)))
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
    sizes = np.diff(np.r_[starts, len(codes)])
    largest = np.argsort(-sizes, kind="stable")
    shown, left_out = largest[:MOST_SEGMENTS], largest[MOST_SEGMENTS:]
    results = [_measure_segment(spec, batch.slice(int(starts[at]), int(sizes[at]))) for at in shown]
    names = list(dict.fromkeys(name for figures in results for name in figures))
    table = pa.Table.from_batches([batch.select(list(columns))]).take(pa.array(starts[shown]))
    unique = unique_names([_ROWS, *names], taken=columns)
    table = table.append_column(unique[0], pa.array(sizes[shown]))
    for name, shown_name in zip(names, unique[1:], strict=True):
        table = table.append_column(
            shown_name, pa.array([figures.get(name) for figures in results], pa.float64())
        )
    return table, len(left_out), int(sizes[left_out].sum())


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def _codes(keys: pa.Table) -> npt.NDArray[np.int64]:
    """Return a number for each combination of values, (n,)."""
    codes = np.zeros(keys.num_rows, np.int64)
    for column in _batch(keys).columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        part = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * (int(part.max(initial=0)) + 1) + part, return_inverse=True)[1]
    return codes


def _measure_segment(spec: Measurement, rows: pa.RecordBatch) -> dict[str, float | None]:
    """Return the figures of one segment, each with its interval behind it; None where they are not defined."""
    predicted = rows.column(spec.prediction) if spec.prediction else rows.column(spec.probabilities[0])
    if predicted.null_count == len(rows):
        return {}
    measured = measure(spec, BatchReader(rows))
    figures = measured.figures
    ends = {} if spec.weight else _intervals(spec, rows, measured)
    described: dict[str, float | None] = {}
    for name, value in figures.items():
        is_defined = value is not None and math.isfinite(value)
        described[name] = value if is_defined else None
        if name in ends and is_defined:
            described |= {f"{name}_low": ends[name][0], f"{name}_high": ends[name][1]}
    return described


def _intervals(spec: Measurement, rows: pa.RecordBatch, measured: Found) -> Mapping[str, Interval]:
    """Return the intervals of the figures that have one; none of a figure without any error."""
    ends: dict[str, Interval] = {}
    if spec.kind == "regression":
        true, predicted = (numbers(rows.column(name), name) for name in (spec.label, spec.prediction))
        errors = np.abs(true - predicted)[np.isfinite(predicted)]
        low, high = mean_interval(np.square(errors))
        ends = {"mae": mean_interval(errors), "mse": (low, high), "rmse": (math.sqrt(low), math.sqrt(high))}
    if (accuracy := measured.figures.get("accuracy")) is not None:
        ends["accuracy"] = wilson(accuracy, measured.rows)
    auc = measured.figures.get("auc")
    if auc is not None and len(spec.classes) == 2:
        inside = pc.sum(pc.equal(rows.column(spec.label), pa.scalar(spec.classes[1]))).as_py() or 0
        if 0 < inside < measured.rows:
            ends["auc"] = hanley_mcneil(auc, inside, measured.rows - inside)
    return {name: interval for name, interval in ends.items() if interval[0] < interval[1]}
