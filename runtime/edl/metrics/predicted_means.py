"""Mean labels of a predicted number by its size, in bounded space: predicted against actual.

A state is (bits dropped, 0), then the distinct predictions in ascending order with the sums of weights, of weighted
labels and of weighted predictions at each, shape (4, m). As soon as there are more than 512, the lowest bits of all
are dropped until they fit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.metrics.base import Array, Metric, ratio, row_weights
from edl.metrics.residuals import round_up
from edl.metrics.states import Floats, State
from edl.spec.residuals import MeansOfGroup

GROUPS = 20  # of rows, of about equal weight

_MOST_KEYS = 512
_DIGITS = 6  # significant ones


class PredictedMeans(Metric):
    """Mean labels by prediction. The figure is the mean prediction minus the mean label.

    Scores of another shape than (n, 1) have none; rows are left out if label or prediction is not finite.
    """

    name = "predicted_means"
    higher_is_better = False

    def groups(self, state: State) -> tuple[MeansOfGroup, ...]:
        """Return the means of groups of rows with adjacent predictions, in ascending order."""
        if not state or not state[1].size:
            return ()
        _, weights, labels, predictions = state[1]
        middle = np.cumsum(weights) - weights / 2
        group = np.minimum((middle / weights.sum() * GROUPS).astype(np.int64), GROUPS - 1)
        sums = [np.bincount(group, values, GROUPS) for values in (weights, labels, predictions)]
        return tuple(
            MeansOfGroup(_short(predicted / weight), _short(label / weight), _short(weight))
            for weight, label, predicted in zip(*sums, strict=True)
            if weight > 0
        )

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        if labels.ndim != 2 or labels.shape[1] != 1 or scores.shape != labels.shape:
            return ()
        truth, predicted = labels[:, 0].astype(np.float64), scores[:, 0].astype(np.float64)
        weight = row_weights(weights, len(labels))
        with np.errstate(over="ignore", invalid="ignore"):
            keys = predicted.astype(np.float32)
        used = np.isfinite(truth) & np.isfinite(keys) & (weight > 0)
        truth, predicted, weight = truth[used], predicted[used], weight[used]
        return _bound_state(0, keys[used], np.stack([weight, weight * truth, weight * predicted]))

    def _merge(self, a: State, b: State) -> State:
        if len(a) != 2 or len(b) != 2:
            raise JobError("states of predicted means that cannot be merged")
        keys, *sums = np.concatenate([a[1], b[1]], axis=1)
        return _bound_state(int(max(a[0][0], b[0][0])), keys.astype(np.float32), np.stack(sums))

    def _result(self, state: State) -> float:
        if not state:
            return float("nan")
        _, weights, labels, predictions = state[1]
        return ratio(float(predictions.sum() - labels.sum()), float(weights.sum()))


def _bound_state(dropped: int, keys: npt.NDArray[np.float32], sums: Floats) -> State:
    """Return the state of predictions that lose their `dropped` lowest bits, or more if that leaves too many."""
    keys, sums = _sum_by_key(_drop_bits(keys, dropped), sums)
    while len(keys) > _MOST_KEYS:
        dropped += 1
        keys, sums = _sum_by_key(_drop_bits(keys, dropped), sums)
    return np.array([dropped, 0], dtype=np.float64), np.vstack([keys.astype(np.float64), sums])


def _drop_bits(keys: npt.NDArray[np.float32], dropped: int) -> npt.NDArray[np.float32]:
    coarse_keys: npt.NDArray[np.float32] = np.copysign(round_up(np.abs(keys), dropped), keys)
    return coarse_keys


def _sum_by_key(keys: npt.NDArray[np.float32], sums: Floats) -> tuple[npt.NDArray[np.float32], Floats]:
    distinct, positions = np.unique(keys, return_inverse=True)
    return distinct, np.stack([np.bincount(positions, values, len(distinct)) for values in sums])


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
