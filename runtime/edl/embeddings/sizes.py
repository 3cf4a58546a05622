"""Size of a compiled job's row tables, from its JobSpec alone."""

from __future__ import annotations

from edl.embeddings.placement import is_outside
from edl.spec import Component, JobSpec, num_ids
from edl.spec.features import with_tables

FLOAT_BYTES = 4

# Slots of an optimizer per parameter.
_SLOTS = {
    "sgd": 0,
    "least_squares": 0,
    "newton": 0,
    "principal_components": 0,
    "alternating_least_squares": 0,
    "adam": 2,
    "adamw": 2,
    "adagrad": 1,
    "rmsprop": 1,
    "adadelta": 2,
    "adamax": 2,
    "nadam": 2,
    "ftrl": 2,
}
_MORE_SLOTS = ("momentum", "amsgrad", "centered")  # options that add a slot


def slots(optimizer: Component) -> int:
    """Return the optimizer's slots per parameter."""
    return _SLOTS.get(optimizer.name, 2) + sum(bool(optimizer.params.get(name)) for name in _MORE_SLOTS)


def in_tables(spec: JobSpec) -> int:
    """Return the numbers of parameters in row tables."""
    sizes = ((num_ids(feature.category), feature.dim) for feature in with_tables(spec.features))
    return sum(ids * dim for ids, dim in sizes if is_outside(ids, dim))


def table_memory(spec: JobSpec) -> int:
    """Return the bytes of the row tables with the optimizer's slots. A user's own module counts as 0."""
    return in_tables(spec) * FLOAT_BYTES * (1 + slots(spec.optimizer))
