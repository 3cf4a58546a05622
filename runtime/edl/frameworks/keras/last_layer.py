"""The inputs of a network's last linear layer: the embedding of each row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras

from edl.frameworks.keras.real_mlp import NTPDense

_LINEAR = (keras.layers.Dense, keras.layers.EinsumDense, NTPDense)


@contextlib.contextmanager
def last_inputs(model: keras.Model) -> Iterator[list[Any]]:
    """Yield a list that calls of the model fill with the input of the last linear layer that has run.

    A Dense layer without bias, as in the wide part of a model, is not one.
    """
    captured: list[Any] = []
    layers = [
        layer_of_model
        for layer_of_model in model._flatten_layers()
        if isinstance(layer_of_model, _LINEAR) and _has_bias(layer_of_model)
    ]
    for layer in layers:
        object.__setattr__(layer, "call", _watch_inputs(layer.call, captured))
    try:
        yield captured
    finally:
        for layer in layers:
            object.__delattr__(layer, "call")


def _watch_inputs(call: Callable[..., Any], captured: list[Any]) -> Callable[..., Any]:
    def watched(inputs: Any, *arguments: Any, **named: Any) -> Any:
        captured[:] = [inputs]
        return call(inputs, *arguments, **named)

    return watched


def _has_bias(layer: Any) -> bool:
    return bool(getattr(layer, "use_bias", True)) and getattr(layer, "bias_axes", "") is not None
