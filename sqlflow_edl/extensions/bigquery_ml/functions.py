"""Rows of functions of BigQuery ML that are made of predictions or of an explanation.

The training query is read again where the answer depends on it: for the share of anomalies among the training rows,
for the past of the series, and for the rows that ML.GLOBAL_EXPLAIN explains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.data import Source
from edl.data.names import free_name, quote_part, unique_names
from edl.errors import SemanticError, Span
from edl.extension_loader import defer, load
from edl.features.arrays import numbers
from edl.models.archive import Archive
from edl.spec import Forecast, JobSpec, Label
from sqlflow_edl.analysis.inference.used_model import columns_read
from sqlflow_edl.errors.spans import shift_spans, use_place_of
from sqlflow_edl.extensions.bigquery_ml.model_weights import centres_of
from sqlflow_edl.syntax.ast import Attribute, Name, Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.predict_calls import PredictCall

Floats = npt.NDArray[np.float64]
Predict = Callable[[Statement], tuple[pa.Table, tuple[str, ...]]]
OpenArchive = Callable[[Name], AbstractContextManager[Archive]]

_HORIZON, _LEVEL = 3, 0.95  # defaults of BigQuery ML
_MODULE = "sqlflow_edl.extensions.bigquery_ml"
rank_items = defer(f"{_MODULE}.factorization", "rank_items")
total_variance = defer(f"{_MODULE}.reductions", "total_variance")
_ERROR_FUNCTION = np.frompyfunc(math.erf, 1, 1)  # which numpy lacks


@dataclass(frozen=True)
class ModelFunction:
    """Call of such a function. statement: PREDICT over its query, without a query if it has none.

    trained: JobSpec of the model. source: where the call stands. predict: returns the rows of a statement without a
    target, and the names of the columns that it adds. open: opens the archive of a model.
    """

    call: PredictCall
    statement: Statement
    trained: JobSpec
    source: Source
    predict: Predict
    open: OpenArchive

    def rows(self) -> pa.Table:
        """Return the rows. Raises SemanticError, with its place, if the model or a setting does not suit."""
        return _FUNCTIONS[self.call.function](self)

    def setting(self, name: str, least: float, most: float) -> float | None:
        """Return a setting that is above `least` and below `most`, or None without it."""
        attribute = self.find_setting(name)
        if attribute is None:
            return None
        value: Any = getattr(attribute.value, "value", None)
        if isinstance(value, bool | str) or not least < value < most:
            raise SemanticError(
                f"{name} is a number between {least:g} and {most:g}", span=attribute.value.span
            )
        return float(value)

    def find_setting(self, name: str) -> Attribute | None:
        """Return the setting as it is written, the last one if it is written twice."""
        attributes = [attribute for attribute in self.call.settings if attribute.key.casefold() == name]
        return attributes[-1] if attributes else None

    def predicted(self, *, training: bool) -> tuple[pa.Table, tuple[str, ...]]:
        """Predict the rows of the call's query or of the training query; return the names of the new columns, too."""
        if not training:
            return self.predict(self.statement)
        past = self.of_query(self.training_query)
        if not past[0].num_rows:
            raise SemanticError(
                f"the query on which {self.call.model} was trained has no rows any more", span=self.span
            )
        return past

    def of_query(self, select: str) -> tuple[pa.Table, tuple[str, ...]]:
        """Predict the rows of a query that is not in the text of the statement."""
        with use_place_of(self.span):
            return self.predict(replace(self.statement, select=select, select_span=None))

    @property
    def training_query(self) -> str:
        """Query of the training rows. Raises SemanticError if it is one of another data source."""
        if self.trained.query.source != self.source.url:
            where = "elsewhere" if self.trained.imported else "on rows of another data source"
            raise SemanticError(
                f"{self.call.model} was trained {where}, and its training rows are needed here",
                span=self.span,
                hint="write ML.PREDICT(MODEL my_model, (SELECT …))",
            )
        return self.trained.query.select

    def refuse(self, setting: str, instead_of: str) -> None:
        """Raise SemanticError if a setting of another kind of model is written."""
        if attribute := self.find_setting(setting):
            raise SemanticError(
                f"{self.call.model} has no {setting}", span=attribute.key_span, hint=f"write {instead_of}"
            )

    @property
    def span(self) -> Span:
        return self.call.model.span


