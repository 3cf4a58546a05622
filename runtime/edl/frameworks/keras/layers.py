"""Layers of generated Keras programs: inputs, features as one tensor, and row tables.

Keras runs on TensorFlow here; importing this module sets `KERAS_BACKEND`, and refuses another backend.

Names of inputs and layers come from positions (`dense`, `f0`, `f1`, …), never from column names: Keras refuses `/`
in a name, and a column may be called anything. The vectors of an embedding start uniform in
[-EMBEDDING_SCALE, EMBEDDING_SCALE], as in `edl.torch`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from edl.embeddings.combiners import Combiner, divisor, require_combiner
from edl.embeddings.initializers import EMBEDDING_SCALE, FREQUENCY_SCALE, Initial
from edl.embeddings.layer import EmbeddingLayer
from edl.embeddings.lookup import ListPlaces
from edl.embeddings.placement import (
    combiner_of,
    firsts,
    group_entries,
    initial_of,
    is_outside,
    is_table,
    owners,
    refuse_sequence,
    table_of,
)
from edl.errors import JobError
from edl.features import NUMBERS, Entry, Features, Inputs, SeveralTarget
from edl.frameworks import hide_output
from edl.frameworks.base import check_model
from edl.frameworks.heads import in_order

if "keras" not in sys.modules:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

with hide_output():
    import keras
import numpy as np

if keras.backend.backend() != "tensorflow":
    raise JobError(
        f"Keras was loaded with the backend {keras.backend.backend()}; edl runs it on tensorflow",
        hint="set KERAS_BACKEND=tensorflow before keras is imported",
    )


def checked_model(model: Any) -> keras.layers.Layer:
    """Return what a user's class or function made. JobError: it is neither a keras.Model nor a layer."""
    check_model(model, keras.layers.Layer, "keras.Model")
    layer: keras.layers.Layer = model
    return layer


