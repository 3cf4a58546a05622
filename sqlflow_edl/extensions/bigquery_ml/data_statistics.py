"""Statistics of rows, and how far two sets of rows are apart: ML.DESCRIBE_DATA, ML.VALIDATE_DATA_SKEW and _DRIFT.

All rows of the queries are read into memory. Numbers are compared by the Jensen-Shannon divergence of their histograms,
with logarithms to the base 2, so that it is from 0 to 1; other values by the largest difference of a value's share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.data import Source
from edl.errors import SemanticError, Span, did_you_mean
from sqlflow_edl.errors.spans import use_place_of
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction, read_rows
from sqlflow_edl.syntax.ast import Constant, MapValue, Statement
from sqlflow_edl.syntax.predict_calls import PredictCall

Floats = npt.NDArray[np.float64]

_LARGEST, _DIVERGENCE = "L_INFTY", "JENSEN_SHANNON_DIVERGENCE"
_LIMIT = 0.3  # of BigQuery ML
_BINS = 10
_TOP, _QUANTILES, _QUANTILES_OF_LENGTHS = 1, 2, 10  # defaults of BigQuery ML
_MOST = 1000  # of a setting


def describe_rows(call: PredictCall, statement: Statement, source: Source) -> pa.Table:
    """Return the rows of a function without a model. statement: with its first query."""
    rows = read_rows(source, statement)
    if call.function == "DESCRIBE_DATA":
        return _describe(rows, call)
    with use_place_of(call.model.span):
        compared = source.stream(call.compared).read_all()
    return _compare(rows, compared, rows.column_names, call)


def measure_skew(function: ModelFunction) -> pa.Table:
    """Return how far each column of a query is from the rows of the training query, which is run again."""
    before = function.source.stream(function.training_query).read_all()
    rows = read_rows(function.source, function.statement)
    return _compare(before, rows, function.trained.columns, function.call)


# Descriptions ----------------------------------------------------------------------------------------------


def _describe(rows: pa.Table, call: PredictCall) -> pa.Table:
    """Return a row for each column, in the columns of the reference. NULL stands for what a type does not have."""
    quantiles, of_lengths, top = (
        _whole(call, name, usual)
        for name, usual in (
            ("num_quantiles", _QUANTILES),
            ("num_array_length_quantiles", _QUANTILES_OF_LENGTHS),
            ("top_k", _TOP),
        )
    )
    descriptions = [
        {"name": name, **_describe_column(rows.column(name), quantiles, of_lengths, top)}
        for name in rows.column_names
    ]
    return pa.Table.from_pylist(descriptions, schema=_DESCRIPTION)


_DESCRIPTION = pa.schema(
    [
        ("name", pa.string()),
        *((name, pa.int64()) for name in ("num_rows", "num_nulls", "num_zeros")),
        *((name, pa.string()) for name in ("min", "max")),
        *((name, pa.float64()) for name in ("mean", "stddev", "median")),
        ("quantiles", pa.list_(pa.float64())),
        ("unique", pa.int64()),
        ("avg_string_length", pa.float64()),
        ("num_values", pa.int64()),
        ("top_values", pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))),
        *((name, pa.int64()) for name in ("min_array_length", "max_array_length")),
        ("avg_array_length", pa.float64()),
        ("total_array_length", pa.int64()),
        ("array_length_quantiles", pa.list_(pa.int64())),
        ("dimension", pa.int64()),
    ]
)


def _describe_column(column: pa.ChunkedArray, quantiles: int, of_lengths: int, top: int) -> dict[str, object]:
    values = column.combine_chunks()
    facts: dict[str, object] = {"num_rows": len(values), "num_nulls": values.null_count}
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        facts |= _describe_lengths(values, of_lengths)
        values = values.flatten()
    elif pa.types.is_fixed_size_list(values.type):
        facts["dimension"] = values.type.list_size
        values = values.flatten()
    valid = values.drop_null()
    facts["num_values"] = len(valid)
    if _is_number(valid.type):
        return facts | _describe_numbers(_numbers(valid), valid, quantiles)
    texts = (
        valid.cast(pa.string())
        if _is_plain(valid.type)
        else pa.array([str(value) for value in valid.to_pylist()])
    )
    if pa.types.is_string(valid.type) or pa.types.is_large_string(valid.type):
        facts["avg_string_length"] = pc.mean(pc.utf8_length(texts)).as_py()
    elif _is_plain(valid.type) and len(valid):
        bounds = pc.min_max(valid.cast(pa.int8()) if pa.types.is_boolean(valid.type) else valid).as_py()
        of_text = {0: "false", 1: "true"} if pa.types.is_boolean(valid.type) else {}
        facts |= {name: of_text.get(value, str(value)) for name, value in bounds.items()}
    counts = texts.value_counts()
    order = sorted(counts.to_pylist(), key=lambda pair: (-pair["counts"], pair["values"]))
    return facts | {
        "unique": len(counts),
        "top_values": [{"value": pair["values"], "count": pair["counts"]} for pair in order[:top]],
    }


def _describe_lengths(values: pa.Array, count: int) -> dict[str, object]:
    lengths = pc.list_value_length(values).drop_null().to_numpy().astype(np.int64)
    if not len(lengths):
        return {"total_array_length": 0}
    return {
        "min_array_length": int(lengths.min()),
        "max_array_length": int(lengths.max()),
        "avg_array_length": float(lengths.mean()),
        "total_array_length": int(lengths.sum()),
        "array_length_quantiles": [int(value) for value in _quantiles(lengths, count)],
    }


def _describe_numbers(numbers: Floats, values: pa.Array, count: int) -> dict[str, object]:
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return {}
    bounds = pc.min_max(values).as_py()
    return {
        "num_zeros": int((numbers == 0).sum()),
        **{name: str(bound) for name, bound in bounds.items()},
        "mean": float(numbers.mean()),
        "stddev": float(numbers.std(ddof=1)) if len(numbers) > 1 else None,
        "median": float(np.median(numbers)),
        "quantiles": [float(value) for value in _quantiles(numbers, count)],
    }


def _quantiles(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return the bounds of so many parts of equal size: the least value, those between, and the largest."""
    bounds = np.linspace(0, 1, count + 1)
    return np.asarray(np.quantile(values, bounds, method="closest_observation"))


