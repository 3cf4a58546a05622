"""Measurement of predictions that stand in the rows of a query, beside the truth, whatever made them."""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.spec.job import Query, Report


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns to compare, and the figures wanted.

    `prediction` may be empty if there are `probabilities`: of the second of two classes, or of each of `classes`; empty
    `classes` means the classes of the rows. `metrics` are canonical names. `weight` is a column with the weight of each
    row.
    """

    statement: str
    query: Query
    kind: Literal["classification", "regression"]
    label: str
    prediction: str
    probabilities: tuple[str, ...]
    classes: tuple[str | bool | int, ...]
    weight: str
    metrics: tuple[str, ...]
    report: Report = "figures"
    threshold: float | None = None
    target: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the query that are read, each once."""
        read = (self.label, self.prediction, *self.probabilities, self.weight)
        return tuple(dict.fromkeys(filter(None, read)))
