"""Distribution of the absolute errors of a predicted number, in bounded space.

A state is (bits dropped, rows), then the distinct errors in ascending order with the weight of each, shape (2, m). The
errors are float32; as soon as there are more than 4,096, the lowest bits of all are dropped until they fit. Errors are
always rounded up, so that no interval is too narrow, by less than 1 % in all. The state does not depend on the order of
merging.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.metrics.base import Array, Metric, regression_rows, row_weights
from edl.metrics.states import Floats, State
from edl.spec import Residuals

MOST_QUANTILES = 1000

_MOST_ERRORS = 4096
_ROUNDING = 1e-9  # of sums of weights


class AbsoluteErrors(Metric):
    """Distribution of the absolute errors. The figure is their median.

    Scores of another shape than (n, 1) have no errors; an error that is not finite counts as infinite.
    """

    name = "absolute_errors"
    higher_is_better = False

    def quantiles(self, state: State) -> Residuals | None:
        """Return the quantiles of the errors; None if there are no rows, or some errors are infinite."""
        if not state or not state[0][1] or np.isinf(state[1][0, -1]):
            return None
        rows = int(state[0][1])
        errors, weights = state[1]
        below = np.cumsum(weights)
        count = min(rows, MOST_QUANTILES)
        shares = np.arange(1, count + 1) / count * below[-1]
        places = np.searchsorted(below, shares - _ROUNDING * below[-1])
        return Residuals(rows, tuple(errors[np.minimum(places, len(errors) - 1)].tolist()))

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        if labels.ndim != 2 or labels.shape[1] != 1 or scores.shape != labels.shape:
            return ()
        weight = row_weights(weights, len(labels))
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.abs(scores[:, 0].astype(np.float64) - labels[:, 0].astype(np.float64))
            rounded = _rounded_up(np.where(np.isfinite(errors), errors, np.inf))
        counts = weight > 0
        return _bound_state(0, float(counts.sum()), rounded[counts], weight[counts])

    def _merge(self, a: State, b: State) -> State:
        if len(a) != 2 or len(b) != 2:
            raise JobError("states of errors that cannot be merged")
        errors, weights = np.concatenate([a[1], b[1]], axis=1)
        dropped = int(max(a[0][0], b[0][0]))
        return _bound_state(dropped, a[0][1] + b[0][1], errors.astype(np.float32), weights)

    def _result(self, state: State) -> float:
        residuals = self.quantiles(state)
        return math.nan if residuals is None else residuals.quantiles[(len(residuals.quantiles) - 1) // 2]


class MedianAbsoluteError(AbsoluteErrors):
    """Median of the absolute errors, less than 1 % too large: the mean of the two in the middle, if there are two."""

    name = "median_absolute_error"

    def _result(self, state: State) -> float:
        if self.quantiles(state) is None:
            return math.nan
        errors, weights = state[1]
        below = np.cumsum(weights)
        half, rounding = below[-1] / 2, _ROUNDING * below[-1]
        lower, upper = np.searchsorted(below, [half - rounding, half + rounding])
        return float(errors[lower] + errors[min(upper, len(errors) - 1)]) / 2

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, predicted, _ = regression_rows(labels, scores, weights)
        return super()._measure(truth[:, np.newaxis], predicted[:, np.newaxis], weights)


def _rounded_up(values: Floats) -> npt.NDArray[np.float32]:
    rounded = values.astype(np.float32)
    above: npt.NDArray[np.float32] = np.nextafter(rounded, np.float32(np.inf))
    return np.where(rounded < values, above, rounded)


def _bound_state(dropped: int, rows: float, errors: npt.NDArray[np.float32], weights: Floats) -> State:
    """Return the state of errors that lose their `dropped` lowest bits, or more if that leaves too many.

    Dropping is nested, and what is too much for a part is so for the whole, so any order of merging ends alike.
    """
    errors, weights = _group_errors(round_up(errors, dropped), weights)
    while len(errors) > _MOST_ERRORS:
        dropped += 1
        errors, weights = _group_errors(round_up(errors, dropped), weights)
    return np.array([dropped, rows], dtype=np.float64), np.stack([errors.astype(np.float64), weights])


def round_up(errors: npt.NDArray[np.float32], dropped: int) -> npt.NDArray[np.float32]:
    """Round up to a multiple of 2^`dropped` of the last bits; infinity stays, as its mantissa is zero."""
    bits = errors.view(np.uint32) + np.uint32((1 << dropped) - 1)
    coarse: npt.NDArray[np.float32] = (bits >> np.uint32(dropped) << np.uint32(dropped)).view(np.float32)
    return coarse


def _group_errors(errors: npt.NDArray[np.float32], weights: Floats) -> tuple[npt.NDArray[np.float32], Floats]:
    distinct, positions = np.unique(errors, return_inverse=True)
    return distinct, np.bincount(positions, weights, len(distinct)).astype(np.float64)