def read_rows(source: Source, statement: Statement) -> pa.Table:
    """Return the rows of the statement's query. Raises SourceError with its place."""
    with shift_spans(statement.select_span):
        return source.stream(statement.select).read_all()


def is_derived(call: PredictCall, trained: JobSpec) -> bool:
    """Return True if the rows of the call are made here rather than by a statement."""
    if call.is_derived:
        return True
    if call.function != "EVALUATE":
        return False
    is_linear = trained.model.name == "PCA" and not call.query
    return bool(trained.label.clusters) or is_linear or is_implicit(trained)


def is_implicit(trained: JobSpec) -> bool:
    """Return True for factors of implicit feedback: their evaluation compares orders of items."""
    return trained.model.params.get("feedback_type") == "implicit"


def _figures_of_rows(function: ModelFunction) -> pa.Table:
    """Return the figures that the rows of other statements make, by the kind of the model."""
    if is_implicit(function.trained):
        return rank_items(function)
    if function.trained.label.dimensions:
        return total_variance(function)
    return _separation(function)


# Anomalies -------------------------------------------------------------------------------------------------


def _anomalies(function: ModelFunction) -> pa.Table:
    """Return the rows with `is_anomaly` and the number that decides it.

    That is the score of an isolation forest, and the probability of a value that is nearer to its forecast. Of clusters
    it is the distance to the nearest centre, divided by the root
    mean square of the distances of the training rows to it, as in BigQuery ML.
    """
    label = function.trained.label
    forecast = function.trained.forecast
    if label.is_forecast and forecast is not None:
        function.refuse("contamination", "0.95 AS anomaly_prob_threshold")
        if not function.call.query:
            last = last_rows(function, forecast, label)
            function = replace(function, statement=replace(function.statement, select=last, select_span=None))
        return _of_forecast(function, forecast, label)
    if not label.is_unsupervised:
        raise SemanticError(
            f"{function.call.model} tells no anomalies",
            span=function.span,
            hint="train an IsolationForest, KMeans, Autoencoder, or a Forecast with quantiles",
        )
    function.refuse("anomaly_prob_threshold", "0.1 AS contamination")
    if not function.call.query:
        raise SemanticError(
            "ML.DETECT_ANOMALIES needs a query behind the model",
            span=function.span,
            hint=f"write ML.DETECT_ANOMALIES(MODEL {function.call.model}, STRUCT(0.1 AS contamination), (SELECT …))",
        )
    share = function.setting("contamination", 0, 0.5)
    if label.tells_anomalies:
        return _of_forest(function, share)
    if label.dimensions:
        return _of_errors(function, 0.1 if share is None else share)
    if share is None:
        raise SemanticError(
            "ML.DETECT_ANOMALIES of clusters needs the share of anomalies among the training rows",
            span=function.span,
            hint=f"write ML.DETECT_ANOMALIES(MODEL {function.call.model}, STRUCT(0.1 AS contamination), …)",
        )
    return _of_clusters(function, share, label.clusters)


def _of_forest(function: ModelFunction, share: float | None) -> pa.Table:
    """Return the rows with their scores; without another share the model's own threshold decides."""
    rows, computed = function.predicted(training=False)
    flags, scores = (rows.column(name) for name in computed)
    if share is not None and share != function.trained.loss.params.get("contamination"):
        past, names = function.predicted(training=True)
        limit = np.nanquantile(past.column(names[1]).to_numpy(), 1 - share)
        flags = _mask_above(scores.to_numpy(), limit)
    return with_columns(rows.drop_columns(list(computed)), {"is_anomaly": flags, "anomaly_score": scores})


def _of_errors(function: ModelFunction, share: float) -> pa.Table:
    """Return the rows with the mean squared errors of their features in a reduction."""
    rows, computed = function.predicted(training=False)
    past, names = function.predicted(training=True)
    limit = np.nanquantile(past.column(names[-1]).to_numpy(), 1 - share)
    errors = rows.column(computed[-1])
    added = {"is_anomaly": _mask_above(errors.to_numpy(), limit), "mean_squared_error": errors}
    return with_columns(rows.drop_columns(list(computed)), added)


