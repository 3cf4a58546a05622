"""Importance of the columns of a model, as its search measured it."""

from __future__ import annotations

from typing import Literal

import msgspec


class Importances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mean absolute Shapley value of each column over some held-out rows, the largest first.

    `columns` are in the unit of the label, or of the probability of a class. `rows` of the kind `measured_on` were
    explained.
    """

    columns: dict[str, float]
    rows: int
    measured_on: Literal["test", "validation"]

    @property
    def shares(self) -> dict[str, float]:
        """Share of each column in their sum."""
        total = sum(self.columns.values()) or 1.0
        return {name: value / total for name, value in self.columns.items()}


def mean_importances(parts: list[tuple[float, dict[str, float]]]) -> dict[str, float]:
    """Return the weighted mean of the importances of several models, the largest first.

    A column that a model does not read has none there.
    """
    total = sum(weight for weight, _ in parts)
    means: dict[str, float] = {}
    for weight, values in parts:
        for name, value in values.items():
            means[name] = means.get(name, 0.0) + value * weight / total
    return dict(sorted(means.items(), key=lambda item: -item[1]))
