"""Features of networks in ONNX: the dense values, positions and ids of `edl.features.transform`, in a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edl.frameworks.onnx.columns import finite_number, part_of_time, statistics
from edl.frameworks.onnx.graph import Graph, GraphValue
from edl.spec import (
    Feature,
    IsNull,
    Log,
    Normalize,
    Numeric,
    Periodic,
    PiecewiseLinear,
    Standardize,
    Year,
    is_encoding,
)

_LARGEST = 1e30  # of a feature, as in `edl.features.transform`


def compute_values(graph: Graph, feature: Feature) -> GraphValue:
    """Return the values of a feature, or the number that the network encodes, float32 (rows, width)."""
    if is_encoding(feature):
        return graph.cast(statistics(graph, feature), "FLOAT")
    return _narrow(graph, VALUES[type(feature)](graph, feature))


def _position(graph: Graph, feature: PiecewiseLinear) -> GraphValue:
    """Return the position of a number among its boundaries, float64 (rows,)."""
    value = finite_number(graph, feature.column)
    bounds = np.asarray(feature.boundaries, dtype=np.float64)
    missing = -1.0 if feature.nulls else feature.bins / 2
    inside = _clip_value(
        graph, _fill_missing(graph, value, float(bounds[0])), float(bounds[0]), float(bounds[-1])
    )
    above = graph.add("GreaterOrEqual", _tall(graph, inside), graph.constant(bounds[None, 1:-1]))
    counted = graph.add(
        "ReduceSum", graph.cast(above, "INT64"), graph.constant(np.array([1], dtype=np.int64)), keepdims=0
    )
    low = graph.add("Gather", graph.constant(bounds[:-1]), counted)
    slope = graph.add("Gather", graph.constant(1 / np.diff(bounds)), counted)
    inner = (inside - low) * slope + graph.cast(counted, "DOUBLE")
    is_null = graph.add("IsNaN", value)
    return graph.add("Where", is_null, graph.constant(np.array(missing)), inner)


def _standardize_number(graph: Graph, feature: Standardize | Periodic) -> GraphValue:
    """Return (x - mean) / std, float64 (rows,)."""
    value = _fill_missing(graph, finite_number(graph, feature.column), feature.mean)
    return _scale_value(value, feature.mean, feature.std)


def _narrow(graph: Graph, value: GraphValue) -> GraphValue:
    """Narrow numbers (rows,) to float32 (rows, 1); those beyond ±`_LARGEST` become it."""
    without_nan = graph.add("Where", graph.add("IsNaN", value), graph.constant(np.array(0.0)), value)
    size = graph.add("Abs", without_nan)
    is_large = graph.add("Greater", size, graph.constant(np.array(_LARGEST)))
    large = graph.add("Sign", without_nan) * _LARGEST
    return graph.cast(_tall(graph, graph.add("Where", is_large, large, without_nan)), "FLOAT")


def _tall(graph: Graph, value: GraphValue) -> GraphValue:
    return graph.add("Unsqueeze", value, graph.constant(np.array([1], dtype=np.int64)))


def _fill_missing(graph: Graph, value: GraphValue, mean: float) -> GraphValue:
    return graph.add("Where", graph.add("IsNaN", value), graph.constant(np.array(float(mean))), value)


def _clip_value(graph: Graph, value: GraphValue, low: float, high: float) -> GraphValue:
    return graph.add("Clip", value, graph.constant(np.array(low)), graph.constant(np.array(high)))


def _scale_value(value: GraphValue, by: float, scale: float) -> GraphValue:
    if scale == 0:
        return value * 0.0
    graph = value.graph
    return graph.add("Div", value - by, graph.constant(np.array(float(scale))))


def _numeric(graph: Graph, feature: Numeric) -> GraphValue:
    return _fill_missing(graph, finite_number(graph, feature.column), feature.mean)


def _standardize(graph: Graph, feature: Standardize) -> GraphValue:
    scaled = _standardize_number(graph, feature)
    if not feature.limit:
        return scaled
    part = graph.add("Div", scaled, graph.constant(np.array(feature.limit)))
    return graph.add("Div", scaled, graph.add("Sqrt", part * part + 1.0))


def _normalize(graph: Graph, feature: Normalize) -> GraphValue:
    value = _fill_missing(graph, finite_number(graph, feature.column), feature.mean)
    return _scale_value(value, feature.min, feature.max - feature.min)


def _year(graph: Graph, feature: Year) -> GraphValue:
    year = _fill_missing(graph, part_of_time(graph, feature.column, "year"), feature.mean)
    return _scale_value(year, feature.mean, feature.std)


def _log(graph: Graph, feature: Log) -> GraphValue:
    value = finite_number(graph, feature.column)
    has_one = graph.add("Greater", value, graph.constant(np.array(-1.0)))  # False for NaN
    return graph.add("Log", graph.add("Where", has_one, value, graph.constant(np.array(feature.mean))) + 1.0)


def _is_null(graph: Graph, feature: IsNull) -> GraphValue:
    return graph.cast(graph.add("IsNaN", finite_number(graph, feature.column)), "DOUBLE")


VALUES: Mapping[type, Callable[[Graph, Any], GraphValue]] = {
    Numeric: _numeric,
    Standardize: _standardize,
    Normalize: _normalize,
    Year: _year,
    Log: _log,
    PiecewiseLinear: _position,
    Periodic: _standardize_number,
    IsNull: _is_null,
}
NUMBERS = VALUES.keys()  # features of a number