def _of_clusters(function: ModelFunction, share: float, count: int) -> pa.Table:
    """Return the rows with their distances in units of the radius of their cluster."""
    rows, computed = function.predicted(training=False)
    past, names = function.predicted(training=True)
    clusters, distances = (past.column(name).to_numpy() for name in names)
    radius = _radius(clusters, distances, count)
    limit = np.nanquantile(distances / radius[clusters], 1 - share)
    clusters, distances = (rows.column(name).to_numpy() for name in computed)
    normalized = distances / radius[clusters]
    added = {
        "is_anomaly": _mask_above(normalized, limit),
        "normalized_distance": normalized,
        "centroid_id": clusters + 1,
    }
    return with_columns(rows.drop_columns(list(computed)), added)


def _radius(clusters: np.ndarray, distances: np.ndarray, count: int) -> np.ndarray:
    """Return the root mean square distance of each cluster, or of all rows for a cluster without distances."""
    is_finite = np.isfinite(distances)
    squares = np.bincount(clusters[is_finite], distances[is_finite] ** 2, count)
    rows = np.bincount(clusters[is_finite], minlength=count)
    total = squares.sum() / max(rows.sum(), 1)
    means = np.divide(squares, rows, out=np.full(count, total), where=squares > 0)
    return np.sqrt(np.where(means > 0, means, 1.0))


def _separation(function: ModelFunction) -> pa.Table:
    """Return the Davies-Bouldin index and the mean squared distance to the centre, of a query or the training rows."""
    if settings := function.call.attributes:
        raise SemanticError(
            f"{function.call.model} has clusters, whose evaluation has no settings", span=settings[0].key_span
        )
    predicts = replace(function.statement, kind="predict", using=function.call.model, model=None)
    rows, computed = replace(function, statement=predicts).predicted(training=not function.call.query)
    distances = rows.column(computed[1]).to_numpy()
    with function.open(function.call.model) as archive:
        is_finite, centres = np.isfinite(distances), centres_of(archive)
    clusters, distances = (
        rows.column(computed[0]).to_numpy()[is_finite].astype(np.int64),
        distances[is_finite],
    )
    figures = {
        "davies_bouldin_index": math.nan
        if centres is None
        else _davies_bouldin(clusters, distances, centres),
        "mean_squared_distance": np.square(distances).mean() if len(distances) else math.nan,
    }
    return pa.table({name: _array([value]) for name, value in figures.items()})


def _davies_bouldin(clusters: npt.NDArray[np.int64], distances: Floats, centres: Floats) -> float:
    """Return the mean over the clusters that have rows of the largest ratio to another one.

    The ratio of two clusters is the sum of their mean distances to the own centre, divided by the distance of the
    centres (Davies and Bouldin, 1979). NaN for fewer than two clusters.
    """
    rows = np.bincount(clusters, minlength=len(centres))
    used = rows > 0
    if used.sum() < 2:
        return math.nan
    spread, centres = (np.bincount(clusters, distances, len(centres))[used] / rows[used]), centres[used]
    lengths = np.square(centres).sum(axis=1)
    apart = np.sqrt(np.maximum(lengths[:, np.newaxis] + lengths - 2 * centres @ centres.T, 0))
    np.fill_diagonal(apart, np.inf)
    with np.errstate(divide="ignore"):
        return float(((spread[:, np.newaxis] + spread) / apart).max(axis=1).mean())


def _mask_above(values: np.ndarray, limit: float) -> pa.Array:
    return pa.array(values > limit, mask=np.isnan(values))


# Forecasts --------------------------------------------------------------------------------------------------


