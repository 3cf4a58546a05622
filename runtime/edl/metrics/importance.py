"""How much a model uses each column: the mean size of what the column is worth."""

from __future__ import annotations

import numpy as np

from edl.metrics.base import Array, Metric, check_finite
from edl.metrics.states import Floats, State


class Importance(Metric):
    """Of columns whose values (`edl.worker.evaluation.shapley`) come as scores, (n, columns); labels have no say,
    and each row counts once. The figure is the sum over the columns. State: the sums of the sizes (columns,), rows
    (1,).
    """

    name = "importance"
    higher_is_better = True

    def of_columns(self, state: State) -> Floats:
        """Of each column, (columns,), of a state that is not empty."""
        total, rows = state
        return total / rows

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        check_finite(scores, "values of the columns")
        return np.abs(scores).sum(axis=0, dtype=np.float64), np.array([float(len(scores))])

    def _result(self, state: State) -> float:
        return float(self.of_columns(state).sum())
