"""Second device of PyTorch that computes on the CPU, and refuses what CUDA refuses: operands of two devices, and the
numbers of a tensor without a transfer. To PyTorch it is `hpu`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

DEVICE = torch.device("hpu", 0)


class OnDevice(torch.Tensor):
    """Tensor on the device, with its numbers in `held`."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> OnDevice:
        made: OnDevice = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device="meta",
            requires_grad=held.requires_grad,
        )
        made.held = held
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return DEVICE

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


class Simulation(TorchFunctionMode):
    """Context in which tensors can be moved to the device and made there. `transfers` counts both."""

    def __init__(self) -> None:
        super().__init__()
        self.transfers = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.to and DEVICE in args[1:]:
            if isinstance(args[0], OnDevice):
                return args[0]
            self.transfers += 1
            rest = [each for each in args[1:] if each != DEVICE and not isinstance(each, bool | None)]
            return OnDevice(args[0].to(*rest).clone())
        if kwargs.get("device") == DEVICE:
            self.transfers += 1
            return OnDevice(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)


def _computed(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    given: list[torch.Tensor] = []
    tree_map(lambda each: given.append(each) if isinstance(each, torch.Tensor) else None, (args, kwargs))
    name = str(func)
    here = any(isinstance(each, OnDevice) for each in given)
    moves = name.startswith(("aten._to_copy", "aten.copy_", "aten._foreach_copy_"))
    if here and not moves:
        mixed = [tuple(each.shape) for each in given if not isinstance(each, OnDevice) and each.ndim]
        if mixed:
            raise RuntimeError(f"expected all tensors on one device: {name} has one of {mixed[0]} on the CPU")
    wanted = kwargs.get("device")
    target = here if wanted is None else torch.device(wanted).type in ("meta", DEVICE.type)
    if wanted is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    found = func(*tree_map(_held, args), **tree_map(_held, kwargs))
    changed = {id(each.held): each for each in given if isinstance(each, OnDevice)}
    return tree_map(lambda each: _wrapped(each, changed) if target else each, found)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, OnDevice) else value


def _wrapped(value: Any, changed: dict[int, OnDevice]) -> Any:
    """Return the tensor on the device; one that was changed in place stays itself."""
    if not isinstance(value, torch.Tensor):
        return value
    return changed[id(value)] if id(value) in changed else OnDevice(value)
