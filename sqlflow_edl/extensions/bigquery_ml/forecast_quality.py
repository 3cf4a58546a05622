"""Errors of a forecast in rows that follow the training rows: ML.EVALUATE of BigQuery ML with a query of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from edl.data.names import quote_part
from edl.features.arrays import numbers
from sqlflow_edl.extensions.bigquery_ml.functions import (
    ModelFunction,
    find_places,
    read_rows,
    select_with_past,
)
from sqlflow_edl.extensions.bigquery_ml.reference_columns import check_aggregation
from sqlflow_edl.syntax.dialects import dialect_named


def evaluate_later(function: ModelFunction) -> pa.Table | None:
    """Return one row of errors if all rows of the query are later than the training rows, else None.

    The past is read from the training query, so the rows are forecast as ML.FORECAST does. The scaled error is NULL.
    """
    forecast, label = function.trained.forecast, function.trained.label
    if forecast is None or not function.call.query or function.trained.query.source != function.source.url:
        return None
    rows = read_rows(function.source, function.statement)
    needed = (*forecast.series, forecast.time, label.column)
    if not rows.num_rows or not set(needed) <= set(rows.column_names):
        return None
    quote = dialect_named(function.source.dialect).name_quotes[0]
    last = f"SELECT MAX({quote_part(forecast.time, quote)}) AS last FROM (\n{function.training_query}\n) AS training"
    [latest] = function.source.stream(last).read_all().column("last").to_pylist()
    kind = rows.schema.field(forecast.time).type
    if latest is None or min(rows.column(forecast.time).to_pylist()) <= pa.scalar(latest).cast(kind).as_py():
        return None
    check_aggregation(function.call)
    statement = replace(
        function.statement, kind="predict", using=function.call.model, model=None, attributes=()
    )
    predicts = replace(function, statement=statement)
    predicted, computed = predicts.of_query(select_with_past(predicts, forecast, label))
    places = find_places(rows, predicted, (*forecast.series, forecast.time))
    values = predicted.column(computed[0]).combine_chunks().take(places)
    forecasts = values.to_numpy(zero_copy_only=False).astype(np.float64)
    actual = numbers(rows.column(label.column).combine_chunks(), label.column)
    is_known = np.isfinite(actual) & np.isfinite(forecasts)
    actual, forecasts = actual[is_known], forecasts[is_known]
    errors = np.abs(actual - forecasts)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(actual == 0, np.nan, errors / np.abs(actual))
        symmetric = np.where(errors == 0, 0.0, 2 * errors / (np.abs(actual) + np.abs(forecasts)))
    figures = {
        "mean_absolute_error": errors.mean(),
        "mean_squared_error": np.square(errors).mean(),
        "root_mean_squared_error": np.sqrt(np.square(errors).mean()),
        "mean_absolute_percentage_error": np.nanmean(shares) if np.isfinite(shares).any() else np.nan,
        "symmetric_mean_absolute_percentage_error": symmetric.mean(),
        "mean_absolute_scaled_error": np.nan,
    }
    return pa.table(
        {name: pa.array([value], pa.float64(), from_pandas=True) for name, value in figures.items()}
    )
