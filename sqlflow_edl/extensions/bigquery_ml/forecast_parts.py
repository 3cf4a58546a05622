"""Parts of series and of their forecasts: ML.EXPLAIN_FORECAST of BigQuery ML.

Trees have no trend and no season of their own, so each series is decomposed with its forecast: a centred mean over a
season, and the mean distance from it at each step of the season. For the known steps, both and the residual add up to
the value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.features.arrays import numbers
from edl.spec import Forecast
from edl.spec.forecast import DAY, Step
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction, forecast_rows

Floats = npt.NDArray[np.float64]

_SEASONS = ("yearly", "quarterly", "monthly", "weekly", "daily")
_INTERVAL = (
    "standard_error",
    "confidence_level",
    "prediction_interval_lower_bound",
    "prediction_interval_upper_bound",
)
_NO_PARTS = ("holiday_effect", "spikes_and_dips", "step_changes")  # of which these models know nothing
_LONGEST = {"daily": 1.5, "weekly": 8.0, "monthly": 32.0, "quarterly": 93.0}  # days of a season


def explain_forecast(function: ModelFunction) -> pa.Table:
    """Return the known steps of each series and the forecast ones, with trend, season and residual.

    Raises SemanticError as ML.FORECAST does.
    """
    forecasts = forecast_rows(function)
    forecast = function.trained.forecast
    if forecast is None:
        raise RuntimeError("a forecast has its settings")
    column = function.trained.label.column
    past = function.source.stream(function.training_query).read_all()
    past = past.filter(past.column(column).is_valid()).sort_by(
        [(name, "ascending") for name in (*forecast.series, forecast.time)]
    )
    count, horizon = past.num_rows, forecasts.num_rows
    values = np.concatenate(
        [
            numbers(past.column(column).combine_chunks(), column),
            forecasts.column("forecast_value").to_numpy().astype(np.float64),
        ]
    )
    keys = _keys(past, forecasts, forecast)
    trend, season = np.full(len(values), np.nan), np.full(len(values), np.nan)
    for places in keys:
        trend[places], season[places] = decompose(values[places], forecast.season)
    adjusted = trend + season
    columns: dict[str, object] = {
        name: pa.chunked_array(
            [
                past.column(name).combine_chunks(),
                *forecasts.column(name).cast(past.schema.field(name).type).chunks,
            ]
        )
        for name in forecast.series
    }
    kind = past.schema.field(forecast.time).type
    times = [
        past.column(forecast.time).combine_chunks(),
        *forecasts.column("forecast_timestamp").cast(kind).chunks,
    ]
    columns |= {
        "time_series_timestamp": pa.chunked_array(times),
        "time_series_type": ["history"] * count + ["forecast"] * horizon,
        "time_series_data": values,
        "time_series_adjusted_data": np.concatenate([adjusted[:count], values[count:]]),
    }
    columns |= {name: _add_nulls(forecasts, name, count) for name in _INTERVAL}
    columns["trend"] = trend
    season_name = name_season(forecast)
    columns |= {
        f"seasonal_period_{name}": season if name == season_name else np.full(len(values), np.nan)
        for name in _SEASONS
    }
    columns |= {name: np.full(len(values), np.nan) for name in _NO_PARTS}
    residual = values - adjusted
    residual[count:] = np.nan
    columns["residual"] = residual
    rows = pa.table(
        {
            name: pa.array(of, from_pandas=True) if isinstance(of, np.ndarray) else of
            for name, of in columns.items()
        }
    )
    return rows.take(pa.array(np.concatenate(keys))) if keys else rows


def _keys(past: pa.Table, forecasts: pa.Table, forecast: Forecast) -> list[npt.NDArray[np.int64]]:
    """Return the places of the rows of each series, known ones before forecast ones."""
    if not forecast.series:
        return [np.arange(past.num_rows + forecasts.num_rows)]
    joined = zip(
        *([*past.column(name).to_pylist(), *forecasts.column(name).to_pylist()] for name in forecast.series),
        strict=True,
    )
    by_key: dict[tuple[object, ...], list[int]] = {}
    for place, key in enumerate(joined):
        by_key.setdefault(key, []).append(place)
    has_forecast = (places for places in by_key.values() if places[-1] >= past.num_rows)
    return [np.array(places) for places in has_forecast]


def _add_nulls(forecasts: pa.Table, name: str, count: int) -> pa.Array:
    """Return a column of the forecasts behind NULLs for the known rows."""
    nothing = pa.nulls(count, pa.float64())
    if name not in forecasts.column_names:
        return pa.nulls(count + forecasts.num_rows, pa.float64())
    return pa.concat_arrays([nothing, forecasts.column(name).combine_chunks().cast(pa.float64())])


def decompose(values: Floats, season: int) -> tuple[Floats, Floats]:
    """Return trend and season of a series: their sum is the value without what is irregular.

    The trend is the centred mean over a season, and at both ends the line through the means beside them. A series
    shorter than two seasons has no season.
    """
    period = season if season > 1 and len(values) >= 2 * season else 1
    trend = _centred_mean(values, period)
    if period == 1:
        return trend, np.zeros(len(values))
    distances = values - trend
    inside = slice(period // 2, len(values) - period // 2)
    phases = np.arange(len(values)) % period
    means = np.array([_mean(distances[inside][phases[inside] == phase]) for phase in range(period)])
    return trend, (means - means.mean())[phases]


def _mean(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else 0.0


def _centred_mean(values: Floats, period: int) -> Floats:
    """Return the mean of the steps around each one; a window of an even number has half of both of its ends."""
    window = np.ones(period) if period % 2 else np.concatenate([[0.5], np.ones(period - 1), [0.5]])
    is_known = np.isfinite(values)
    half = len(window) // 2
    total = np.convolve(np.where(is_known, values, 0.0), window)[half : half + len(values)]
    weight = np.convolve(is_known.astype(np.float64), window)[half : half + len(values)]
    means = np.divide(total, weight, out=np.full(len(values), np.nan), where=weight > 0)
    places = np.arange(len(values))
    for ends, beside in (
        (places[:half], places[half : half + max(period, 2)]),
        (places[len(values) - half :], places[: len(values) - half][-max(period, 2) :]),
    ):
        beside = beside[np.isfinite(means[beside])]
        if len(ends) and len(beside) > 1:
            means[ends] = np.polyval(np.polyfit(beside, means[beside], 1), ends)
    return np.asarray(means, np.float64)


def name_season(forecast: Forecast) -> str:
    """Return the name of a season by its length; of steps that are numbers, it has the longest one."""
    days = Step.parse(forecast.step).seconds * forecast.season / DAY
    if not days:
        return _SEASONS[0]
    return next((name for name, longest in _LONGEST.items() if days <= longest), _SEASONS[0])
