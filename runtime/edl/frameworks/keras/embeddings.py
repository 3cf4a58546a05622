"""Row tables in Keras: row versions of its optimizers, and models with the rows inside."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from edl.embeddings.combiners import require_combiner
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
