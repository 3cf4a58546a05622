"""Metrics of reductions: how well a few numbers restore the features of the rows.

Scores are (n, dimensions + 3), see `edl.spec.labels.ReductionLabel`: the last ones are mean squared and mean absolute
error, and the mean squared feature.
"""

from __future__ import annotations

import abc

import numpy as np

from edl.errors import JobError
from edl.metrics.base import Array, Metric, check_finite, ratio, row_weights
from edl.metrics.states import Floats, State
from edl.spec.labels import ERRORS


class _ReductionMean(Metric):
    """Weighted sums of the errors of the rows. State: squared and absolute errors, squared features, weights."""

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        if scores.ndim != 2 or scores.shape[1] <= ERRORS or len(scores) != len(labels):
            raise JobError(
                f"scores have the shape {scores.shape}; a reduction has its errors behind its numbers"
            )
        check_finite(scores, "scores")
        weight = row_weights(weights, len(labels))
        sums = weight @ scores[:, -ERRORS:].astype(np.float64)
        return (np.append(sums, weight.sum()),)

    def _result(self, state: State) -> float:
        return self._figure(state[0])

    @abc.abstractmethod
    def _figure(self, sums: Floats) -> float:
        """Return the figure of all rows."""


class ReconstructionMSE(_ReductionMean):
    """Mean squared error of the restored features, in their own units."""

    name = "reconstruction_mse"
    higher_is_better = False

    def _figure(self, sums: Floats) -> float:
        return ratio(sums[0], sums[3])


class ReconstructionMAE(_ReductionMean):
    """Mean absolute error of the restored features, in their own units."""

    name = "reconstruction_mae"
    higher_is_better = False

    def _figure(self, sums: Floats) -> float:
        return ratio(sums[1], sums[3])


class ExplainedVarianceRatio(_ReductionMean):
    """Share of the squared features that is restored, of features less their means."""

    name = "explained_variance_ratio"
    higher_is_better = True

    def _figure(self, sums: Floats) -> float:
        return 1 - ratio(sums[0], sums[2])
