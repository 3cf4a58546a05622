"""How large the row tables of a compiled job become, from its JobSpec alone."""

from __future__ import annotations

from edl.nn.rows.placement import is_outside
from edl.spec import Component, Embedding, JobSpec, num_ids

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


def slots(optimizer: Component) -> int:
    """Numbers that the optimizer keeps for each parameter."""
    return _SLOTS.get(optimizer.name, 2) + sum(bool(optimizer.params.get(name)) for name in _MORE_SLOTS)


def in_tables(spec: JobSpec) -> int:
    """Numbers of the embeddings that stand outside of the graph."""
    embeddings = (feature for feature in spec.features if isinstance(feature, Embedding))
    sizes = ((num_ids(feature.category), feature.dim) for feature in embeddings)
    return sum(ids * dim for ids, dim in sizes if is_outside(ids, dim))


def table_memory(spec: JobSpec) -> int:
    """Bytes of the row tables, with the optimizer's slots; of a hand-written module none are known."""
    return in_tables(spec) * FLOAT_BYTES * (1 + slots(spec.optimizer))
