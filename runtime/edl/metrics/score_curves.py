"""Curves of scores for display: rows of a class and of the others by the probability of the class, in few points.

The curve of two classes comes from the state of AUC. The curve of each of several classes comes from a histogram of
log-odds, because a state of AUC for each would be large. A *curve* of arrays is as in `edl.metrics.auc`: keys in
ascending order, with the weights of rows of the class and of the others at each, shape (3, m).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edl.metrics.auc import AUC
from edl.metrics.base import Array, Metric, class_rows
from edl.metrics.states import Floats, State
from edl.spec.calibration import ScoreCurve

POINTS = 200  # of a curve, besides exact ones
BINS = 320
LARGEST_ODDS = 16.0  # log-odds of 1.1e-7, about where float32 ends
_STEP = 2 * LARGEST_ODDS / BINS
_DIGITS = 6  # significant ones of weights and probabilities


class ScoreHistogram(Metric):
    """Histogram of the log-odds of each class. The figure is the mean area under the ROC curves.

    State: the weights of rows of the class, then of the others: (2, classes, bins).
    """

    name = "score_histogram"
    higher_is_better = True

    def curves(self, state: State) -> tuple[ScoreCurve, ...]:
        """Return the curve of each class, from a state that is not empty."""
        edges = np.arange(BINS) * _STEP - LARGEST_ODDS
        inside, outside = state[0]
        return tuple(
            score_curve(np.stack([edges, inside[position], outside[position]]), position)
            for position in range(len(inside))
        )

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        rows, classes = probabilities.shape
        with np.errstate(divide="ignore"):
            odds = np.log(probabilities) - np.log1p(-probabilities)
        # Rounded first, so that scores of one row do not fall apart over an edge with the precision of the framework.
        places = np.floor((np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS).round(6) + LARGEST_ODDS) / _STEP)
        keys = np.minimum(places.astype(np.int64), BINS - 1) + np.arange(classes) * BINS
        total = np.bincount(keys.reshape(-1), np.repeat(weight, classes), classes * BINS)
        of_truth = keys[np.arange(rows), truth]
        inside = np.bincount(of_truth, weight, classes * BINS)
        return (np.stack([inside, total - inside]).reshape(2, classes, BINS),)

    def _result(self, state: State) -> float:
        edges = np.arange(BINS) * _STEP - LARGEST_ODDS
        runs = [np.stack([edges, *of_class]) for of_class in np.swapaxes(state[0], 0, 1)]
        return AUC().result((np.array([0.0, len(runs)]), *runs))


def score_curve(
    curve: Floats, position: int, temperature: float = 1.0, exact: Sequence[float] = (0.5,)
) -> ScoreCurve:
    """Return about `POINTS` points of a curve of log-odds, at about equal distances on the ROC curve.

    exact: thresholds at which the points tell the exact weights of rows.
    """
    used = (curve[1] + curve[2])[::-1] > 0
    odds, inside, outside = curve[0][::-1][used] / temperature, curve[1][::-1][used], curve[2][::-1][used]
    hits, alarms = np.cumsum(inside), np.cumsum(outside)
    places = np.arange(0)
    if len(hits):
        way = hits / max(hits[-1], 1e-300) + alarms / max(alarms[-1], 1e-300)
        even = np.searchsorted(way, np.linspace(way[0], way[-1], POINTS))
        probabilities = np.clip(exact, 1e-12, 1 - 1e-12)
        last = np.searchsorted(-odds, -np.log(probabilities / (1 - probabilities)), side="right") - 1
        places = np.unique(np.clip(np.concatenate([even, last]), 0, len(way) - 1))
    with np.errstate(over="ignore"):
        probabilities = 1 / (1 + np.exp(-odds[places]))
    return ScoreCurve(
        position,
        _short(float(hits[-1]) if len(hits) else 0.0),
        _short(float(alarms[-1]) if len(alarms) else 0.0),
        tuple(map(_short, probabilities.tolist())),
        tuple(map(_short, hits[places].tolist())),
        tuple(map(_short, alarms[places].tolist())),
    )


def _short(value: float) -> float:
    if not value or not math.isfinite(value) or value == math.floor(value):
        return value
    return round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))
