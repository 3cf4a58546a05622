"""Agreement of predicted and true classes, two or more, from their counts; figures equal scikit-learn's.

The predicted class is the most probable one, or with a threshold the second of two: see `edl.metrics.classification`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edl.metrics.base import Flags, Ints, ratio
from edl.metrics.classification import Accuracy, PerClass, divide_or_zero
from edl.metrics.states import Floats, State


class BalancedAccuracy(PerClass):
    """Mean over the true classes of the share of their rows that are predicted."""

    name = "balanced_accuracy"

    def _result(self, state: State) -> float:
        right, _, true = state[0]
        occurs = true > 0
        return float((right[occurs] / true[occurs]).mean()) if occurs.any() else math.nan


class Specificity(PerClass):
    """Share of the rows outside of a class that are not predicted as it: of two classes, of class 1."""

    name = "specificity"

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        outside = true.sum() - true
        return divide_or_zero(outside - (predicted - right), outside)


class Jaccard(PerClass):
    """Share of the rows predicted or true that are both (intersection over union)."""

    name = "jaccard"

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return divide_or_zero(right, predicted + true - right)


@dataclass(frozen=True)
class FBeta(PerClass):
    """Weighted harmonic mean of a class's precision and recall, in which recall counts `beta` times as much."""

    beta: int = 2

    @property
    def name(self) -> str:
        return f"fbeta@{self.beta}"

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        square = self.beta**2
        return divide_or_zero((1 + square) * right, square * true + predicted)


class _Count(PerClass):
    """Weight of rows, of two classes for class 1; of more the sum over the classes, each against the others."""

    def _result(self, state: State) -> float:
        counts = self._figures(*state[0])
        return float(counts[1] if len(counts) == 2 else counts.sum())


class TruePositives(_Count):
    """Rows of a class that are predicted as it."""

    name = "true_positives"
    most = math.inf

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return right


class FalsePositives(_Count):
    """Rows predicted as a class that they do not belong to."""

    name = "false_positives"
    higher_is_better = False

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return predicted - right


class FalseNegatives(_Count):
    """Rows of a class that are not predicted as it."""

    name = "false_negatives"
    higher_is_better = False

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        return true - right


class TrueNegatives(_Count):
    """Rows outside of a class that are not predicted as it."""

    name = "true_negatives"
    most = math.inf

    def _figures(self, right: Floats, predicted: Floats, true: Floats) -> Floats:
        counts: Floats = true.sum() - true - predicted + right
        return counts


class CohenKappa(PerClass):
    """Accuracy beyond chance, relative to the largest possible one (Cohen, 1960)."""

    name = "cohen_kappa"

    def _result(self, state: State) -> float:
        right, predicted, true = state[0]
        total = true.sum()
        by_chance = ratio(float(predicted @ true), float(total) ** 2)
        return ratio(ratio(right.sum(), total) - by_chance, 1 - by_chance)


class MCC(PerClass):
    """Correlation of predicted and true classes (Matthews, 1975; of several, Gorodkin, 2004); 0 for one class alone."""

    name = "mcc"

    def _result(self, state: State) -> float:
        right, predicted, true = state[0]
        total = true.sum()
        if not total:
            return math.nan
        shares = predicted / total, true / total  # of sums of squares, large counts would lose digits
        spread = math.sqrt(max(0.0, 1 - shares[0] @ shares[0]) * max(0.0, 1 - shares[1] @ shares[1]))
        together = right.sum() / total - shares[0] @ shares[1]
        return float(together / spread) if spread else 0.0


class ErrorRate(Accuracy):
    """Share of rows with a wrongly predicted class."""

    name = "error_rate"
    higher_is_better = False

    def _result(self, state: State) -> float:
        return 1 - super()._result(state)


@dataclass(frozen=True)
class TopKAccuracy(Accuracy):
    """Share of rows with their class among the `k` most probable; of equal ones, the first."""

    k: int = 5

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"top_k_accuracy@{self.k}"

    @property
    def of_decision(self) -> bool:  # type: ignore[override]
        return self.k == 1

    def _right(self, truth: Ints, probabilities: Floats) -> Flags:
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.k]
        hits: Flags = (best == truth[:, np.newaxis]).any(axis=1)
        return hits
