"""Log loss and calibration error of probabilities at many temperatures, and thresholds of two classes by a metric."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from edl.metrics.auc import AUC
from edl.metrics.base import Array, Metric, class_rows
from edl.metrics.states import Floats, State
from edl.spec.calibration import Calibration, Threshold

BINS = 15  # of the probability of the most probable class
TEMPERATURES: Floats = np.exp2(np.linspace(-3, 3, 41))  # 1 among them; the best one is between two of them
_ONE = len(TEMPERATURES) // 2
_SMALLEST = np.finfo(np.float64).tiny


def apply_temperature(probabilities: Floats, temperature: float) -> Floats:
    """Return probabilities (n, classes) after a division of their logits by the temperature."""
    logits = np.log(np.maximum(probabilities, _SMALLEST)) / temperature
    logits -= logits.max(axis=1, keepdims=True)
    odds = np.exp(logits)
    tempered: Floats = odds / odds.sum(axis=1, keepdims=True)
    return tempered


class TemperedLoss(Metric):
    """Log loss at the temperature that minimises it.

    State: the weight, then for each temperature the sum of losses, then for each temperature and bin the weights
    times the probability, the weights of the right rows, and the weights: (3, temperatures, bins).
    """

    name = "tempered_log_loss"
    higher_is_better = False

    def best(self, state: State) -> tuple[float, float]:
        """Return the temperature with the least log loss, by a parabola through the best three, and that loss."""
        losses = state[1] / state[0][0]
        least = min(max(int(losses.argmin()), 1), len(losses) - 2)
        before, at, after = losses[least - 1 : least + 2]
        bend = before - 2 * at + after
        shift = 0.5 * (before - after) / bend if bend > 0 else 0.0
        shift = min(max(shift, -1.0), 1.0)
        step = math.log2(TEMPERATURES[1] / TEMPERATURES[0])
        loss = at + 0.5 * shift * (after - before) + 0.5 * shift * shift * bend
        return float(2 ** (math.log2(TEMPERATURES[least]) + shift * step)), float(loss)

    def calibration(self, state: State) -> Calibration | None:
        """Return the calibration by the best temperature; None without rows."""
        if not state or not state[0][0]:
            return None
        temperature, loss = self.best(state)
        nearest = int(np.abs(np.log(TEMPERATURES / temperature)).argmin())
        before = float(state[1][_ONE] / state[0][0])
        errors = (_error(state[2][:, _ONE]), _error(state[2][:, nearest]))
        return Calibration({}, temperature, (before, loss), errors)

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        right = weight * (probabilities.argmax(axis=1) == truth)
        losses, bins = np.zeros(len(TEMPERATURES)), np.zeros((3, len(TEMPERATURES), BINS))
        for number, temperature in enumerate(TEMPERATURES):
            tempered = apply_temperature(probabilities, temperature)
            of_truth = np.take_along_axis(tempered, truth[:, np.newaxis], axis=1)[:, 0]
            losses[number] = (-np.log(np.maximum(of_truth, _SMALLEST)) * weight).sum()
            largest = tempered.max(axis=1)
            places = np.minimum((largest * BINS).astype(np.int64), BINS - 1)
            for part, values in enumerate((weight * largest, right, weight)):
                bins[part, number] = np.bincount(places, values, BINS)
        return np.array([weight.sum()]), losses, bins

    def _result(self, state: State) -> float:
        return self.best(state)[1] if state[0][0] else math.nan


def _error(bins: Floats) -> float:
    """Return the expected calibration error: the mean of |right - probability| over the bins, by their weight."""
    expected, right, weight = bins
    return float(np.abs(right - expected).sum() / weight.sum())


# Thresholds ------------------------------------------------------------------------------------------------


def thresholds(state: State, temperature: float = 1.0) -> dict[str, Threshold]:
    """Return the best threshold for each metric from a state of AUC, of two classes.

    A threshold lies in the middle between two rows, by their log-odds; of equally good ones it is the one nearest to
    even odds.
    """
    curve = AUC().curve(state)
    odds, inside, outside = curve[0] / temperature, curve[1][::-1], curve[2][::-1]
    hits = np.concatenate([[0.0], np.cumsum(inside)])[::-1]  # of rows from each key on, then none
    alarms = np.concatenate([[0.0], np.cumsum(outside)])[::-1]
    if not hits[0] or not alarms[0]:
        return {}
    middles = np.concatenate([[-math.inf], (odds[1:] + odds[:-1]) / 2, [math.inf]])
    by_name = {}
    for name, values in _figures(hits, alarms).items():
        best = np.flatnonzero(values >= values.max() - 1e-12)
        place = best[np.abs(middles[best]).argmin()]
        by_name[name] = Threshold(_probability(middles[place]), float(values[place]))
    return by_name


def _figures(hits: Floats, alarms: Floats) -> Mapping[str, Floats]:
    """Return metrics by the weight of rows predicted as the second class, rightly and wrongly."""
    positives, negatives = hits[0], alarms[0]
    misses, rejected = positives - hits, negatives - alarms
    product = np.sqrt((hits + alarms) * (misses + rejected) * positives * negatives)
    correlation = hits * rejected - alarms * misses
    return {
        "accuracy": (hits + rejected) / (positives + negatives),
        "balanced_accuracy": (hits / positives + rejected / negatives) / 2,
        "f1": 2 * hits / (2 * hits + alarms + misses),
        "mcc": np.divide(correlation, product, out=np.zeros_like(product), where=product > 0),
    }


def _probability(odds: float) -> float:
    if odds == math.inf:
        return 1.0
    return 0.0 if odds < -700 else 1 / (1 + math.exp(-odds))
