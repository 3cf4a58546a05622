"""Metrics of forecasts, beside the metrics of a predicted number.

Labels are (n, 5): the value, its seasonal naive forecast, the mean absolute error of such forecasts in the series
before the origin, the scale of the series, and the forecast of AutoETS, NaN if there is none. Scores are (n, 1 +
quantiles): the forecast, and its quantiles in rising order.
"""

from __future__ import annotations

import numpy as np

from edl.errors import JobError
from edl.metrics.base import FORECAST_WIDTH, Array, check_finite
from edl.metrics.regression import MAE, RMSE
from edl.metrics.states import State
from edl.spec.forecast import AUTO_ETS, BESIDE


class MASE(MAE):
    """Mean absolute scaled error (Hyndman and Koehler, 2006): 1 is the error of seasonal naive forecasts of one season.

    Each error is divided by the mean absolute error of seasonal naive forecasts in the series before its origin. Rows
    of a series without such an error, or with one of 0, do not count.
    """

    name = "mase"

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        scaled, size = forecast_rows(labels)[:, :1], labels[:, 2].astype(np.float64)
        counted = np.isfinite(size) & (size > 0)
        size = np.where(counted, size, 1.0)[:, np.newaxis]
        weight = counted if weights is None else weights * counted
        return super()._measure(scaled / size, scores[:, :1] / size, weight.astype(np.float64))


class _SeasonalNaive:
    """Error of the seasonal naive forecast: the value of the same place of the last season."""

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        naive = forecast_rows(labels)[:, 1:2]
        return super()._measure(labels, naive, weights)  # type: ignore[misc,no-any-return]  # of the metric beside it


class SeasonalNaiveMASE(_SeasonalNaive, MASE):
    """Mean absolute scaled error of the seasonal naive forecast."""

    name = "seasonal_naive_mase"


class SeasonalNaiveMAE(_SeasonalNaive, MAE):
    """Mean absolute error of the seasonal naive forecast."""

    name = "seasonal_naive_mae"


class SeasonalNaiveRMSE(_SeasonalNaive, RMSE):
    """Root of the mean squared error of the seasonal naive forecast."""

    name = "seasonal_naive_rmse"


class _AutoETS:
    """Error of the forecast of AutoETS, of the rows that have one."""

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        forecasts = forecast_rows(labels)[:, 1 + BESIDE.index(AUTO_ETS)][:, np.newaxis]
        is_finite = np.isfinite(forecasts[:, 0])
        weight = is_finite.astype(np.float64) if weights is None else weights * is_finite
        return super()._measure(labels, np.where(is_finite[:, np.newaxis], forecasts, 0.0), weight)  # type: ignore[misc,no-any-return]  # of the metric beside it


class AutoETSMASE(_AutoETS, MASE):
    """Mean absolute scaled error of the forecast of AutoETS."""

    name = "auto_ets_mase"


class AutoETSMAE(_AutoETS, MAE):
    """Mean absolute error of the forecast of AutoETS."""

    name = "auto_ets_mae"


class AutoETSRMSE(_AutoETS, RMSE):
    """Root of the mean squared error of the forecast of AutoETS."""

    name = "auto_ets_rmse"


class Coverage(MAE):
    """Share of the values between the lowest and the highest quantile."""

    name = "coverage"

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        values = forecast_rows(labels)[:, :1]
        if scores.ndim != 2 or scores.shape[1] < 3:
            raise JobError(
                "coverage is the share of the values between two quantiles, and the forecast has no two",
                hint="train it WITH forecast.quantiles = [0.1, 0.9]",
            )
        inside = (scores[:, 1:2] <= values) & (values <= scores[:, -1:])
        return super()._measure(inside.astype(np.float64), np.zeros_like(values), weights)


def forecast_rows(labels: Array) -> Array:
    """Return the labels as float64. Raises JobError unless they are labels of forecasts."""
    if labels.ndim != 2 or labels.shape[1] != FORECAST_WIDTH:
        raise JobError(
            f"labels have the shape {labels.shape}; those of forecasts are (n, {FORECAST_WIDTH}), as fc.forecast makes "
            "them"
        )
    check_finite(labels[:, :2], "labels")
    return labels.astype(np.float64)
