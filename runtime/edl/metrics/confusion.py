"""Confusion matrix."""

from __future__ import annotations

import numpy as np

from edl.metrics.base import Array, Metric, class_rows, ratio
from edl.metrics.states import Floats, State


class ConfusionMatrix(Metric):
    """Weight of rows by true and predicted class. The figure is the accuracy.

    State: the weights, (classes, classes), by true class and predicted class.
    """

    name = "confusion_matrix"
    higher_is_better = True
    of_decision = True

    def matrix(self, state: State) -> Floats:
        """Return weights by true and predicted class, from a state that is not empty."""
        return state[0]

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        classes = probabilities.shape[1]
        pairs = truth * classes + probabilities.argmax(axis=1)
        counts: Floats = np.bincount(pairs, weight, classes * classes).astype(np.float64)
        return (counts.reshape(classes, classes),)

    def _result(self, state: State) -> float:
        return ratio(np.trace(state[0]), state[0].sum())
