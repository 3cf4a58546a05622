"""What a result says of the rows behind its figures."""

from __future__ import annotations

import pytest

from sqlflow_edl.reports.intervals import wilson


@pytest.mark.parametrize(
    ("share", "count", "interval"),
    [
        (1.0, 9, (0.7009, 1.0)),
        (0.5, 100, (0.4038, 0.5962)),
        (0.91, 400, (0.8779, 0.9343)),
        (0.0, 10, (0.0, 0.2775)),
    ],
)
def test_the_interval_of_an_accuracy_follows_from_the_number_of_rows(
    share: float, count: int, interval: tuple[float, float]
) -> None:
    assert wilson(share, count) == pytest.approx(interval, abs=1e-4)
