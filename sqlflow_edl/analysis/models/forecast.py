"""Forecast of time series by boosted trees over examples of `edl.forecasting`: one model of all series and steps."""

from __future__ import annotations

from sqlflow_edl.analysis.models import boosted_trees
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.dictionary import Attribute

NAME = "Forecast"
ATTRIBUTES = (
    Attribute(
        "forecast.time",
        "text",
        "Column of the time of a row: a date, a timestamp or a whole number. Required.",
        aliases=("time", "time_column", "forecast.time_column", "time_series_timestamp_col"),
    ),
    Attribute(
        "forecast.series",
        "texts",
        "Columns whose values tell series apart, such as store or [store, item]; without it there is one series.",
        aliases=("series", "forecast.series_columns", "time_series_id_col"),
    ),
    Attribute(
        "forecast.horizon",
        "integer",
        "Number of steps that are forecast. Required.",
        low=1,
        high=10_000,
        aliases=("horizon", "n_out", "model.n_out"),
    ),
    Attribute(
        "forecast.season",
        "integer",
        "Number of steps after which a pattern repeats; 1 for none. By default a week of days, a year of weeks, months "
        "and quarters, a day of shorter steps, if a series shows it twice; none of numbers.",
        low=1,
        high=100_000,
        aliases=("season", "season_length", "forecast.season_length", "period"),
    ),
    Attribute(
        "forecast.lags",
        "integer",
        "Number of last values that the model sees, beside those of earlier seasons. By default those of a season, "
        "from 2 to 12.",
        low=1,
        high=1000,
        aliases=("lags", "n_in", "model.n_in"),
    ),
    Attribute(
        "forecast.windows",
        "integer",
        "Number of windows of the backtest, on which the model is validated: each has forecast.horizon steps, the last "
        "one those at the end of each series. By default 2, or 1 where the series are short.",
        low=1,
        high=100,
        aliases=("forecast.backtest_windows", "n_windows"),
    ),
    Attribute(
        "forecast.quantiles",
        "numbers",
        "Quantiles that are forecast beside the value, such as [0.1, 0.9] for an interval of 80 %.",
        low=0.001,
        high=0.999,
        aliases=("quantiles", "forecast.levels"),
    ),
    Attribute(
        "forecast.refit",
        "boolean",
        "Train the model once more after the backtest, on all rows, in as many rounds.",
        True,
        aliases=("refit",),
    ),
)
# Attributes of models of rows, whose rows are not in the order of time.
OF_ROWS = (
    "train.activate", "train.shuffle", "train.weight_column", "train.num_workers", "train.num_ps", "train.strategy",
    "validation.fraction", "validation.split", "validation.column", "validation.test_fraction", "validation.select",
    "validation.calibration", "validation.threshold", "model.framework", "train.on_bad_row",
    "train.incremental_column",
)  # fmt: skip

MODELS = (
    Model(
        NAME,
        "Forecast of time series by boosted trees (LightGBM) on lags, seasons and the other columns.",
        (*ATTRIBUTES, *(each.attribute for each in trees.PARAMETERS if each.lightgbm), trees.LENGTH),
        aliases=("Forecaster", "TimeSeriesForecast"),
        task="forecasting",
        frameworks=("lightgbm",),
        architecture=boosted_trees.ARCHITECTURE,
    ),
)
