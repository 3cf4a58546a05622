"""What a generated Keras program needs besides Keras: its inputs, and its features as one tensor.

Keras runs on TensorFlow here; importing this module sets `KERAS_BACKEND`, and refuses another backend.

Names of inputs and layers come from positions (`dense`, `f0`, `f1`, …), never from column names: Keras refuses `/`
in a name, and a column may be called anything. The vectors of an embedding start uniform in
[-EMBEDDING_SCALE, EMBEDDING_SCALE], as in `edl.torch`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from edl.errors import JobError
from edl.features import Entry, Features, Inputs
from edl.nn.initial import EMBEDDING_SCALE
from edl.spec import Embedding

if "keras" not in sys.modules:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras

if keras.backend.backend() != "tensorflow":
    raise JobError(
        f"Keras was loaded with the backend {keras.backend.backend()}; edl runs it on tensorflow",
        hint="set KERAS_BACKEND=tensorflow before keras is imported",
    )


def feature_inputs(features: Features | Inputs) -> dict[str, Any]:
    """A `keras.Input` for each array of `features.transform(batch)`, under the same name."""
    return {entry.name: _input(entry) for entry in features.entries}


def concatenated(features: Features, inputs: dict[str, Any]) -> Any:
    """The features as one tensor, float32 (rows, features.width): the entries one after another."""
    blocks = [_block(entry, inputs[entry.name]) for entry in features.entries]
    return blocks[0] if len(blocks) == 1 else keras.layers.Concatenate()(blocks)


def weighted_sum(features: Features, inputs: dict[str, Any], units: int = 1) -> Any:
    """A weight for each number and for each id of each category, added up: float32 (rows, units).

    What a Dense layer without bias gives on one-hot rows, without making them. Weights start at 0.
    """
    dense = [entry for entry in features.entries if entry.kind == "dense"]
    categories = [entry for entry in features.entries if entry.kind == "category"]
    parts = []
    if dense:
        weights = keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros")
        parts.append(weights(inputs[dense[0].name]))
    if categories:
        first = np.cumsum([0, *(entry.num_ids for entry in categories)])
        weights = keras.layers.Embedding(int(first[-1]), units, embeddings_initializer="zeros")
        ids = keras.ops.stack([inputs[entry.name] for entry in categories], axis=1) + first[:-1]
        parts.append(keras.ops.sum(weights(ids), axis=1))
    return parts[0] if len(parts) == 1 else keras.layers.Add()(parts)


def by_class(labels: Any, weights: Sequence[float]) -> Any:
    """The weight of each row's class, float32 (n,), as losses are. labels: (n,) classes, or (n, 1) 0 and 1."""
    positions = keras.ops.cast(keras.ops.reshape(labels, (-1,)), "int32")
    return keras.ops.take(keras.ops.convert_to_tensor(weights, "float32"), positions)


def _input(entry: Entry) -> Any:
    """The tensor is called as the array is, the layer is not: a Dense layer is `dense` unless it is told otherwise."""
    shape, dtype = ((entry.width,), "float32") if entry.kind == "dense" else ((), "int64")
    tensor = keras.Input(shape, dtype=dtype, name=f"{entry.name}_input")
    tensor.name = entry.name
    return tensor


def _block(entry: Entry, tensor: Any) -> Any:
    if entry.kind == "dense":
        return tensor
    if isinstance(entry.feature, Embedding):
        return _vectors(entry, tensor)
    return keras.ops.one_hot(tensor, entry.num_ids, dtype="float32")


def _vectors(entry: Entry, ids: Any) -> Any:
    initializer = keras.initializers.RandomUniform(-EMBEDDING_SCALE, EMBEDDING_SCALE)
    layer = keras.layers.Embedding(
        entry.num_ids, entry.width, embeddings_initializer=initializer, name=f"{entry.name}_embedding"
    )
    return layer(ids)
