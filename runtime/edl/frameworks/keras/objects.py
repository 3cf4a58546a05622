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


def loss(given: Any) -> Callable[[Any, Any], Any]:
    """Return the loss function. Raises SemanticError if there is none of that name."""
    found = _loss(given)
    own = isinstance(found, keras.losses.Loss)
    if own and found.reduction not in _MEANS:  # reduced to a sum: one value in all
        return lambda labels, predictions: found(labels, predictions)
    each = found.call if own else found

    def per_row(labels: Any, predictions: Any) -> Any:
        losses = each(labels, predictions)
        return (
            keras.ops.mean(losses, axis=tuple(range(1, len(losses.shape))))
            if len(losses.shape) > 1
            else losses
        )

    return per_row


def takes_logits(given: Any) -> bool:
    """Return True if the loss is known to apply the sigmoid or softmax itself."""
    found = _loss(given)
    return isinstance(found, keras.losses.Loss) and bool(found.get_config().get("from_logits"))


def optimizer(given: Any, rate: float | None) -> Callable[[], Any]:
    """Return a factory of optimizers. `rate` applies to an optimizer by name. Raises SemanticError if there is none
    of that name.
    """
    if isinstance(given, str):
        made = _get_named(keras.optimizers.get, given, "optimizer", vars(keras.optimizers))
        if rate is not None:
            made.learning_rate = rate
        given = made
    if not isinstance(given, keras.optimizers.Optimizer):
        if not callable(given):
            hint = "give an object, a function, or a name such as adam"
            raise SemanticError(f"the optimizer is {given!r}", hint=hint)
        return lambda: given()
    config = given.get_config()
    return lambda: type(given).from_config(config)


def _loss(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    return _get_named(keras.losses.get, given, "loss", vars(keras.losses))


def _get_named(get: Callable[[str], Any], name: str, what: str, known: dict[str, Any]) -> Any:
    try:
        return get(name)
    except ValueError:
        raise SemanticError(f"Keras has no {what} {name}", hint=did_you_mean(name, [*known])) from None
