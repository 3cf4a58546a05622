"""Optimizers of PyTorch: `optimizer.step` becomes a step of all workers."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from edl.arrays import Array
from edl.elastic.gradients import Gradients, Take
from edl.errors import SemanticError


class TorchGradients(Gradients):
    """Gradients of a torch.optim.Optimizer, and the floating-point buffers of a torch.nn.Module.

    Raises SemanticError for parameters in shards.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._tensors = [each for group in optimizer.param_groups for each in group["params"]]
        if any(hasattr(each, "placements") for each in self._tensors):  # a torch.distributed.tensor.DTensor
            raise SemanticError(
                "edl.elastic.checkpoint: the parameters are shards of FSDP, and a lost worker's would be gone",
                hint="without edl.elastic, edl run restarts the script, which reads its own checkpoint",
            )
        self._buffer_tensors = [each for each in model.buffers() if each.is_floating_point()]
        double = any(each.element_size() > 4 for each in (*self._tensors, *self._buffer_tensors))
        sizes = ([each.numel() for each in found] for found in (self._tensors, self._buffer_tensors))
        super().__init__(*sizes, double=double)

    def clear(self) -> None:
        for tensor in self._tensors:
            tensor.grad = None

    def _gradient(self, number: int) -> Array | None:
        gradient = self._tensors[number].grad
        return None if gradient is None else _numpy(gradient)

    def _set_gradient(self, number: int, flat: Array | None) -> None:
        tensor = self._tensors[number]
        tensor.grad = None if flat is None else _like(flat, tensor)

    def _buffer(self, number: int) -> Array:
        return _numpy(self._buffer_tensors[number])

    def _set_buffers(self, flat: Sequence[Array]) -> None:
        for tensor, values in zip(self._buffer_tensors, flat, strict=True):
            tensor.detach().copy_(_like(values, tensor))


def hook(optimizer: Any, others: tuple[Any, ...], take: Take) -> None:
    """Replace `optimizer.step`: `take` gets the original step and returns True if it took it.

    Schedulers among `others` step only after a step that was taken.
    """
    original = optimizer.step
    taken = True

    def step(self: Any, closure: Any = None) -> None:
        nonlocal taken
        if closure is not None:
            raise SemanticError(
                "optimizer.step with a closure cannot be shared by workers", hint="use another optimizer"
            )
        self._opt_called = True  # for schedulers, which warn of a step before the first one
        taken = take(original)

    optimizer.step = types.MethodType(step, optimizer)
    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]  # schedulers look for it
    for other in others:
        if hasattr(other, "optimizer") and hasattr(other, "step"):
            _hook_scheduler(other, lambda: taken)


def _hook_scheduler(scheduler: Any, taken: Callable[[], bool]) -> None:
    """Replace the scheduler's `step` in a class of its own: what its `__dict__` holds would be part of its state."""
    of = type(scheduler)

    def step(self: Any, *arguments: Any, **named: Any) -> None:
        if taken():
            of.step(self, *arguments, **named)

    scheduler.__class__ = type(of.__name__, (of,), {"step": step})


def _numpy(tensor: Any) -> Array:
    flat = tensor.detach().cpu().reshape(-1)
    found: Array = (flat.double() if flat.element_size() > 4 else flat.float()).numpy()
    return found


def _like(flat: Array, tensor: Any) -> Any:
    import torch

    return torch.from_numpy(flat.copy()).reshape(tensor.shape).to(tensor)
