"""Keras losses and optimizers of a script, as a program's functions: loss(labels, predictions), optimizer().

Keras losses compute one value per row before they reduce them. edl uses those values, so that rows can be weighted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

import edl.frameworks.keras.layers  # noqa: F401 (refuses another backend)
from edl.errors import SemanticError, did_you_mean

_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight", "none", None)


def loss(value: Any) -> Callable[[Any, Any], Any]:
    """Return the loss function. Raises SemanticError if there is none of that name."""
    resolved = _loss(value)
    is_object = isinstance(resolved, keras.losses.Loss)
    if is_object and resolved.reduction not in _MEANS:  # reduced to a sum: one value in all
        return lambda labels, predictions: resolved(labels, predictions)
    by_row = resolved.call if is_object else resolved

    def per_row(labels: Any, predictions: Any) -> Any:
        losses = by_row(labels, predictions)
        return (
            keras.ops.mean(losses, axis=tuple(range(1, len(losses.shape))))
            if len(losses.shape) > 1
            else losses
        )

    return per_row


def takes_logits(value: Any) -> bool:
    """Return True if the loss is known to apply the sigmoid or softmax itself."""
    resolved = _loss(value)
    return isinstance(resolved, keras.losses.Loss) and bool(resolved.get_config().get("from_logits"))


def optimizer(value: Any, rate: float | None) -> Callable[[], Any]:
    """Return a factory of optimizers. `rate` applies to an optimizer by name. Raises SemanticError if there is none
    of that name.
    """
    if isinstance(value, str):
        by_name = _get_named(keras.optimizers.get, value, "optimizer", vars(keras.optimizers))
        if rate is not None:
            by_name.learning_rate = rate
        value = by_name
    if not isinstance(value, keras.optimizers.Optimizer):
        if not callable(value):
            hint = "give an object, a function, or a name such as adam"
            raise SemanticError(f"the optimizer is {value!r}", hint=hint)
        return lambda: value()
    config = value.get_config()
    return lambda: type(value).from_config(config)


def _loss(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _get_named(keras.losses.get, value, "loss", vars(keras.losses))


def _get_named(get: Callable[[str], Any], name: str, what: str, candidates: dict[str, Any]) -> Any:
    try:
        return get(name)
    except ValueError:
        raise SemanticError(f"Keras has no {what} {name}", hint=did_you_mean(name, [*candidates])) from None
