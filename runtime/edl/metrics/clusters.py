"""Metrics of what is found without labels: clusters, by the distances of rows to all centres, (n, clusters), and
anomalies, by their scores, (n, 1).
"""

from __future__ import annotations

import abc

import numpy as np

from edl.errors import JobError
from edl.metrics.base import Array, Metric, check_finite, ratio, row_weights
from edl.metrics.states import Floats, State
from edl.spec import ANOMALOUS


class _ClusterMean(Metric):
    """Weighted mean of a figure of each row. State: its weighted sum, the sum of weights."""

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        if scores.ndim != 2 or scores.shape[1] < 2 or len(scores) != len(labels):
            raise JobError(
                f"scores have the shape {scores.shape}; clusters need the distances to their centres, (n, clusters)"
            )
        check_finite(scores, "scores")
        weight = row_weights(weights, len(labels))
        nearest = np.partition(scores.astype(np.float64), 1, axis=1)
        return (np.array([(self._figures(nearest[:, 0], nearest[:, 1]) * weight).sum(), weight.sum()]),)

    def _result(self, state: State) -> float:
        total, weight = state[0]
        return ratio(total, weight)

    @abc.abstractmethod
    def _figures(self, nearest: Floats, other: Floats) -> Floats:
        """Return the figure of each row from its distances to the nearest and to the second nearest centre."""


class Inertia(_ClusterMean):
    """Mean squared distance to the nearest centre: k-means' objective, per row."""

    name = "inertia"
    higher_is_better = False

    def _figures(self, nearest: Floats, other: Floats) -> Floats:
        return np.square(nearest)


class Silhouette(_ClusterMean):
    """Simplified silhouette (Vendramin, Campello and Hruschka, 2010), from -1 to 1: distances are those to centres.

    The silhouette of Rousseeuw (1987) needs the distances between all rows.
    """

    name = "silhouette"
    higher_is_better = True

    def _figures(self, nearest: Floats, other: Floats) -> Floats:
        return np.divide(other - nearest, other, out=np.zeros_like(other), where=other > 0)


class AnomalyRate(Metric):
    """Share of the rows that are anomalies. State: their weight, the weight of all."""

    name = "anomaly_rate"
    higher_is_better = False

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        if scores.shape != (len(labels), 1):
            raise JobError(f"scores have the shape {scores.shape}; those of anomalies have (n, 1)")
        check_finite(scores, "scores")
        weight = row_weights(weights, len(labels))
        return (np.array([weight[scores[:, 0] > ANOMALOUS].sum(), weight.sum()]),)

    def _result(self, state: State) -> float:
        anomalies, weight = state[0]
        return ratio(anomalies, weight)