@keras.saving.register_keras_serializable(package="edl")
class Embedding(EmbeddingLayer, keras.layers.Layer):
    """Embedding layer of Keras; the ids are an input of the model, or a list of inputs.

    mask_zero: later layers leave out the positions of id 0, as with Keras' own layer.
    """

    def __init__(self, *arguments: Any, mask_zero: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mask_zero = mask_zero

    def compute_mask(self, ids: Any, mask: Any = None) -> Any:
        return keras.ops.not_equal(ids, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        several = isinstance(input_shape, list)
        shape = tuple(input_shape[0] if several else input_shape)
        if several and len(input_shape) > 1:
            shape = (*shape, len(input_shape))
        return (*(shape[:1] if self.combiner else shape), self.spec.dim)

    def call(self, ids: Any) -> Any:
        tensors = list(ids) if isinstance(ids, list | tuple) else [ids]
        looked_up = self.look_up(tensors)
        if isinstance(looked_up.places, ListPlaces):
            rows = keras.ops.shape(tensors[0])[0]
            return summed_lists(
                looked_up.block, looked_up.places, rows, require_combiner(self.combiner, self.spec.name)
            )
        return combine_vectors(keras.ops.take(looked_up.block, looked_up.places, axis=0), self.combiner)

    def get_config(self) -> dict[str, Any]:
        spec = self.spec
        settings = {"table": spec.name, "dim": spec.dim, "combiner": self.combiner, "initial": spec.initial}
        return {
            **super().get_config(),
            **settings,
            "scale": spec.scale,
            "num_ids": spec.num_ids,
            "first": self.first,
            "mask_zero": self.mask_zero,
        }


def summed_lists(block: Any, listed: ListPlaces, rows: Any, combiner: Combiner) -> Any:
    """Return the rows of each list combined by their weights: (rows, dim), zeros of an empty list."""
    weights = keras.ops.convert_to_tensor(listed.weights)
    vectors = keras.ops.take(block, listed.places, axis=0) * weights[:, None]
    sums = keras.ops.segment_sum(vectors, listed.rows, num_segments=rows)
    if combiner == "sum":
        return sums
    shares = weights if combiner == "mean" else keras.ops.square(weights)
    norm = keras.ops.segment_sum(shares, listed.rows, num_segments=rows)
    norm = norm if combiner == "mean" else keras.ops.sqrt(norm)
    return sums / keras.ops.where(norm == 0, 1.0, norm)[:, None]


def combine_vectors(vectors: Any, combiner: Combiner | None) -> Any:
    """Return the rows of each example combined: (n, k, dim) to (n, dim)."""
    if combiner is None or len(vectors.shape) == 2:
        return vectors
    return keras.ops.sum(vectors, axis=1) * divisor(combiner, vectors.shape[1])


def feature_inputs(features: Features | Inputs) -> dict[str, Any]:
    """Return a `keras.Input` for each array of `features.transform(batch)`, under the same name."""
    return {entry.name: _input(entry) for entry in features.entries}


def concatenated(features: Features, inputs: dict[str, Any]) -> Any:
    """Return the features as one tensor, float32 (rows, features.width): the entries one after another."""
    return _join_blocks(
        [block for group in group_entries(features.entries) for block in _blocks(group, inputs)]
    )


def member_inputs(members: int, hidden: Any) -> Any:
    """Return the features for each member of an ensemble, by scales of its own: (rows, members, width).

    With shared layers behind it, and `member_outputs` at the end, one network is an ensemble of as many (TabM,
    Gorishniy et al., 2024).
    """
    scales = keras.layers.EinsumDense(
        "rw,mw->rmw",
        (members, hidden.shape[-1]),
        kernel_initializer=keras.initializers.RandomNormal(0.0, 1.0),
    )
    return scales(hidden)


def member_outputs(hidden: Any, outputs: int) -> Any:
    """Return a linear layer's outputs for each member: (rows, members, width) to (rows, members, outputs)."""
    members, width = hidden.shape[1:]
    limit = width**-0.5
    layer = keras.layers.EinsumDense(
        "rmw,mwo->rmo",
        (members, outputs),
        bias_axes="mo",
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.RandomUniform(-limit, limit),
    )
    return layer(hidden)


def weighted_sum(features: Features, inputs: dict[str, Any], units: int = 1) -> Any:
    """Sum a weight for each number and for each id of each category: float32 (rows, units).

    The result equals a Dense layer without bias on one-hot rows, but makes no such rows. Weights start at 0.
    """
    numbers = [entry for entry in features.entries if entry.kind in NUMBERS]
    categories = [entry for entry in features.entries if entry.kind == "category"]
    parts = []
    if numbers:
        weights = keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros")
        parts.append(weights(_join_blocks([_block(entry, inputs[entry.name]) for entry in numbers])))
    if categories:
        first, total = firsts(categories)
        ids = [inputs[entry.name] for entry in categories]
        if is_outside(total, units):
            name = f"{categories[0].name}_weights"
            weights = Embedding(name, units, "sum", initial="zeros", num_ids=total, first=first, name=name)
            parts.append(weights(ids))
        else:
            weights = keras.layers.Embedding(total, units, embeddings_initializer="zeros")
            vectors = weights(keras.ops.stack(ids, axis=1) + keras.ops.convert_to_tensor(first, "int64"))
            parts.append(keras.ops.sum(vectors, axis=1))
    lists = [entry for entry in features.entries if entry.kind == "list"]
    owner = owners(lists)
    parts += [
        _list_rows(
            entry_of_list, units, inputs[entry_of_list.name], "zeros", owner[entry_of_list.name], "weights"
        )
        for entry_of_list in lists
    ]
    return parts[0] if len(parts) == 1 else keras.layers.Add()(parts)


def by_class(labels: Any, weights: Sequence[float]) -> Any:
    """Return the weight of each row's class, float32 (n,), as losses are. labels: (n,) classes, or (n, 1) 0 and 1."""
    positions = keras.ops.cast(keras.ops.reshape(labels, (-1,)), "int32")
    return keras.ops.take(keras.ops.convert_to_tensor(weights, "float32"), positions)


def _join_blocks(blocks: Sequence[Any]) -> Any:
    return blocks[0] if len(blocks) == 1 else keras.layers.Concatenate()(blocks)


def _input(entry: Entry) -> Any:
    """Return an input tensor named as the array; its layer has another name, as a Dense layer is `dense` by default."""
    width = entry.width if entry.kind == "dense" else len(entry.features)
    shape, dtype = ((width,), "float32") if entry.kind in NUMBERS else ((), "int64")
    shape = (entry.width,) if entry.kind == "sequence" else shape
    tensor = keras.Input(shape, dtype=dtype, name=f"{entry.name}_input")
    tensor.name = entry.name
    return tensor


def _blocks(group: Sequence[Entry], inputs: dict[str, Any]) -> list[Any]:
    """Return the values of entries that `group_entries` puts together: of each, or of all in one."""
    if is_table(group):
        return [_rows(group, inputs)]
    first = group[0]
    if not table_of(first):
        return [_block(first, inputs[first.name])]
    if first.kind == "list":
        return [_list_vectors(entry, inputs[entry.name], first.name) for entry in group]
    shared = _vectors(first)
    return [shared(inputs[entry.name]) for entry in group]


def _block(entry: Entry, tensor: Any) -> Any:
    if entry.kind == "dense":
        return tensor
    refuse_sequence(entry)
    if entry.kind == "positions":
        return _encode_positions(entry, tensor)
    if entry.kind == "periodic":
        return _periodic(entry, tensor)
    if entry.kind == "list":
        return _list_vectors(entry, tensor, entry.name)
    if entry.feature.dim:
        return _vectors(entry)(tensor)
    return keras.ops.one_hot(tensor, entry.num_ids, dtype="float32")


def _encode_positions(entry: Entry, positions: Any) -> Any:
    """Return the piecewise-linear encodings of the positions: (rows, entry.width)."""
    columns, first = entry.encodings
    return keras.ops.clip(
        keras.ops.take(positions, columns, axis=1) - np.asarray(first, dtype=np.float32), 0.0, 1.0
    )


def _periodic(entry: Entry, values: Any) -> Any:
    """Return the periodic embeddings of numbers: (rows, entry.width)."""
    numbers = len(entry.features)
    frequencies = entry.width // numbers
    limit = (2 * frequencies) ** -0.5
    scaled = keras.layers.EinsumDense(
        "rn,nf->rnf",
        (numbers, frequencies),
        kernel_initializer=keras.initializers.RandomNormal(0.0, FREQUENCY_SCALE),
    )
    angles = (2 * math.pi) * scaled(values)
    waves = keras.layers.Concatenate()([keras.ops.sin(angles), keras.ops.cos(angles)])
    combined = keras.layers.EinsumDense(
        "rnw,nwo->rno",
        (numbers, frequencies),
        activation="relu",
        bias_axes="no",
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.RandomUniform(-limit, limit),
    )
    return keras.layers.Reshape((entry.width,))(combined(waves))


def _rows(group: Sequence[Entry], inputs: dict[str, Any]) -> Any:
    """Return the vectors of neighbouring categories, from one row table: (rows, their widths together)."""
    name, width = f"{group[0].name}_embedding", group[0].width
    first, total = firsts(group)
    layer = Embedding(name, width, initial=initial_of(group[0]), num_ids=total, first=first, name=name)
    return keras.layers.Reshape((len(group) * width,))(layer([inputs[entry.name] for entry in group]))


def _list_vectors(entry: Entry, ids: Any, owner: str) -> Any:
    return _list_rows(entry, entry.width, ids, initial_of(entry), owner, "embedding")


def _list_rows(entry: Entry, width: int, ids: Any, initial: Initial, owner: str, what: str) -> Any:
    """Return the vectors of lists of ids, combined, from the table of the entry `owner`."""
    name, table, size = f"{entry.name}_{what}", f"{owner}_{what}", entry.num_ids
    return Embedding(table, width, combiner_of(entry), initial=initial, num_ids=size, name=name)(ids)


def _vectors(entry: Entry) -> keras.layers.Embedding:
    """Return the layer of vectors in the graph."""
    initializer = {
        "uniform": keras.initializers.RandomUniform(-EMBEDDING_SCALE, EMBEDDING_SCALE),
        "normal": keras.initializers.RandomNormal(0.0, EMBEDDING_SCALE),
        "zeros": keras.initializers.Zeros(),
    }[initial_of(entry)]
    return keras.layers.Embedding(
        entry.num_ids, entry.width, embeddings_initializer=initializer, name=f"{entry.name}_embedding"
    )


def joined(outputs: Any, label: SeveralTarget) -> Any:
    """Return the outputs of a user's model as one tensor, (rows, outputs).

    It gives that tensor, one per label in their order, or a dict of one per label by the name of its column. Raises
    JobError for another form.
    """
    if not isinstance(outputs, dict | list | tuple):
        return outputs
    tensors = in_order(outputs, label.spec)
    return keras.layers.Concatenate()(
        [tensor if len(tensor.shape) == 2 else tensor[:, None] for tensor in tensors]
    )
