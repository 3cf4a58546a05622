"""Form of one row on the page of a model: a field for each column that it reads, with a usual value and a range."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyarrow import types

from edl.data.arrow_types import schema_of
from edl.errors import SQLFlowError
from edl.models.archive import Archive
from edl.models.fitting import ColumnSummary
from sqlflow_edl.analysis.inference.prediction import prediction_in_memory
from sqlflow_edl.extensions.serving.rows import from_records

SHOWN = 12  # fields before the others, which are folded
MOST_FIELDS = 500
STEPS = 100  # of a slider
BEYOND = 0.25  # of the range between the outer deciles, by which a slider goes beyond them

Kind = Literal["number", "choice", "date", "datetime-local", "text"]


@dataclass(frozen=True)
class FormField:
    """Field of a column. name: in the form. least, most, step: of a slider; empty without one. options: all values of a
    choice, frequent ones of a text.
    """

    name: str
    column: str
    type: str
    kind: Kind
    value: str
    least: str = ""
    most: str = ""
    step: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictionForm:
    """Fields of a model, the most important first."""

    reference: str
    fields: Sequence[FormField]

    @property
    def shown_fields(self) -> Sequence[FormField]:
        return self.fields[:SHOWN]

    @property
    def folded_fields(self) -> Sequence[FormField]:
        return self.fields[SHOWN:]

    @property
    def values(self) -> dict[str, str]:
        return {field.name: field.value for field in self.fields}


def form_of(
    archive: Archive,
    reference: str,
    usual: Mapping[str, str],
    importances: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
) -> PredictionForm | None:
    """Return the form of a model; None if it predicts no rows by themselves, as forecasts, or has too many columns.

    usual: usual values of columns. importances: columns, the most important first. values: values of the fields.
    """
    spec = archive.spec
    if len(spec.columns) > MOST_FIELDS:
        return None
    try:
        prediction_in_memory(archive, reference)
    except SQLFlowError:
        return None
    summaries = archive.fitting.columns if archive.fitting is not None else {}
    places = {name: place for place, name in enumerate(importances)}
    fields = []
    for place, arrow in enumerate(_schema(archive)):
        name = f"c{place}"
        value = usual.get(arrow.name, "") if values is None else values.get(name, "")
        summary = summaries.get(arrow.name)
        fields.append(_field(name, arrow, summary, value))
    fields.sort(key=lambda field: places.get(field.column, len(places)))
    return PredictionForm(reference, fields)


def read_row(archive: Archive, values: Mapping[str, str]) -> pa.RecordBatch:
    """Return the row that a form gives; empty fields are NULL. Raises SemanticError for a value of another kind."""
    schema = _schema(archive)
    row = {field.name: _value(values.get(f"c{place}", ""), field.type) for place, field in enumerate(schema)}
    return from_records([row], schema)


def _schema(archive: Archive) -> pa.Schema:
    fields = {field.name: field for field in archive.spec.query.schema}
    return schema_of(fields[name] for name in archive.spec.columns)


def _value(text: str, kind: pa.DataType) -> Any:
    text = text.strip()
    if not text:
        return None
    if types.is_boolean(kind):
        return {"TRUE": True, "FALSE": False}.get(text.upper(), text)
    if types.is_integer(kind) or types.is_floating(kind):
        return _number(text)
    if types.is_nested(kind):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _number(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


# Fields ------------------------------------------------------------------------------------------------------


def _field(name: str, arrow: pa.Field, summary: ColumnSummary | None, value: str) -> FormField:
    kind, type_text = arrow.type, str(arrow.type)
    if types.is_boolean(kind):
        return FormField(name, arrow.name, type_text, "choice", value, options=("TRUE", "FALSE"))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        least, most, step = (
            _range(summary, is_whole=types.is_integer(kind)) if summary is not None else ("", "", "")
        )
        return FormField(name, arrow.name, type_text, "number", value, least, most, step)
    if types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None):
        shown: Kind = "date" if types.is_date(kind) else "datetime-local"
        return FormField(
            name, arrow.name, type_text, shown, value.replace(" ", "T") if shown != "date" else value
        )
    frequent = tuple(str(frequent_value) for frequent_value, _ in summary.top) if summary is not None else ()
    if summary is not None and summary.distinct == len(frequent) and frequent:
        options = tuple(sorted(frequent))
        return FormField(name, arrow.name, type_text, "choice", value, options=options)
    return FormField(name, arrow.name, type_text, "text", value, options=frequent)


def _range(summary: ColumnSummary, *, is_whole: bool) -> tuple[str, str, str]:
    """Return the least and the largest value of a slider and its step: the deciles, and a little beyond."""
    least, most = summary.min, summary.max
    if least is None or most is None or not math.isfinite(most - least) or least >= most:
        return "", "", ""
    if summary.bins is not None and len(summary.bins.edges) > 1:
        edges = summary.bins.edges
        more = BEYOND * (edges[-1] - edges[0])
        least, most = max(least, edges[0] - more), min(most, edges[-1] + more)
    step = 10 ** math.floor(math.log10((most - least) / STEPS)) if most > least else 1.0
    step = max(step, 1.0) if is_whole else step
    least, most = math.floor(least / step) * step, math.ceil(most / step) * step
    return f"{least:.10g}", f"{most:.10g}", f"{step:.10g}"
