"""Contract of a metric, and the checks that all of them share.

    state = metric.zero()
    state = metric.update(state, labels, scores, weights)      on each worker, block by block
    state = metric.merge(state, other)                         in any order and grouping
    metric.result(state)                                       a float, NaN if there is nothing to measure

Labels and scores have the shapes that `edl.features.labels` defines, for n rows:

    regression   labels (n, 1)            scores (n, 1)
    binary       labels (n, 1) or (n,)    scores (n, 2), or (n, 1) the probability of class 1
    multiclass   labels (n,) integers     scores (n, k) probabilities of k > 2 classes
    ranking      labels (n, 2) integers   scores (n, 1), higher is better; see `edl.metrics.ranking`
    reduction    labels (n,) zeros        scores (n, k + 3) numbers and errors; see `edl.metrics.reductions`
    clusters     labels (n,) zeros        scores (n, k) distances to k centres; see `edl.metrics.clusters`
    anomalies    labels (n, 1) zeros      scores (n, 1) from 0 to 1
    forecast     labels (n, 5)            scores (n, 1); see `edl.metrics.forecasts`

Other shapes raise a JobError: NumPy would silently broadcast (8, 1) against (8,) to (8, 8). So do scores that are not
finite, which a diverged model gives. Figures equal scikit-learn's to 1e-9 unless a metric says otherwise.
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.metrics.states import Floats, State
from edl.spec.forecast import BESIDE

FORECAST_WIDTH = 1 + len(BESIDE)  # of the labels of forecasts

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Metric(abc.ABC):
    """Figure over labels and scores, computed from a mergeable state. The object itself holds no data."""

    higher_is_better: ClassVar[bool]
    most: ClassVar[float] = 1.0  # best value, where higher is better; where lower is, the best one is 0
    ranks_models: ClassVar[bool] = True  # a model with a better value is better, as is not so of a bias
    # Of the predicted class alone, and not of how probable the classes are.
    of_decision: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Canonical name."""

    def zero(self) -> State:
        """Return the state of no rows."""
        return ()

    def update(self, state: State, labels: Array, scores: Array, weights: Array | None = None) -> State:
        """Return the state of the earlier rows and these.

        `weights`: (n,), not negative; None counts each row once.
        """
        if len(labels) == len(scores) == 0:
            return state
        return self.merge(state, self._measure(labels, scores, weights))

    def merge(self, a: State, b: State) -> State:
        """Return the state of the rows of both."""
        if not a or not b:
            return a or b
        return self._merge(a, b)

    def result(self, state: State) -> float:
        """Return the figure; NaN for no rows."""
        return float(self._result(state)) if state else math.nan

    @abc.abstractmethod
    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        """Return the state of these rows, at least one."""

    @abc.abstractmethod
    def _result(self, state: State) -> float:
        """Return the figure of a state that is not empty."""

    def _merge(self, a: State, b: State) -> State:
        """Add the states; metrics with states other than sums override this."""
        if any(left.shape != right.shape for left, right in zip(a, b, strict=True)):
            raise self._other_classes()
        return tuple(left + right for left, right in zip(a, b, strict=True))

    def _other_classes(self) -> JobError:
        return JobError(f"states of {self.name} over different numbers of classes cannot be merged")


def ratio(part: float, whole: float) -> float:
    """Return part / whole, or NaN if whole is 0."""
    return part / whole if whole else math.nan


def row_weights(weights: Array | None, rows: int) -> Floats:
    """Return weights as float64 of shape (n,)."""
    if weights is None:
        return np.ones(rows)
    if weights.shape != (rows,):
        raise JobError(f"weights have the shape {weights.shape} where {rows} rows need ({rows},)")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise JobError("weights must be finite and not negative")
    return weights.astype(np.float64)


def regression_rows(labels: Array, scores: Array, weights: Array | None) -> tuple[Floats, Floats, Floats]:
    """Return labels, scores and weights, each float64 of shape (n,). Labels may be the labels of forecasts."""
    if labels.ndim == 2 and labels.shape[1] == FORECAST_WIDTH:
        labels, scores = labels[:, :1], scores[:, :1]
    if labels.ndim != 2 or labels.shape[1] != 1 or scores.shape != labels.shape:
        raise _shapes(labels, scores, "a number to predict needs (n, 1) and (n, 1)")
    check_finite(labels, "labels")
    check_finite(scores, "scores")
    return labels[:, 0].astype(np.float64), scores[:, 0].astype(np.float64), row_weights(weights, len(labels))


def class_rows(labels: Array, scores: Array, weights: Array | None) -> tuple[Ints, Floats, Floats]:
    """Return positions of the true classes (n,), probabilities (n, k) with k >= 2, and weights (n,)."""
    probabilities = _checked_probabilities(labels, scores)
    check_finite(labels, "labels")
    flat = labels.reshape(-1)
    truth = flat.astype(np.int64)
    classes = probabilities.shape[1]
    wrong = (truth != flat) | (truth < 0) | (truth >= classes)
    if wrong.any():
        raise JobError(f"label {flat[wrong][0]} is not a position among {classes} classes")
    return truth, probabilities, row_weights(weights, len(labels))


def _checked_probabilities(labels: Array, scores: Array) -> Floats:
    columns = scores.shape[1] if scores.ndim == 2 else 0
    fits = labels.shape == (len(scores),) or (labels.shape == (len(scores), 1) and columns <= 2)
    if not columns or not fits:
        raise _shapes(labels, scores, "classes need (n, 1) and (n, 2), or (n,) and (n, classes)")
    check_finite(scores, "scores")
    if scores.min() < 0 or scores.max() > 1:
        raise JobError(
            "scores of classes must be probabilities, between 0 and 1",
            hint="give sigmoid or softmax of the model's logits to the metric",
        )
    probabilities = scores.astype(np.float64)
    return np.concatenate([1 - probabilities, probabilities], axis=1) if columns == 1 else probabilities


def _shapes(labels: Array, scores: Array, needed: str) -> JobError:
    return JobError(f"labels have the shape {labels.shape} and scores {scores.shape}; {needed}")


def check_finite(values: Array, what: str) -> None:
    """Raise JobError if some values are not finite."""
    unusable = ~np.isfinite(values)
    if unusable.any():
        hint = "training has diverged: a smaller learning rate or normalised features help"
        rows = int(np.count_nonzero(unusable.reshape(len(values), -1).any(axis=1)))
        raise JobError(
            f"{what} are not finite in {rows} of {len(values)} rows", hint=hint if what != "labels" else None
        )
