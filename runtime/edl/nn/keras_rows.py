"""Row tables in Keras: what its optimizers mean for rows, and models with the rows inside."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from edl.errors import JobError
from edl.keras import Embedding, combined
from edl.nn.rows.combining import needed
from edl.nn.rows.rules import Optimizer, names, refuse_dtype
from edl.nn.rows.table import Floats
from edl.nn.rows.tables import Tables

_IGNORED = {"name", "learning_rate", "clipnorm", "global_clipnorm", "clipvalue", "ema_momentum"}
_PADDED = {False: ((None,), "int64"), True: ((None, 2), "float64")}  # weighted -> what `Ragged.padded` gives
_UNFIT = ("use_ema", "loss_scale_factor", "gradient_accumulation_steps")


def row_optimizer(optimizer: keras.optimizers.Optimizer) -> Optimizer:
    """The same optimizer for rows. JobError: rows cannot follow it."""
    name = type(optimizer).__name__.lower()
    ours = type(optimizer).__module__.startswith("keras.")
    if not ours or name not in names("keras"):
        raise JobError(
            f"rows of a table cannot follow the optimizer {type(optimizer).__name__}",
            hint=f"there are {', '.join(names('keras'))}",
        )
    config = optimizer.get_config()
    if unfit := next((option for option in _UNFIT if config.get(option)), ""):
        raise JobError(f"rows of a table cannot follow an optimizer with {unfit}", hint="leave it out")
    numbers = {
        key: float(value)
        for key, value in config.items()
        if isinstance(value, int | float) and key not in _IGNORED
    }
    return Optimizer("keras", name, numbers | {"momentum_decay": 1.0})


def clipped(
    optimizer: keras.optimizers.Optimizer, gradients: list[Any], blocks: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The gradients of variables and of blocks, clipped as the optimizer would clip them all.

    When it moves the variables it clips theirs again, which changes nothing any more.
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
    """JobError: the model's own parameters are moved in a way that a parameter server does not know."""
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
    """The model with the rows of its tables in ordinary embeddings; its other layers are the same.

    JobError: how many ids there are is not known, or the model is no graph of layers.
    """
    if not tables:
        return model

    listed: dict[int, bool] = {}  # inputs of lists

    def inside(layer: Any) -> Any:
        if not isinstance(layer, Embedding):
            return layer
        rows, weighted = tables.whole(layer.spec.name), tables.listed.get(layer.spec.name)
        return _inside(layer, rows) if weighted is None else _inside_lists(layer, rows, weighted)

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
    """An input of the same name, whose layer has another: a model may well have a layer `dense`.

    weighted: of lists of ids, None for another input.
    """
    shape, dtype = (tensor.shape[1:], tensor.dtype) if weighted is None else _PADDED[weighted]
    made = keras.Input(shape, dtype=dtype, name=f"{tensor.name}_input")
    made.name = tensor.name
    return made


def _inside(layer: Embedding, rows: Floats) -> keras.Model:
    """A layer of a row table as layers with the whole table in them."""
    given = layer.input if isinstance(layer.input, list) else [layer.input]
    inputs = [keras.Input(tensor.shape[1:], dtype="int64") for tensor in given]
    first = layer.first or (0,) * len(inputs)
    ids = [tensor + start for tensor, start in zip(inputs, first, strict=True)]
    stacked = keras.ops.stack(ids, axis=1) if len(ids) > 1 else ids[0]
    embedding = keras.layers.Embedding(*rows.shape, weights=[rows], name=layer.name)
    return keras.Model(inputs, combined(embedding(stacked), layer.combiner), name=f"{layer.name}_rows")


def _inside_lists(layer: Embedding, rows: Floats, weighted: bool) -> keras.Model:
    """The same for lists of ids."""
    ops, combiner = keras.ops, needed(layer.combiner, layer.spec.name)
    shape, dtype = _PADDED[weighted]
    given = keras.Input(shape, dtype=dtype)
    ids = ops.cast(ops.take(given, 0, axis=2), "int64") if weighted else given
    weights = ops.cast(ids >= 0, "float32")
    if weighted:
        weights = weights * ops.cast(ops.take(given, 1, axis=2), "float32")
    embedding = keras.layers.Embedding(*rows.shape, weights=[rows], name=layer.name)
    vectors = embedding(ops.maximum(ids + (layer.first[0] if layer.first else 0), 0))
    vector = ops.sum(vectors * ops.expand_dims(weights, -1), axis=1)
    if combiner != "sum":
        shares = weights if combiner == "mean" else ops.square(weights)
        norm = ops.sum(shares, axis=1, keepdims=True)
        norm = norm if combiner == "mean" else ops.sqrt(norm)
        vector = vector / ops.where(ops.equal(norm, 0), 1.0, norm)
    return keras.Model(given, vector, name=f"{layer.name}_rows")