def _forecast_model(function: ModelFunction) -> pa.Table:
    """Return what ML.ARIMA_EVALUATE tells of a model: its season and holidays; NULL for what trees do not have."""
    forecast = function.trained.forecast
    if forecast is None or not function.trained.label.is_forecast:
        raise SemanticError(
            f"{function.call.model} is no forecast",
            span=function.span,
            hint=f"write ML.EVALUATE(MODEL {function.call.model})",
        )
    name_season = load("sqlflow_edl.extensions.bigquery_ml.forecast_parts", "name_season")
    season = name_season(forecast).upper() if forecast.season > 1 else "NO_SEASONALITY"
    numbers_of_arima = ("non_seasonal_p", "non_seasonal_d", "non_seasonal_q")
    columns: dict[str, pa.Array] = {name: pa.nulls(1, pa.int64()) for name in numbers_of_arima}
    columns["has_drift"] = pa.nulls(1, pa.bool_())
    columns |= {name: pa.nulls(1, pa.float64()) for name in ("log_likelihood", "AIC", "variance")}
    columns["seasonal_periods"] = pa.array([[season]])
    columns["has_holiday_effect"] = pa.array([isinstance(forecast.holidays, str)])
    columns |= {name: pa.array([False]) for name in ("has_spikes_and_dips", "has_step_changes")}
    columns["error_message"] = pa.nulls(1, pa.string())
    return pa.table(columns)


def forecast_rows(function: ModelFunction) -> pa.Table:
    """Return the next steps of each series, with the interval of a confidence level if the model has quantiles."""
    forecast, label = function.trained.forecast, function.trained.label
    if forecast is None or not label.is_forecast:
        raise SemanticError(
            f"{function.call.model} is no forecast",
            span=function.span,
            hint="train an ARIMA_PLUS or Forecast, or write ML.PREDICT(MODEL my_model, (SELECT …))",
        )
    horizon, level = _horizon(function, forecast), function.setting("confidence_level", 0, 1)
    has_interval = _has_interval(label)
    if level is not None and not has_interval:
        level_attribute = function.find_setting("confidence_level")
        raise _no_quantiles(function, level_attribute.span if level_attribute else None)
    if function.call.query and label.column not in function.source.schema(function.statement.select).names:
        rows, computed = function.of_query(select_with_past(function, forecast, label))
    else:
        rows, computed = function.predicted(training=not function.call.query)
    rows = _first_steps(rows, forecast, horizon)
    columns = {name: rows.column(name) for name in forecast.series}
    columns |= {"forecast_timestamp": rows.column(forecast.time), "forecast_value": rows.column(computed[0])}
    if has_interval:
        level = level or _LEVEL
        bounds = {q: rows.column(name) for q, name in zip(label.quantiles, computed[1:], strict=True)}
        values = rows.column(computed[0]).to_numpy()
        low, high = (
            _compute_bound(values, bounds, (1 - level) / 2, -1),
            _compute_bound(values, bounds, (1 + level) / 2, 1),
        )
        columns |= {
            "standard_error": _deviation(bounds),
            "confidence_level": pa.array(np.full(len(values), level)),
        }
        for kind in ("prediction", "confidence"):
            columns |= {f"{kind}_interval_lower_bound": low, f"{kind}_interval_upper_bound": high}
    return pa.table(columns)


def _deviation(bounds: Mapping[float, pa.ChunkedArray]) -> pa.Array:
    """Return the standard deviation of a normal distribution that has the outermost quantiles, NULL where unknown."""
    least, most, normal = min(bounds), max(bounds), NormalDist()
    width = bounds[most].to_numpy() - bounds[least].to_numpy()
    return _array(np.maximum(width, 0) / (normal.inv_cdf(most) - normal.inv_cdf(least)))


def _has_interval(label: Label) -> bool:
    return len(label.quantiles) > 1 and label.quantiles[0] < 0.5 < label.quantiles[-1]


def _no_quantiles(function: ModelFunction, span: Span | None) -> SemanticError:
    return SemanticError(
        f"{function.call.model} has no quantiles, which an interval needs",
        span=span,
        hint="train it WITH forecast.quantiles = [0.1, 0.9]",
    )


