"""Metrics of a predicted class, two or more. The predicted class is the most probable, the first of equals; with a
threshold it is the second of two classes where its probability is at least the threshold.

For two classes, precision, recall and F1 are the figures of class 1; for more, the plain mean over the classes that
occur among the labels or the predictions (macro average). A class that is never predicted has precision 0, one that
never occurs has recall 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edl.metrics.base import Array, Flags, Ints, Metric, class_rows, ratio
from edl.metrics.states import Floats, State

_SMALLEST = np.finfo(np.float64).eps  # a probability of 0 for the true class would be an infinite loss


class Accuracy(Metric):
    """Share of rows with a correctly predicted class. State: weight of these rows, weight of all."""

    name = "accuracy"
    higher_is_better = True
    of_decision = True

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        right = weight[self._right(truth, probabilities)]
        return (np.array([right.sum(), weight.sum()]),)

    def _right(self, truth: Ints, probabilities: Floats) -> Flags:
        """Return True for the rows that are predicted, shape (n,)."""
        right: Flags = probabilities.argmax(axis=1) == truth
        return right

    def _result(self, state: State) -> float:
        right, weight = state[0]
        return ratio(right, weight)


class LogLoss(Metric):
    """Mean negative logarithm of the true class's probability. State: its weighted sum, the sum of weights."""

    name = "log_loss"
    higher_is_better = False

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        of_truth = np.take_along_axis(probabilities, truth[:, np.newaxis], axis=1)[:, 0]
        losses = -np.log(np.clip(of_truth, _SMALLEST, 1 - _SMALLEST))
        return (np.array([(losses * weight).sum(), weight.sum()]),)

    def _result(self, state: State) -> float:
        total, weight = state[0]
        return ratio(total, weight)


class Brier(Metric):
    """Mean squared error of the probabilities: with two classes for class 1, with more the sum over the classes.

    State: the weighted sum, the sum of weights.
    """

    name = "brier"
    higher_is_better = False

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        errors = np.square(probabilities - (truth[:, np.newaxis] == np.arange(probabilities.shape[1])))
        per_row = errors[:, 1] if probabilities.shape[1] == 2 else errors.sum(axis=1)
        return (np.array([(per_row * weight).sum(), weight.sum()]),)

    def _result(self, state: State) -> float:
        total, weight = state[0]
        return ratio(total, weight)


class Hinge(Metric):
    """Mean hinge loss: what the logit of the true class lacks to be 1 above the largest other one.

    Logits are computed from the probabilities. State: the weighted sum of losses, the sum of weights.
    """

    name = "hinge_loss"
    higher_is_better = False

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        logits = np.log(np.clip(probabilities, _SMALLEST, 1))
        truth_logits = np.take_along_axis(logits, truth[:, np.newaxis], axis=1)[:, 0]
        np.put_along_axis(logits, truth[:, np.newaxis], -np.inf, axis=1)
        losses = np.maximum(0, 1 - truth_logits + logits.max(axis=1))
        return (np.array([(losses * weight).sum(), weight.sum()]),)

    def _result(self, state: State) -> float:
        total, weight = state[0]
        return ratio(total, weight)


class PerClass(Metric):
    """Base of metrics per class.

    State, of shape (3, k): for each class the weight of rows correctly predicted, predicted, and true.
    """

    higher_is_better = True
    of_decision = True

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, probabilities, weight = class_rows(labels, scores, weights)
        classes = probabilities.shape[1]
        predicted = probabilities.argmax(axis=1)
        hit = predicted == truth
        counts = [
            np.bincount(truth[hit], weight[hit], classes),
            np.bincount(predicted, weight, classes),
            np.bincount(truth, weight, classes),
        ]
        return (np.stack(counts).astype(np.float64),)

    def _result(self, state: State) -> float:
        right, predicted, true = state[0]
        figures = self._figures(right, predicted, true)
        occurs = (predicted + true) > 0
        if not occurs.any():
            return float("nan")
        return float(figures[1] if len(figures) == 2 else figures[occurs].mean())

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        """Return the figure of each class, shape (k,)."""
        raise NotImplementedError


class Precision(PerClass):
    """Share of a class's predicted rows that belong to it."""

    name = "precision"

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return divide_or_zero(right, predicted)


class Recall(PerClass):
    """Share of a class's rows that are predicted as it."""

    name = "recall"

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return divide_or_zero(right, true)


class F1(PerClass):
    """Harmonic mean of a class's precision and recall."""

    name = "f1"

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return divide_or_zero(2 * right, predicted + true)


@dataclass(frozen=True)
class AtThreshold(Metric):
    """Metric of the classes that a threshold predicts, of two. It has the state of `metric`."""

    metric: Metric
    threshold: float
    name: ClassVar[str] = "at_threshold"
    higher_is_better: ClassVar[bool] = True
    of_decision: ClassVar[bool] = True

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        _, probabilities, _ = class_rows(labels, scores, weights)
        return self.metric.update(
            self.metric.zero(), labels, decide_class(probabilities, self.threshold), weights
        )

    def _merge(self, a: State, b: State) -> State:
        return self.metric.merge(a, b)

    def _result(self, state: State) -> float:
        return self.metric.result(state)


def at_threshold(metric: Metric, threshold: float | None) -> Metric:
    """Return the metric with the threshold, or itself if there is none or it measures probabilities."""
    return AtThreshold(metric, threshold) if metric.of_decision and threshold is not None else metric


def decide_class(probabilities: Floats, threshold: float) -> Floats:
    """Return 1 for the predicted one of two classes and 0 for the other, (n, 2); what is not finite stays."""
    second = probabilities[:, 1] >= threshold
    classes = np.stack([~second, second], axis=1).astype(np.float64)
    decided: Floats = np.where(np.isfinite(probabilities), classes, probabilities)
    return decided


def divide_or_zero(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


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
