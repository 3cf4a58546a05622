"""Feature importance: the mean absolute Shapley value of each column."""

from __future__ import annotations

import numpy as np

from edl.metrics.base import Array, Metric, check_finite
from edl.metrics.states import Floats, State


class Importance(Metric):
    """Mean absolute value of columns. Their values (`edl.evaluation.shapley`) are the scores, (n, columns).

    Labels are ignored, and each row counts once. The figure is the sum over the columns. State: the sums of absolute
    values (columns,), rows (1,).
    """

    name = "importance"
    higher_is_better = True

    def of_columns(self, state: State) -> Floats:
        """Return the importance of each column, (columns,), from a state that is not empty."""
        total, rows = state
        return total / rows

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        check_finite(scores, "values of the columns")
        return np.abs(scores).sum(axis=0, dtype=np.float64), np.array([float(len(scores))])

    def _result(self, state: State) -> float:
        return float(self.of_columns(state).sum())
