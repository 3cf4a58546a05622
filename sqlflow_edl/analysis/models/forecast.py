"""Forecast of time series by boosted trees or a network over examples of `edl.forecasting`.

One model forecasts all series and all steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from edl import spec
from edl.errors import Span
from edl.spec.features import with_tables
from edl.spec.forecast import DECODED, TEMPORAL_UNITS
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed
from sqlflow_edl.analysis.models import boosted_trees
from sqlflow_edl.analysis.models.base import Architecture, Length, Model, Parameters
from sqlflow_edl.analysis.models.parts import DROPOUT, deep_feature
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.values import Setting

NAME = "Forecast"
KNOWN = "known"  # input of a network: features of the time to forecast
ATTRIBUTES = (
    AttributeRow(
        "forecast.time",
        "text",
        "Column of the time of a row: a date, a timestamp or a whole number. Required.",
        aliases=("time", "time_column", "forecast.time_column", "time_series_timestamp_col"),
    ),
    AttributeRow(
        "forecast.series",
        "texts",
        "Columns that identify a series, such as store or [store, item]; without it there is one series.",
        aliases=("series", "forecast.series_columns", "time_series_id_col"),
    ),
    AttributeRow(
        "forecast.horizon",
        "integer",
        "Number of steps to forecast. Required.",
        low=1,
        high=10_000,
        aliases=("horizon", "n_out", "model.n_out"),
    ),
    AttributeRow(
        "forecast.season",
        "integer",
        "Number of steps of a repeating pattern; 1 for none. By default a week for days, a year for "
        "weeks, months and quarters, a day for shorter steps, if a series shows it twice; none for "
        "numbers.",
        low=1,
        high=100_000,
        aliases=("season", "season_length", "forecast.season_length", "period"),
    ),
    AttributeRow(
        "forecast.lags",
        "integer",
        "Number of last values in the input. By default one season, from 2 to 12, beside values of "
        "earlier seasons; for TiDE two seasons or the horizon.",
        low=1,
        high=1000,
        aliases=("lags", "n_in", "model.n_in"),
    ),
    AttributeRow(
        "forecast.windows",
        "integer",
        "Number of windows of the backtest, which validates the model: each has forecast.horizon "
        "steps, and the last one is at the end of each series. By default 2, or 1 for short series.",
        low=1,
        high=100,
        aliases=("forecast.backtest_windows", "n_windows"),
    ),
    AttributeRow(
        "forecast.quantiles",
        "numbers",
        "Quantiles to forecast in addition to the value, such as [0.1, 0.9] for an interval of 80 %.",
        low=0.001,
        high=0.999,
        aliases=("quantiles", "forecast.levels"),
    ),
    AttributeRow(
        "forecast.holidays",
        "text",
        "Country, such as DE, or a part of it, such as DE-BY: its public holidays are features. Needs the package "
        "holidays.",
        aliases=("holidays", "forecast.country"),
    ),
    AttributeRow(
        "forecast.non_negative",
        "boolean",
        "No forecast and no quantile is below 0. By default if no known value is.",
        aliases=("non_negative",),
    ),
    AttributeRow(
        "forecast.refit",
        "boolean",
        "Train the model once more after the backtest, on all rows, for the same number of rounds or epochs.",
        True,
        aliases=("refit",),
    ),
)
WHY_NOT = (
    "models of rows; a forecast runs in one process, and its backtest is the last horizon of each series"
)
# Attributes of models of rows that are not in the order of time.
OF_ROWS = (
    "train.activate", "train.shuffle", "train.weight_column", "train.num_workers", "train.num_ps", "train.strategy",
    "validation.fraction", "validation.split", "validation.column", "validation.test_fraction", "validation.select",
    "validation.calibration", "validation.threshold", "model.framework", "train.on_bad_row",
    "train.incremental_column",
)  # fmt: skip

NETWORK = (
    AttributeRow(
        "model.hidden_size",
        "integer",
        "Units of the hidden layers of encoder and decoder.",
        64,
        low=1,
        high=4096,
        aliases=("hidden_size",),
    ),
    AttributeRow(
        "model.layers",
        "integer",
        "Residual blocks of the encoder, and as many of the decoder.",
        1,
        low=1,
        high=20,
        aliases=("layers", "n_layers", "model.n_layers"),
    ),
    DROPOUT,
)
_NETWORK_DEFAULTS: Mapping[str, Setting] = {
    "model.dropout": 0.1,
    "optimizer": "adamw",
    "optimizer.learning_rate": 0.001,
}
_LENGTH = Length(3000, (3, 30), 8, ((2_000, 32), (20_000, 128)))


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Return the features of the time to forecast, in the forms of a dense network."""
    features = dict.fromkeys(deep_feature(placed.column, label) for placed in columns)
    return {KNOWN: tuple(features)} if features else {}


def _values(job: spec.JobSpec) -> Mapping[str, object]:
    quantiles = job.label.quantiles
    return {"known": KNOWN in job.inputs, "forecast": job.forecast, "quantiles": len(quantiles)}


def _size(job: spec.JobSpec) -> int | None:
    """Count the weights of `edl.torch.TiDE`, and the embeddings beside it."""
    if job.forecast is None:
        return None
    size, layers = (int(job.model.params[name]) for name in ("hidden_size", "layers"))  # type: ignore[arg-type]
    known_numbers, lags, horizon = (
        sum(map(spec.width, job.inputs.get(KNOWN, ()))),
        job.forecast.lags,
        job.forecast.horizon,
    )
    widths = [lags + known_numbers, *[size] * (2 * layers - 1), horizon * DECODED]
    blocks = sum(_block(width, size, after) + 2 * after for width, after in itertools.pairwise(widths))
    outputs = job.label.outputs
    tables = sum(spec.num_ids(feature.category) * feature.dim for feature in with_tables(job.features))
    return blocks + _block(DECODED + known_numbers, TEMPORAL_UNITS, outputs) + (lags + 1) * horizon + tables


def _block(width: int, hidden: int, outputs: int) -> int:
    return (width + 1) * hidden + (hidden + 1) * outputs + (width + 1) * outputs


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
    Model(
        "TiDE",
        "Forecast of time series by a dense encoder and decoder (TiDE; Das et al., 2023) on the last values.",
        (*ATTRIBUTES, *NETWORK),
        aliases=("TiDEForecast", "TiDEModel"),
        task="forecasting",
        frameworks=("torch",),
        architecture=Architecture("tide", _assemble, size=_size, values=_values),
        defaults=_NETWORK_DEFAULTS,
        length=_LENGTH,
    ),
)
