"""Selection of an ensemble from the models of a search by their scores of the same rows.

Greedy selection with replacement (Caruana et al. 2004, "Ensemble selection from libraries of models"): beginning with
the best model, add again and again the one that improves the mean of the scores most. A model's weight is the share of
its additions. Of all means on the way the best counts, and the smallest of equals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from edl.arrays import Array
from edl.metrics import Metric

ROUNDS = 40  # additions
LEAST_GAIN = 1e-4  # of the error, relative, by which a larger ensemble must be better
PRINTED = 5e-5  # distance to the best value at which four digits of a figure show no difference
FEW_ERRORS = 1e-3  # share of the error of a guess without a model at which nothing is left to improve


@dataclass(frozen=True)
class Measure:
    """Metric of scores on labelled rows. labels, scores and weights: as in `edl.metrics.base`."""

    metric: Metric
    labels: Array
    weights: Array | None = None

    def value(self, scores: Array, part: slice = slice(None)) -> float:
        """Return the metric of the scores; of some rows, with the scores of all."""
        weights = None if self.weights is None else self.weights[part]
        return self.metric.result(self.metric.update((), self.labels[part], scores[part], weights))

    def choose_rows(self, rows: Array) -> Measure:
        """Return the metric of these of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Measure(self.metric, self.labels[rows], weights)

    def error(self, value: float) -> float:
        """Return the value as a figure that is lower for better models."""
        return -value if self.metric.higher_is_better else value

    @property
    def least_error(self) -> float:
        """Error on which no other model can improve, as far as figures show; minus infinity if there is none."""
        if self.metric.higher_is_better:
            return PRINTED - self.metric.most
        return FEW_ERRORS * self.value(self._guess)

    @property
    def _guess(self) -> Array:
        """Scores of a guess without a model: the mean of the labels, or the shares of the classes."""
        if self.labels.ndim == 2:  # of two classes, the mean is the share of the second one
            mean = np.average(self.labels.astype(np.float64), axis=0, weights=self.weights)
            return np.broadcast_to(mean, self.labels.shape)
        counts = np.bincount(self.labels.astype(np.int64), self.weights, minlength=2)
        return np.tile(counts / counts.sum(), (len(self.labels), 1))


def select(
    scores: Mapping[int, Array],
    measure: Measure,
    max_members: int,
    is_over: Callable[[], bool] = lambda: False,
    rounds: int = ROUNDS,
) -> dict[int, float]:
    """Return the weights of the chosen models by their number, the largest first. There is at least one model.

    `scores` maps the number of each model to its scores. The result does not depend on their order. is_over: tells that
    there is no time for another addition. rounds: additions at most.
    """
    numbers = sorted(scores)
    chosen: Counter[int] = Counter()
    total: Array | None = None
    best: tuple[float, Counter[int]] | None = None
    for size in range(1, rounds + 1):
        if best is not None and is_over():
            break
        if len(chosen) == max_members:
            numbers = sorted(chosen)
        errors = []
        for number in numbers:
            mean = scores[number] if total is None else (total + scores[number]) / size
            errors.append((measure.error(measure.value(mean)), number))
        error, number = min(errors)
        chosen[number] += 1
        total = scores[number] if total is None else total + scores[number]
        if best is None or error < best[0] - LEAST_GAIN * abs(best[0]):
            best = error, chosen.copy()
    counts = best[1] if best is not None else chosen
    additions = sum(counts.values())
    return {
        number: count / additions
        for number, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    }
