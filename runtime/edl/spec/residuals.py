"""Errors of a model on its validation rows, from which PREDICT takes its intervals.

The intervals are split-conformal (Lei et al. 2018, "Distribution-free predictive inference for regression"): with a
probability of at least `coverage`, the error of a new row is at most the error of rank ceil((n + 1) * coverage) among
n validation rows, if all rows come from one distribution and the validation rows did not shape the model. Where they
choose the best epoch they do shape it, slightly.

Where the errors depend on the row, an interval is as wide as the row's errors are large: the errors are divided by a
relative width (locally weighted split-conformal, section 5.2 there), see `edl.evaluation.widths`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import msgspec

_ROUNDING = 1e-9  # of the product of a whole number and a coverage


class MeansOfGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """Mean prediction and mean label of a group of rows with adjacent predictions, and the weight of the rows."""

    predicted: float
    actual: float
    weight: float


class ColumnWidths(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, array_like=True
):
    """Logarithm of the factor by which a column widens the interval of a row.

    `column` is a column of the rows, or empty for the prediction. `logs` are at the ascending `places` of a
    number, with straight lines between them, or of each of the texts `values`. `otherwise` is for NULL, and for any
    other text.
    """

    column: str
    logs: tuple[float, ...]
    otherwise: float = 0.0
    places: tuple[float, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """True if there is a log for each place or text, and the places ascend."""
        ascends = all(low < high for low, high in itertools.pairwise(self.places))
        count = len(self.values) or len(self.places)
        return ascends and 0 < count == len(self.logs) and not (self.values and self.places)


class Widths(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Width of the interval of a row relative to the median row: the exponential of `base` and the sum of its logs.

    The sum is at least `least` and at most `most`, the limits of the rows that it was fitted to.
    """

    columns: tuple[ColumnWidths, ...]
    base: float
    least: float
    most: float

    def rename(self, renamed: Mapping[str, str]) -> Widths:
        """Return the widths over the columns of another query."""
        columns = (
            msgspec.structs.replace(term, column=renamed.get(term.column, term.column))
            for term in self.columns
        )
        return msgspec.structs.replace(self, columns=tuple(columns))


class ScaledErrors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Absolute errors of a model on `rows` validation rows, each divided by the relative width of its row.

    `quantiles` are as in `Residuals`.
    """

    rows: int
    quantiles: tuple[float, ...]
    widths: Widths

    @property
    def is_sound(self) -> bool:
        """True if no part contradicts another."""
        return 0 < len(self.quantiles) <= self.rows and all(term.is_sound for term in self.widths.columns)


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
    order of their predictions; models of earlier versions have none. Intervals of different widths follow from
    `scaled`; it is None where one width fits all rows, and in models of earlier versions.
    """

    rows: int
    quantiles: tuple[float, ...]
    means: tuple[MeansOfGroup, ...] = ()
    scaled: ScaledErrors | None = None

    def margin(self, coverage: float) -> float | None:
        """Return half the width of intervals of one width with that coverage, or None if there are too few rows."""
        return _find_quantile(self.rows, self.quantiles, coverage)

    def interval(self, coverage: float) -> tuple[float, Widths | None] | None:
        """Return half the width of the interval of the median row, and the relative widths if they differ.

        None if there are too few rows for that coverage.
        """
        if self.scaled is not None:
            margin = _find_quantile(self.scaled.rows, self.scaled.quantiles, coverage)
            if margin is not None:
                return margin, self.scaled.widths
        margin = self.margin(coverage)
        return None if margin is None else (margin, None)

    @property
    def most_coverage(self) -> float:
        """Largest coverage for which there are enough rows, rounded down to three digits."""
        return math.floor(1000 * self.rows / (self.rows + 1)) / 1000


def _find_quantile(rows: int, quantiles: tuple[float, ...], coverage: float) -> float | None:
    """Return the quantile that a new error exceeds with a probability of at most 1 - coverage."""
    rank = math.ceil((rows + 1) * coverage - _ROUNDING)
    return None if rank > rows else quantiles[-(-rank * len(quantiles) // rows) - 1]