def _of_forecast(function: ModelFunction, forecast: Forecast, label: Label) -> pa.Table:
    """Return the rows with the probability that a value is nearer to its forecast than theirs, and the interval of it.

    The past is read from the training query, up to the first row of the series. Distances are distributed as in a
    normal distribution that has the outermost quantiles of the forecast, on each side its own.
    """
    if not _has_interval(label):
        raise _no_quantiles(function, function.span)
    limit = function.setting("anomaly_prob_threshold", 0, 1) or _LEVEL
    rows = read_rows(function.source, function.statement)
    if lacking := [
        column
        for column in (*forecast.series, forecast.time, label.column)
        if column not in rows.column_names
    ]:
        raise SemanticError(
            f"the query lacks the columns {', '.join(lacking)} of the training query",
            span=function.statement.select_span,
        )
    predicted, computed = function.of_query(select_with_past(function, forecast, label))
    places = find_places(rows, predicted, (*forecast.series, forecast.time))
    value, low, high = (
        predicted.column(name).combine_chunks().take(places).to_numpy(zero_copy_only=False).astype(np.float64)
        for name in (computed[0], computed[1], computed[-1])
    )
    actual = numbers(rows.column(label.column).combine_chunks(), label.column)
    normal, quantiles = NormalDist(), label.quantiles
    below, above = (
        (value - low) / -normal.inv_cdf(quantiles[0]),
        (high - value) / normal.inv_cdf(quantiles[-1]),
    )
    below, above = np.maximum(below, 0), np.maximum(above, 0)  # deviations on both sides
    distance, deviation = np.abs(actual - value), np.where(actual < value, below, above)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = np.where(distance == 0, 0.0, distance / deviation)
    probability = _ERROR_FUNCTION(deviations / np.sqrt(2)).astype(np.float64)
    times = normal.inv_cdf((1 + limit) / 2)
    added = {
        "is_anomaly": _mask_above(probability, limit),
        "lower_bound": value - times * below,
        "upper_bound": value + times * above,
        "anomaly_probability": probability,
    }
    return with_columns(rows, added)


def select_with_past(function: ModelFunction, forecast: Forecast, label: Label) -> str:
    """Return the query of the rows to judge, without their values, behind rows of the training query.

    The training rows are the rows of each series before its first row to judge.
    """
    quote = dialect_named(function.source.dialect).name_quotes[0]
    time, since = quote_part(forecast.time, quote), quote_part(free_name("since", forecast.series), quote)
    series = [quote_part(name, quote) for name in forecast.series]
    names = [quote_part(name, quote) for name in columns_read(function.trained)]
    unknown = [f"NULL AS {name}" if name == quote_part(label.column, quote) else name for name in names]
    rows = f"(\n{function.statement.select}\n)"
    begin = f"SELECT {', '.join([*series, f'MIN({time}) AS {since}'])} FROM {rows} AS later"
    if series:
        same = " AND ".join(f"past.{name} = first.{name}" for name in series)
        joined = f"JOIN ({begin} GROUP BY {', '.join(series)}) AS first ON {same}"
    else:
        joined = f"CROSS JOIN ({begin}) AS first"
    return (
        f"SELECT {', '.join(f'past.{name}' for name in names)} FROM (\n{function.training_query}\n) AS past {joined} "
        f"WHERE past.{time} < first.{since} UNION ALL SELECT {', '.join(unknown)} FROM {rows} AS later"
    )


def last_rows(function: ModelFunction, forecast: Forecast, label: Label) -> str:
    """Return the query of the last rows of each series of the training, as many as the model forecasts."""
    quote = dialect_named(function.source.dialect).name_quotes[0]
    columns = columns_read(function.trained)
    series = ", ".join(quote_part(name, quote) for name in forecast.series)
    place = quote_part(free_name("place", columns), quote)
    window = f"{f'PARTITION BY {series} ' if series else ''}ORDER BY {quote_part(forecast.time, quote)} DESC"
    rows, value = f"(\n{function.training_query}\n) AS training", quote_part(label.column, quote)
    valid = f"SELECT * FROM {rows} WHERE {value} IS NOT NULL"
    numbered = f"SELECT known.*, ROW_NUMBER() OVER ({window}) AS {place} FROM ({valid}) AS known"
    names = ", ".join(quote_part(name, quote) for name in columns)
    return f"SELECT {names} FROM ({numbered}) AS numbered WHERE {place} <= {forecast.horizon}"


