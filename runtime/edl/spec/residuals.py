"""Errors of a model on its validation rows, from which PREDICT takes its intervals.

The intervals are split-conformal (Lei et al. 2018, "Distribution-free predictive inference for regression"): with a
probability of at least `coverage`, the error of a new row is at most the error of rank ceil((n + 1) * coverage) among
n validation rows, if all rows come from one distribution and the validation rows did not shape the model. Where they
choose the best epoch they do shape it, slightly.
"""

from __future__ import annotations

import math

import msgspec

_ROUNDING = 1e-9  # of the product of a whole number and a coverage


class MeansOfGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """Mean prediction and mean label of a group of rows with adjacent predictions, and the weight of the rows."""

    predicted: float
    actual: float
    weight: float


class Residuals(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag="residuals",
    tag_field="kind",
):
    """Absolute errors of a model on `rows` validation rows.

    Of m `quantiles`, number i (counted from 1) is the smallest error that i / m of the rows do not exceed. Up to 1,000
    rows without weights, these are the rows' errors in ascending order. `means` has groups of rows in the
    order of their predictions; models of earlier versions have none.
    """

    rows: int
    quantiles: tuple[float, ...]
    means: tuple[MeansOfGroup, ...] = ()

    def margin(self, coverage: float) -> float | None:
        """Return half the width of the interval with that coverage, or None if there are too few rows for it."""
        rank = math.ceil((self.rows + 1) * coverage - _ROUNDING)
        if rank > self.rows:
            return None
        return self.quantiles[-(-rank * len(self.quantiles) // self.rows) - 1]

    @property
    def most_coverage(self) -> float:
        """Largest coverage for which there are enough rows, rounded down to three digits."""
        return math.floor(1000 * self.rows / (self.rows + 1)) / 1000
