"""TensorFlow SavedModel of a network over the raw columns: the graph of its ONNX model in TensorFlow's operators."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from edl.arrays import Array
from edl.frameworks.networks.onnx import NetworkFile
from edl.frameworks.onnx.columns import is_text
from edl.frameworks.onnx.graph import OUTPUTS, SCORES, GraphValue
from edl.frameworks.onnx.tensors import Tensors
from edl.spec import source_columns

_TYPES = {"FLOAT": tf.float32, "DOUBLE": tf.float64, "INT64": tf.int64, "STRING": tf.string}
_LARGEST_WHOLE = 2.0**53
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def save(file: NetworkFile, path: Path) -> None:
    """Write the model. Its function `serve` takes a dict of columns by their names, (rows,) each.

    It returns a dict with `outputs` and, for classes, `scores`, as the ONNX model does. The signature `serving_default`
    names the columns; a column without a plain word as its name is `column0` and so on, by its place.
    """
    texts = {name for feature in file.spec.features if is_text(feature) for name in source_columns(feature)}
    columns = {
        name: tf.TensorSpec((None,), tf.string if name in texts else tf.float64, name=_argument(name, place))
        for place, name in enumerate(file.spec.columns)
    }
    module = tf.Module()
    module.tables = []  # tracked, so that they are saved

    def serve(cells: dict[str, Any]) -> dict[str, Any]:
        graph = _KerasTensors(cells, module.tables)
        outputs, scores = file.results(graph)
        answer = {OUTPUTS: graph.tensor(outputs)}
        return answer if scores is None else {**answer, SCORES: graph.tensor(scores)}

    module.serve = tf.function(serve, input_signature=[columns], autograph=False)
    tf.saved_model.save(module, str(path), signatures=module.serve)


def _argument(name: str, place: int) -> str:
    return name if _WORD.fullmatch(name) else f"column{place}"


class _KerasTensors(Tensors):
    """Graph with tensors of the traced function as its values."""

    def __init__(self, columns: Mapping[str, Any], tables: list[Any]) -> None:
        super().__init__(columns, _OPERATORS)
        self._tables = tables

    def constant(self, values: Array) -> GraphValue:
        return self.value(tf.constant(values))

    def convert(self, tensor: Any, kind: str) -> Any:
        return tf.cast(tensor, _TYPES[kind])

    def positions(self, value: GraphValue, keys: Array) -> GraphValue:
        keys_tensor = self.tensor(value)
        is_known = tf.ones_like(keys_tensor, tf.bool)
        if keys.dtype != object:
            is_known = (keys_tensor == tf.floor(keys_tensor)) & (tf.abs(keys_tensor) < _LARGEST_WHOLE)
            keys_tensor = tf.cast(tf.where(is_known, keys_tensor, 0.0), tf.int64)
        with tf.init_scope():
            typed = tf.constant(keys.tolist() if keys.dtype == object else keys.astype(np.int64))
            pairs = tf.lookup.KeyValueTensorInitializer(typed, tf.range(len(keys), dtype=tf.int64))
            self._tables.append(tf.lookup.StaticHashTable(pairs, default_value=-1))
        row_numbers = self._tables[-1].lookup(keys_tensor)
        number = tf.cast(row_numbers, tf.float64)
        return self.value(tf.where(is_known & (row_numbers >= 0), number, tf.constant(math.nan, tf.float64)))


def _one_hot(ids: Any, depth: Any, ends: Any) -> Any:
    return tf.one_hot(ids, tf.cast(depth, tf.int32), dtype=ends.dtype)


def _gather(values: Any, places: Any, axis: int = 0) -> Any:
    return tf.gather(values, places, axis=axis)


def _unsqueeze(values: Any, axis: Any) -> Any:
    return tf.expand_dims(values, int(tf.get_static_value(axis)[0]))


_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Abs": tf.abs,
    "Add": tf.add,
    "And": tf.logical_and,
    "Clip": tf.clip_by_value,
    "Concat": lambda *values, axis: tf.concat(values, axis),
    "Cos": tf.cos,
    "Div": tf.divide,
    "Einsum": lambda a, b, equation: tf.einsum(equation, a, b),
    "Elu": tf.nn.elu,
    "Equal": tf.equal,
    "Erf": tf.math.erf,
    "Exp": tf.exp,
    "Floor": tf.floor,
    "Gather": _gather,
    "Greater": tf.greater,
    "GreaterOrEqual": tf.greater_equal,
    "IsInf": tf.math.is_inf,
    "IsNaN": tf.math.is_nan,
    "Less": tf.less,
    "Log": tf.math.log,
    "MatMul": tf.matmul,
    "Mul": tf.multiply,
    "Not": tf.logical_not,
    "OneHot": _one_hot,
    "ReduceMean": lambda values, axis, keepdims: tf.reduce_mean(values, axis, keepdims=bool(keepdims)),
    "ReduceSum": lambda values, axis, keepdims: tf.reduce_sum(values, axis, keepdims=bool(keepdims)),
    "Relu": tf.nn.relu,
    "Reshape": tf.reshape,
    "Selu": tf.nn.selu,
    "Sigmoid": tf.sigmoid,
    "Sign": tf.sign,
    "Sin": tf.sin,
    "Softmax": tf.nn.softmax,
    "Softplus": tf.math.softplus,
    "Sqrt": tf.sqrt,
    "Sub": tf.subtract,
    "Tanh": tf.tanh,
    "Unsqueeze": _unsqueeze,
    "Where": tf.where,
}