def find_places(rows: pa.Table, other_rows: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Return the place of each row in `other_rows`, where the keys are the same; NULL if it is not there."""
    row, place = free_name("row", keys), free_name("place", keys)
    left = rows.select(keys).append_column(row, pa.array(np.arange(rows.num_rows)))
    types = [(name, rows.schema.field(name).type) for name in keys]
    right = (
        other_rows.select(keys)
        .cast(pa.schema(types))
        .append_column(place, pa.array(np.arange(other_rows.num_rows)))
    )
    joined = left.join(right, list(keys), join_type="left outer").sort_by(row)
    return joined.column(place).combine_chunks()


def _horizon(function: ModelFunction, forecast: Forecast) -> int:
    horizon = function.setting("horizon", 0, float("inf"))
    attribute = function.find_setting("horizon")
    if horizon is None or attribute is None:
        return min(_HORIZON, forecast.horizon)
    if horizon > forecast.horizon or horizon % 1:
        raise SemanticError(
            f"{function.call.model} forecasts up to {forecast.horizon:,} steps, a whole number",
            span=attribute.value.span,
            hint=f"train it with a horizon of {int(horizon):,}" if horizon > forecast.horizon else None,
        )
    return int(horizon)


def _first_steps(rows: pa.Table, forecast: Forecast, horizon: int) -> pa.Table:
    """Return the first rows of each series by time."""
    rows = rows.sort_by([(name, "ascending") for name in (*forecast.series, forecast.time)])
    new = np.zeros(rows.num_rows, bool)
    new[:1] = True
    for name in forecast.series:
        codes = (
            rows.column(name).combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        )
        new[1:] |= codes[1:] != codes[:-1]
    places = np.arange(rows.num_rows)
    starts = np.maximum.accumulate(np.where(new, places, 0))
    return rows.filter(pa.array(places - starts < horizon))


def _compute_bound(
    values: np.ndarray, by_level: Mapping[float, pa.ChunkedArray], level: float, side: int
) -> pa.Array | pa.ChunkedArray:
    """Return the quantile `level`: the model's own, or one as far away as in a normal distribution."""
    if exact := [
        exact_column for some_level, exact_column in by_level.items() if abs(some_level - level) < 1e-9
    ]:
        return exact[0]
    outermost = max(by_level) if side > 0 else min(by_level)
    normal = NormalDist()
    scale = normal.inv_cdf(level) / normal.inv_cdf(outermost)
    distances = np.maximum((by_level[outermost].to_numpy() - values) * side, 0)
    return _array(values + side * scale * distances)


def with_columns(rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """Return the rows with further columns; their names are made to differ from the names that are there."""
    names = unique_names(list(columns), taken=rows.column_names)
    for name, values in zip(names, columns.values(), strict=True):
        is_column = isinstance(values, pa.Array | pa.ChunkedArray)
        rows = rows.append_column(name, values if is_column else _array(values))
    return rows


def _array(values: Any) -> pa.Array:
    """Return the values as Arrow, NULL for NaN."""
    return pa.array(values, from_pandas=True)


_FUNCTIONS: Mapping[str, Callable[[ModelFunction], pa.Table]] = {
    "ARIMA_EVALUATE": _forecast_model,
    "ADVANCED_WEIGHTS": defer(f"{_MODULE}.weight_errors", "explain_weights"),
    "DETECT_ANOMALIES": _anomalies,
    "EVALUATE": _figures_of_rows,
    "EXPLAIN_FORECAST": defer(f"{_MODULE}.forecast_parts", "explain_forecast"),
    "FORECAST": forecast_rows,
    "GENERATE_EMBEDDING": defer(f"{_MODULE}.reductions", "embed_rows"),
    "GLOBAL_EXPLAIN": defer(f"{_MODULE}.column_importances", "explain_columns"),
    "PRINCIPAL_COMPONENTS": defer(f"{_MODULE}.reductions", "list_components"),
    "PRINCIPAL_COMPONENT_INFO": defer(f"{_MODULE}.reductions", "describe_components"),
    "RECONSTRUCTION_LOSS": defer(f"{_MODULE}.reductions", "measure_rows"),
    "RECOMMEND": defer(f"{_MODULE}.factorization", "recommend"),
    "VALIDATE_DATA_SKEW": defer(f"{_MODULE}.data_statistics", "measure_skew"),
}
