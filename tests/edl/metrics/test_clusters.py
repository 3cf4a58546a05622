"""Metrics of clusters, from the distances to centres."""

from __future__ import annotations

import numpy as np
import pytest

from edl.errors import JobError
from edl.metrics import Inertia, Metric, Silhouette

DISTANCES = np.array([[1.0, 4.0, 3.0], [2.0, 2.0, 5.0], [0.0, 6.0, 0.0]])
NO_LABELS = np.zeros(3, dtype=np.int64)


@pytest.mark.parametrize(
    ("metric", "weights", "wanted"),
    [
        (Inertia(), None, 5 / 3),
        (Inertia(), np.array([1.0, 3.0, 0.0]), 13 / 4),
        (Silhouette(), None, 2 / 9),  # (3 - 1) / 3 of the first row, 0 of rows between two centres
    ],
)
def test_figures_are_means_over_rows(metric: Metric, weights: np.ndarray | None, wanted: float) -> None:
    whole = metric.update(metric.zero(), NO_LABELS, DISTANCES, weights)
    parts = metric.zero()
    for row in range(3):
        some = None if weights is None else weights[row : row + 1]
        parts = metric.update(parts, NO_LABELS[:1], DISTANCES[row : row + 1], some)

    assert metric.result(whole) == pytest.approx(wanted)
    assert metric.result(parts) == pytest.approx(wanted)


def test_scores_of_one_column_are_an_error() -> None:
    with pytest.raises(JobError, match="distances to their centres"):
        Inertia().update((), NO_LABELS, DISTANCES[:, :1])
