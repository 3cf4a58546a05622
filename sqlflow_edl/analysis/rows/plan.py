"""Plan of the rows of a training or a search: the part of their plans that says which rows are read, and what for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edl import spec
from edl.errors import Span
from sqlflow_edl.analysis import labels
from sqlflow_edl.analysis.rows import increments
from sqlflow_edl.analysis.rows.bad_rows import BadRows
from sqlflow_edl.analysis.rows.splits import Splitting
from sqlflow_edl.analysis.rows.validation import HeldOut
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings


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
