"""Metrics of forecasts, beside the seasonal naive forecast in their labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edl import metrics
from edl.errors import JobError

# value, its seasonal naive forecast, mean error of such forecasts, scale of the series, forecast of AutoETS
LABELS = np.array(
    [[10.0, 12.0, 2.0, 5.0, 11.0], [20.0, 20.0, 4.0, 5.0, math.nan], [30.0, 24.0, 0.0, 5.0, 27.0]],
    dtype=np.float32,
)
SCORES = np.array([[11.0, 9.0, 12.0], [16.0, 10.0, 18.0], [30.0, 29.0, 31.0]])


def figure(name: str) -> float:
    metric = metrics.by_name(name, "forecast")
    halves = (metric.update(metric.zero(), LABELS[part], SCORES[part]) for part in (slice(2), slice(2, 3)))
    return metric.result(metric.merge(*halves))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mae", 5 / 3),
        ("rmse", math.sqrt(17 / 3)),
        ("seasonal_naive_mae", 8 / 3),
        ("seasonal_naive_rmse", math.sqrt(40 / 3)),
        ("mase", (1 / 2 + 4 / 4) / 2),
        ("seasonal_naive_mase", (2 / 2 + 0) / 2),
        ("auto_ets_mae", (1 + 3) / 2),
        ("auto_ets_rmse", math.sqrt((1 + 9) / 2)),
        ("auto_ets_mase", 1 / 2),
        ("coverage", 2 / 3),
    ],
)
def test_figures_of_a_forecast_and_of_the_seasonal_naive_one(name: str, wanted: float) -> None:
    assert figure(name) == pytest.approx(wanted)


def test_a_series_without_an_error_of_the_past_has_no_mase() -> None:
    metric = metrics.MASE()

    assert math.isnan(metric.result(metric.update(metric.zero(), LABELS[2:], SCORES[2:])))


def test_coverage_needs_two_quantiles() -> None:
    with pytest.raises(JobError, match="has no two"):
        metrics.Coverage().update((), LABELS, SCORES[:, :2])
