"""Plan of the rows of a training or a search: the part of their plans that says which rows are read, and what for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError
from sqlflow_edl.analysis import forecasts, labels, several_labels
from sqlflow_edl.analysis.rows import bad_rows, increments, row_groups, row_weights, splits
from sqlflow_edl.analysis.rows.bad_rows import BadRows
from sqlflow_edl.analysis.rows.splits import Splitting
from sqlflow_edl.analysis.rows.validation import HeldOut, held_out_rows
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings


@dataclass(frozen=True, slots=True)
class RowParts:
    """Parts of the columns in the rows of a training, and its validation rows.

    labels: with their places; none for models without a label and after an error. growing: the column that tells new
    rows. group: of a ranking. marker: the column that marks rows for the model. Those are empty if there is none.
    """

    labels: Mapping[str, Span]
    weight: str
    growing: str
    group: str
    held_out: HeldOut
    forecast: spec.Forecast | None
    splitting: Splitting
    marker: str = ""

    @property
    def label(self) -> str:
        return next(iter(self.labels), "")

    @property
    def reserved_columns(self) -> dict[str, str]:
        """Columns that are no features, with the part that they have."""
        reserved = {
            self.weight: "the weight of the rows",
            self.label: "the label",
            self.growing: "what tells new rows",
        }
        reserved[self.splitting.mark] = "what marks the validation rows"
        reserved[self.marker] = "what marks rows for the start of the model"
        return reserved | dict.fromkeys(self.labels, "a label" if len(self.labels) > 1 else "the label")

    @property
    def groups(self) -> dict[str, str]:
        """Columns of groups, with the reason to leave them out."""
        return {self.splitting.group: splits.ONE_SIDE, self.group: "a ranking is within them"}


def plan_rows(
    statement: ast.Statement, settings: TrainSettings, schema: Schema, errors: list[SQLFlowError]
) -> RowParts:
    """Return the parts of the columns in the rows, and the validation rows, as they are written; errors are added."""
    labels_here = _labels(statement, settings, schema, errors)
    label = next(iter(labels_here), "")
    weight = row_weights.column(settings, schema, label, errors)
    bad_rows.check(settings, schema, label, errors)
    growing = increments.column(settings, schema, {*labels_here, weight}, errors)
    held_out = held_out_rows(
        statement,
        settings.resolved,
        errors,
        none=settings.only_fits,
        usual=settings.choice.example.usual_fraction,
    )
    group = row_groups.column(settings, schema, label, statement, held_out, errors)
    forecast = forecasts.read_forecast(settings, schema, label, statement, errors)
    splitting = Splitting()
    if not (forecast or settings.only_fits):
        splitting = splits.choose(settings, schema, label, held_out, errors, group)
    marker = ""
    if settings.choice.example.marked_rows.attribute:
        marker = _marker(settings, schema, {*labels_here, weight, growing}, errors)
    return RowParts(labels_here, weight, growing, group, held_out, forecast, splitting, marker)


def _labels(
    statement: ast.Statement, settings: TrainSettings, schema: Schema, errors: list[SQLFlowError]
) -> dict[str, Span]:
    """Return the columns of the labels with their places; none for models without a label and after an error."""
    spans = labels.label_spans(statement, settings.model, schema, errors)
    for column, span in spans.items():
        if error := labels.check_type(schema, column, settings.model):
            error.span = error.span or span
            if error.advice is not None and statement.model is not None:
                error.advice.span = statement.model.span
            errors.append(error)
    several_labels.check(statement, settings, spans, errors)
    return spans


def _marker(
    settings: TrainSettings, schema: Schema, others: Collection[str], errors: list[SQLFlowError]
) -> str:
    """Return the column that marks rows for the model, empty without one; add an error if it is unusable."""
    attribute = settings.choice.example.marked_rows.attribute
    if settings.get(attribute) is None:
        return ""
    name, error = settings.column(attribute, schema, others, "has another part; it cannot mark rows too")
    if error is None and schema.type(name) not in (ColumnType.BOOLEAN, ColumnType.NUMBER):
        wrong = f"{name} is {schema.type(name).words}, and what marks rows is a boolean, or 0 and 1"
        error = SemanticError(wrong, span=settings.span(attribute))
    errors += [error] if error else []
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """Rows of a checked TRAIN statement, the parts of their columns, and the attributes that they depend on."""

    statement: ast.Statement
    query: spec.Query
    schema: Schema
    settings: TrainSettings
    label: str  # empty for clusters and anomalies, which have none
    weight: str  # the weight column; empty without one
    held_out: HeldOut
    splitting: Splitting
    forecast: spec.Forecast | None = None  # the series, without step and season before the rows are read
    computed: Mapping[str, spec.Computed] = field(default_factory=dict)  # columns of expressions by name
    validation: spec.Query | None = None  # the query of `held_out` with its columns
    more_labels: Mapping[str, Span] = field(default_factory=dict)  # behind the first, with their places
    # their distinct values in all rows
    more_classes: Mapping[str, labels.Values] = field(default_factory=dict)
    sample: str = ""  # condition in SQL of the rows of the query for which a search has time; empty: all
    notes: list[str] = field(default_factory=list)

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Columns of the labels; none without one."""
        return (self.label, *self.more_labels) if self.label else ()

    @property
    def bad_rows(self) -> BadRows:
        """Rows that are left out because they cannot be trained on."""
        columns = (*self.all_labels, self.weight) if self.weight else self.all_labels
        return BadRows.of(self.settings, self.schema, columns, self.computed.values())

    @property
    def conditions(self) -> tuple[str, ...]:
        """SQL conditions of the rows of the query that are read."""
        increment = self.query.increment
        added = increments.conditions(increment, self.schema) if increment is not None else ()
        return (*added, *self.bad_rows.conditions, *filter(None, [self.sample]))

    def has_classes(self, classes: labels.Values) -> bool:
        """Return True if the label has classes. classes: its distinct values."""
        return labels.has_classes(self.settings, self.schema, self.label, classes)

    @property
    def seed(self) -> int:
        return int(self.settings.get("train.seed") or 0)  # type: ignore[arg-type]

    @property
    def shuffle(self) -> bool:
        return self.settings.get("train.shuffle") is not False and self.forecast is None