def _whole(call: PredictCall, name: str, usual: int) -> int:
    value = _setting(call, name, usual)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise SemanticError(f"{name} is a whole number from 1 to {_MOST:,}", span=_place(call, name))
    return value


# Comparisons -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    """Metrics and thresholds of numbers and of other values."""

    numbers: tuple[str, float]
    categories: tuple[str, float]
    of_columns: Mapping[str, float]  # other thresholds of some columns


def _compare(before: pa.Table, rows: pa.Table, columns: Collection[str], call: PredictCall) -> pa.Table:
    """Return a row for each column of both tables. Raises SemanticError if they have none in common."""
    limits = _Limits(
        (
            _metric(call, "numerical_metric_type", (_DIVERGENCE,)),
            _threshold(call, "numerical_default_threshold"),
        ),
        (
            _metric(call, "categorical_metric_type", (_LARGEST, _DIVERGENCE)),
            _threshold(call, "categorical_default_threshold"),
        ),
        {
            name: _check_threshold(limit.value, name, limit.span)
            for attribute in call.settings
            if isinstance(attribute.value, MapValue)
            for name, limit in attribute.value.items
            if isinstance(limit, Constant)
        },
    )
    if unknown := limits.of_columns.keys() - set(columns):
        name = min(unknown)
        raise SemanticError(
            f"there is no column {name} to compare", span=call.model.span, hint=did_you_mean(name, columns)
        )
    common = [name for name in columns if name in before.column_names and name in rows.column_names]
    if not common:
        raise SemanticError(f"the rows have none of the columns {', '.join(columns)}", span=call.model.span)
    comparisons = list(_compare_columns(before, rows, common, limits))
    schema = pa.schema(
        [
            ("input", pa.string()),
            ("metric", pa.string()),
            ("threshold", pa.float64()),
            ("value", pa.float64()),
            ("is_anomaly", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist(comparisons, schema=schema)


def _compare_columns(
    before: pa.Table, rows: pa.Table, columns: Sequence[str], limits: _Limits
) -> Iterator[dict[str, object]]:
    for name in columns:
        then, now = before.column(name).combine_chunks(), rows.column(name).combine_chunks()
        is_number = _is_number(then.type) and _is_number(now.type)
        metric, threshold = limits.numbers if is_number else limits.categories
        threshold = limits.of_columns.get(name, threshold)
        shares = _shares_of_numbers(then, now) if is_number else _shares_of_values(then, now)
        value = None if shares is None else _METRICS[metric](*shares)
        yield {
            "input": name,
            "metric": metric,
            "threshold": threshold,
            "value": value,
            "is_anomaly": None if value is None else value > threshold,
        }


def _shares_of_numbers(then: pa.Array, now: pa.Array) -> tuple[Floats, Floats] | None:
    """Return the shares of the values between the bounds of both histograms, and of missing ones; None without rows.

    The values of a bin count as evenly spread over it.
    """
    both = [_numbers(values) for values in (then, now)]
    finite = [numbers[np.isfinite(numbers)] for numbers in both]
    if not all(len(numbers) for numbers in finite):
        return None
    edges = [np.linspace(numbers.min(), numbers.max(), _BINS + 1) for numbers in finite]
    bounds = np.unique(np.concatenate(edges))
    shares = []
    for numbers, bounds_of, all_values in zip(finite, edges, both, strict=True):
        if bounds_of[0] == bounds_of[-1]:  # one value, a step
            below = (bounds >= bounds_of[0]).astype(np.float64)
        else:
            counts, _ = np.histogram(numbers, bounds_of)
            below = np.interp(bounds, bounds_of, np.concatenate([[0], np.cumsum(counts)]) / len(numbers))
        parts = np.concatenate([[below[0]], np.diff(below)]) * len(numbers)
        shares.append(np.append(parts, len(all_values) - len(numbers)) / len(all_values))
    return shares[0], shares[1]


def _shares_of_values(then: pa.Array, now: pa.Array) -> tuple[Floats, Floats] | None:
    """Return the shares of each value, NULL among them; None without rows."""
    if not len(then) or not len(now):
        return None
    counts = [_count_values(values) for values in (then, now)]
    values = list(dict.fromkeys([*counts[0], *counts[1]]))
    first, second = (
        np.array([count.get(value, 0) for value in values], np.float64) / sum(count.values())
        for count in counts
    )
    return first, second


def _count_values(values: pa.Array) -> dict[str | None, int]:
    if not _is_plain(values.type):
        values = pa.array(
            [None if value is None else str(value) for value in values.to_pylist()], pa.string()
        )
    pairs = values.cast(pa.string()).value_counts().to_pylist()
    return {pair["values"]: pair["counts"] for pair in pairs}


def _largest_difference(first: Floats, second: Floats) -> float:
    return float(np.abs(first - second).max())


def _divergence(first: Floats, second: Floats) -> float:
    """Return the Jensen-Shannon divergence to the base 2 (Lin, 1991)."""
    middle = (first + second) / 2
    halves = (
        np.sum(shares[shares > 0] * np.log2(shares[shares > 0] / middle[shares > 0]))
        for shares in (first, second)
    )
    return float(max(sum(halves) / 2, 0.0))


_METRICS: Mapping[str, Callable[[Floats, Floats], float]] = {
    _LARGEST: _largest_difference,
    _DIVERGENCE: _divergence,
}


def _threshold(call: PredictCall, name: str) -> float:
    value = _setting(call, name, _LIMIT)
    return float(_LIMIT) if value == _LIMIT else _check_threshold(value, name, _place(call, name))


def _check_threshold(value: object, name: str, span: Span) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise SemanticError(f"{name} is a number from 0 to 1", span=span)
    return float(value)


def _metric(call: PredictCall, name: str, metrics: Sequence[str]) -> str:
    value = str(_setting(call, name, metrics[0])).upper()
    if value not in metrics:
        hint = did_you_mean(value, metrics)
        raise SemanticError(f"there is no {name} {value}", span=_place(call, name), hint=hint)
    return value


def _setting(call: PredictCall, name: str, usual: object) -> object:
    values = [getattr(one.value, "value", None) for one in call.settings if one.key.casefold() == name]
    return values[-1] if values else usual


def _place(call: PredictCall, name: str) -> Any:
    return next(one.value.span for one in reversed(call.settings) if one.key.casefold() == name)


# Values ----------------------------------------------------------------------------------------------------


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_plain(kind: pa.DataType) -> bool:
    """Return True for types that Arrow writes as texts."""
    return (
        _is_number(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )


def _numbers(values: pa.Array) -> Floats:
    """Return the values as numbers, NaN for NULL."""
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
