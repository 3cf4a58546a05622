"""Row tables in Keras: row versions of its optimizers, and models with the rows inside."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from edl.arrays import Features, arrays
from edl.embeddings.combiners import require_combiner
from edl.embeddings.initializers import EMBEDDING_SCALE, Initial
from edl.embeddings.model_tables import Tables
from edl.embeddings.optimizers import Optimizer, name_of, refuse_dtype, refuse_option
from edl.errors import JobError
from edl.frameworks.keras.layers import Embedding, combine_vectors

_IGNORED = {"name", "learning_rate", "clipnorm", "global_clipnorm", "clipvalue", "ema_momentum"}
# Signature of `Ragged.padded`, by whether it is weighted.
_PADDED = {False: ((None,), "int64"), True: ((None, 2), "float64")}
_UNFIT = ("use_ema", "loss_scale_factor", "gradient_accumulation_steps")


def row_optimizer(optimizer: keras.optimizers.Optimizer) -> Optimizer:
    """Return the same optimizer for rows. Raises JobError if it has no row version."""
    name = name_of("keras", optimizer, "keras.")
    config = optimizer.get_config()
    if unfit := next((option for option in _UNFIT if config.get(option)), ""):
        raise refuse_option(unfit)
    numbers = {
        key: float(value)
        for key, value in config.items()
        if isinstance(value, int | float) and key not in _IGNORED
    }
    return Optimizer("keras", name, numbers | {"momentum_decay": 1.0})


def move_large_embeddings(model: keras.Model, size: int, features: Features) -> keras.Model:
    """Return the model with row tables in place of embedding layers of more than `size` bytes.

    A layer moves if the model is a graph of layers, its ids are an input of the model, int64 in the features, and its
    vectors start as rows can start. Other models and layers stay.
    """
    inner = getattr(model, "inner", model)  # within a model that only arranges its outputs
    if not getattr(inner, "inputs", None):
        return model
    ids = {id(tensor) for tensor, array in _pair_inputs(inner, features) if array.dtype == np.int64}
    large = [layer for layer in inner.layers if _is_movable(layer, ids) and _bytes(layer) > size]
    if not large:
        return model
    names = {id(layer): f"embedding_{number}" for number, layer in enumerate(large)}

    def replace(layer: Any) -> Any:
        return _row_layer(layer, names[id(layer)]) if id(layer) in names else layer

    for layer in large:
        let_input_be_ids(layer.input)
    moved = keras.models.clone_model(inner, clone_function=replace)
    return moved if inner is model else model.replace_inner(moved)


def _pair_inputs(model: keras.Model, features: Features) -> Iterator[tuple[Any, Any]]:
    """Yield the inputs of a graph of layers with the arrays that they get."""
    if isinstance(model.input, dict) and isinstance(features, dict):
        yield from ((tensor, features[name]) for name, tensor in model.input.items() if name in features)
        return
    tensors, every = keras.tree.flatten(model.input), [array for _, array in arrays(features)]
    if len(tensors) == len(every):
        yield from zip(tensors, every, strict=True)


def _is_movable(layer: Any, ids: Container[int]) -> bool:
    if type(layer) is not keras.layers.Embedding or len(layer._inbound_nodes) != 1:
        return False
    if layer.embeddings_regularizer is not None or layer.embeddings_constraint is not None:
        return False
    return id(layer.input) in ids and _initial_of(layer.embeddings_initializer) is not None


def _bytes(layer: Any) -> int:
    return int(layer.input_dim) * int(layer.output_dim) * 4


def _initial_of(initializer: Any) -> tuple[Initial, float] | None:
    """Return how rows start as the initializer's vectors do, or None if they cannot."""
    if isinstance(initializer, keras.initializers.Zeros):
        return "zeros", EMBEDDING_SCALE
    if (
        isinstance(initializer, keras.initializers.RandomUniform)
        and initializer.minval == -initializer.maxval
    ):
        return "uniform", float(initializer.maxval)
    if isinstance(initializer, keras.initializers.RandomNormal) and initializer.mean == 0:
        return "normal", float(initializer.stddev)
    return None


def _row_layer(layer: Any, name: str) -> Embedding:
    start = _initial_of(layer.embeddings_initializer)
    if start is None:
        raise RuntimeError("checked by _is_movable")
    initial, scale = start
    options = {"num_ids": layer.input_dim, "mask_zero": layer.mask_zero, "name": name}
    return Embedding(name, layer.output_dim, initial=initial, scale=scale, **options)


def let_input_be_ids(tensor: Any) -> None:
    """Change an input of a model to int64: models cast their inputs, and rows are found by the ids as they came."""
    layer = tensor._keras_history.operation
    if isinstance(layer, keras.layers.InputLayer):
        tensor._dtype = layer._dtype = "int64"


