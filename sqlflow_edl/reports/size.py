"""How large a model will be, from the widths of its layers; no framework is needed to know."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from edl.spec import Component, Embedding, JobSpec, num_ids, width

FLOAT_BYTES = 4

# Numbers that an optimizer keeps for each parameter.
_SLOTS = {
    "sgd": 0,
    "adam": 2,
    "adamw": 2,
    "adagrad": 1,
    "rmsprop": 1,
    "adadelta": 2,
    "adamax": 2,
    "nadam": 2,
    "ftrl": 2,
}
_MORE_SLOTS = ("momentum", "amsgrad", "centered")  # parameters that cost one more where they are set


def parameters(spec: JobSpec) -> int | None:
    """Trainable numbers of the model; None for a model of which only the framework knows."""
    count = _COUNTS.get(spec.model.name)
    return count(spec) if count else None


def slots(optimizer: Component) -> int:
    """Numbers that the optimizer keeps for each parameter."""
    return _SLOTS.get(optimizer.name, 2) + sum(bool(optimizer.params.get(name)) for name in _MORE_SLOTS)


def memory(spec: JobSpec) -> int | None:
    """Bytes of parameters, gradients and the optimizer's slots together."""
    count = parameters(spec)
    return None if count is None else count * FLOAT_BYTES * (2 + slots(spec.optimizer))


def input_width(spec: JobSpec) -> int:
    """float32 values that a row gives the model."""
    return sum(width(feature) for feature in spec.features)


def _embeddings(spec: JobSpec) -> int:
    tables = (feature for feature in spec.features if isinstance(feature, Embedding))
    return sum(num_ids(table.category) * table.dim for table in tables)


def _dense(widths: Iterable[int]) -> int:
    """Weights and biases of layers of these widths, inputs first."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths))


def _dnn(spec: JobSpec) -> int:
    found = spec.model.params.get("hidden_units")
    hidden = [int(units or 0) for units in found] if isinstance(found, tuple) else []
    normalised = 2 * sum(hidden) if spec.model.params.get("batch_norm") else 0
    return _embeddings(spec) + _dense([input_width(spec), *hidden, spec.label.outputs]) + normalised


def _linear(spec: JobSpec) -> int:
    return _embeddings(spec) + _dense([input_width(spec), spec.label.outputs])


_COUNTS: dict[str, Callable[[JobSpec], int]] = {
    "DNNClassifier": _dnn,
    "DNNRegressor": _dnn,
    "LinearClassifier": _linear,
    "LinearRegressor": _linear,
}
