"""State of a script's objects as named arrays of bytes, without pickle: for other workers, and for checkpoints.

A state dict is a tree of dicts, lists, numbers, texts, tensors of PyTorch and arrays. Its tensors and arrays become
arrays of bytes; the rest is one more, msgpack, in which they are positions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from edl.arrays import Array
from edl.errors import JobError, SemanticError

if TYPE_CHECKING:
    from edl.embeddings.model_tables import Cut

_TREE = "tree"


class ScriptState:
    """Objects with a `state_dict`, in the role of an adapter: `edl.worker.strategies.allreduce.member` moves them."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._parts = objects[:1], objects[1:]  # the model; optimizer and schedulers

    def get_weights(self) -> dict[str, Array]:
        """Return the arrays of the model; they may share memory with it."""
        return _collect_states(self._parts[0])

    def set_weights(self, arrays: Mapping[str, Array]) -> None:
        """Load the arrays. Raises JobError if they are of other objects."""
        _load(self._parts[0], arrays)

    def get_state(self) -> dict[str, Array]:
        """Return the arrays of the optimizer and the other objects."""
        return _collect_states(self._parts[1])

    def cut(self) -> Cut:
        """Return a function that returns copies of now, see `edl.frameworks.Adapter.cut`."""
        weights, state = _copy_arrays(self.get_weights()), _copy_arrays(self.get_state())
        return lambda: (weights, state)

    def set_state(self, arrays: Mapping[str, Array]) -> None:
        """Load the arrays. Raises as `set_weights`."""
        _load(self._parts[1], arrays)


def _copy_arrays(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def stateful(*objects: Any) -> tuple[Any, ...]:
    """Return the objects. Raises SemanticError for one without a state dict."""
    for obj in objects:
        if not (hasattr(obj, "state_dict") and hasattr(obj, "load_state_dict")):
            raise SemanticError(
                f"edl.elastic.checkpoint: a {type(obj).__qualname__} has no state_dict and load_state_dict",
                hint="give the model, its optimizer, and schedulers",
            )
    return objects


def _collect_states(objects: Sequence[Any]) -> dict[str, Array]:
    return flatten_tree([obj.state_dict() for obj in objects])


def _load(objects: Sequence[Any], arrays: Mapping[str, Array]) -> None:
    states = restore_tree(arrays)
    if len(states) != len(objects):
        raise JobError("the workers have given edl.elastic.checkpoint different objects")
    for obj, state in zip(objects, states, strict=True):
        obj.load_state_dict(state)


def flatten_tree(tree: Any) -> dict[str, Array]:
    """Return the arrays of a tree, uint8. Raises JobError for a value of another type."""
    leaves: list[Array] = []
    torch = sys.modules.get("torch")  # a script of another framework has no tensors of it

    def node(value: Any, place: str) -> Any:
        if torch is not None and isinstance(value, torch.Tensor):
            leaves.append(_bytes(value))
            return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape)]
        if isinstance(value, np.ndarray):
            leaves.append(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
            return ["array", value.dtype.name, list(value.shape)]
        if isinstance(value, Mapping):
            return ["dict", [[key, node(child, f"{place}.{key}")] for key, child in value.items()]]
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return [kind, [node(child, f"{place}.{number}") for number, child in enumerate(value)]]
        if isinstance(value, np.generic):
            return ["value", value.item()]
        if value is None or isinstance(value, bool | int | float | str):
            return ["value", value]
        raise JobError(f"the state of a worker has a {type(value).__qualname__} at {place.lstrip('.')}")

    encoded = msgspec.msgpack.encode(node(tree, ""))
    arrays = {f"tensor.{number}": array for number, array in enumerate(leaves)}
    return {_TREE: np.frombuffer(encoded, np.uint8), **arrays}


def restore_tree(arrays: Mapping[str, Array]) -> Any:
    """Return the tree of the arrays."""
    numbers = iter(range(len(arrays)))

    def value(node: Any) -> Any:
        kind, *rest = node
        if kind == "array":
            dtype, shape = rest
            return np.array(arrays[f"tensor.{next(numbers)}"]).view(dtype).reshape(shape)
        if kind == "tensor":
            import torch

            dtype, shape = rest
            flat = torch.from_numpy(np.array(arrays[f"tensor.{next(numbers)}"]))
            if not len(flat):  # it has no view of another type
                return torch.empty(shape, dtype=getattr(torch, dtype))
            return flat.view(getattr(torch, dtype)).reshape(shape)
        if kind == "dict":
            return {key: value(child) for key, child in rest[0]}
        if kind in ("list", "tuple"):
            items = [value(child) for child in rest[0]]
            return items if kind == "list" else tuple(items)
        return rest[0]

    return value(msgspec.msgpack.decode(arrays[_TREE].tobytes()))


def _bytes(tensor: Any) -> Array:
    import torch

    view: Array = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return view