def clip_gradients(
    optimizer: keras.optimizers.Optimizer, gradients: list[Any], blocks: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the gradients of variables and row blocks, clipped together as the optimizer would.

    The optimizer clips the gradients of the variables once more when it applies them, without further effect.
    """
    every = [*gradients, *blocks.values()]
    if size := optimizer.clipnorm:
        every = [tf.clip_by_norm(gradient, size) for gradient in every]
    elif size := optimizer.global_clipnorm:
        every, _ = tf.clip_by_global_norm(every, size)
    elif size := optimizer.clipvalue:
        every = [tf.clip_by_value(gradient, -size, size) for gradient in every]
    return every[: len(gradients)], dict(zip(blocks, every[len(gradients) :], strict=True))


def check_elsewhere(optimizer: keras.optimizers.Optimizer, model: keras.Model) -> None:
    """Raise JobError if parameter servers don't support the update of the model's own parameters."""
    for variable in model.trainable_variables:
        if variable.dtype != "float32":
            raise refuse_dtype(variable.path, variable.dtype)
        if variable.constraint is not None:
            raise JobError(
                f"parameter servers cannot keep the constraint of {variable.path}",
                hint="leave the constraint out, or train with workers alone",
            )
    if getattr(optimizer, "_exclude_from_weight_decay", None):
        raise JobError("parameter servers cannot leave parameters out of weight decay")


def with_rows_inside(model: keras.Model, tables: Tables) -> keras.Model:
    """Return the model with ordinary embeddings in place of its row tables; its other layers are shared.

    Raises JobError if the number of ids is unknown, or the model is no graph of layers.
    """
    if not tables:
        return model

    listed: dict[int, bool] = {}  # inputs that are lists
    vectors: dict[str, keras.layers.Embedding] = {}  # by table

    def inside(layer: Any) -> Any:
        if not isinstance(layer, Embedding):
            return layer
        name = layer.spec.name
        if name not in vectors:
            rows = tables.whole(name)
            vectors[name] = keras.layers.Embedding(*rows.shape, weights=[rows], name=layer.name)
        weighted = tables.listed.get(name)
        return (
            _make_inner_layer(layer, vectors[name])
            if weighted is None
            else _inside_lists(layer, vectors[name], weighted)
        )

    try:
        for layer in model.layers:
            if isinstance(layer, Embedding) and layer.spec.name in tables.listed:
                listed[id(layer.input)] = tables.listed[layer.spec.name]
        inputs = keras.tree.map_structure(
            lambda tensor: _input_like(tensor, listed.get(id(tensor))), model.input
        )
        return keras.models.clone_model(model, inputs, clone_function=inside, recursive=True)
    except (AttributeError, ValueError) as error:
        raise JobError(
            f"a {type(model).__name__} with row tables cannot be exported: {error}",
            hint="build the model of layers: keras.Model(inputs, outputs)",
        ) from error


def _input_like(tensor: Any, weighted: bool | None) -> Any:
    """Return an input of the same name. Its layer gets another name: a model may well have a layer `dense`.

    `weighted` applies to lists of ids; it is None for another input.
    """
    shape, dtype = (tensor.shape[1:], tensor.dtype) if weighted is None else _PADDED[weighted]
    new_input = keras.Input(shape, dtype=dtype, name=f"{tensor.name}_input")
    new_input.name = tensor.name
    return new_input


def _make_inner_layer(layer: Embedding, embedding: keras.layers.Embedding) -> keras.Model:
    """Return an ordinary layer over the whole table of a row layer."""
    tensors = layer.input if isinstance(layer.input, list) else [layer.input]
    inputs = [keras.Input(tensor.shape[1:], dtype="int64") for tensor in tensors]
    first = layer.first or (0,) * len(inputs)
    ids = [tensor + start for tensor, start in zip(inputs, first, strict=True)]
    stacked = keras.ops.stack(ids, axis=1) if len(ids) > 1 else ids[0]
    return keras.Model(inputs, combine_vectors(embedding(stacked), layer.combiner), name=f"{layer.name}_rows")


def _inside_lists(layer: Embedding, embedding: keras.layers.Embedding, weighted: bool) -> keras.Model:
    """Return the same for lists of ids."""
    ops, combiner = keras.ops, require_combiner(layer.combiner, layer.spec.name)
    shape, dtype = _PADDED[weighted]
    pairs = keras.Input(shape, dtype=dtype)
    ids = ops.cast(ops.take(pairs, 0, axis=2), "int64") if weighted else pairs
    weights = ops.cast(ids >= 0, "float32")
    if weighted:
        weights = weights * ops.cast(ops.take(pairs, 1, axis=2), "float32")
    vectors = embedding(ops.maximum(ids + (layer.first[0] if layer.first else 0), 0))
    vector = ops.sum(vectors * ops.expand_dims(weights, -1), axis=1)
    if combiner != "sum":
        shares = weights if combiner == "mean" else ops.square(weights)
        norm = ops.sum(shares, axis=1, keepdims=True)
        norm = norm if combiner == "mean" else ops.sqrt(norm)
        vector = vector / ops.where(ops.equal(norm, 0), 1.0, norm)
    return keras.Model(pairs, vector, name=f"{layer.name}_rows")
