"""Gradients of a script's optimizer: weighted by rows, accumulated over micro-batches, summed over the group.

`optimizer.step` is replaced by a step of all workers. The loss of the script is a mean over its rows, so the sum of the
gradients, each weighted by the share of its rows in the step, is the gradient of the mean over all rows of the step.
Floating-point buffers (moving statistics) become the weighted mean of the workers' buffers.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group
from edl.errors import SemanticError

Take = Callable[[Callable[[], None]], bool]


class Gradients:
    """Gradients of the parameters of an optimizer, and the buffers of the model."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self._buffers = [each for each in model.buffers() if each.is_floating_point()]
        self._kept = [each.detach().clone() for each in self._buffers]
        double = any(each.element_size() > 4 for each in (*self._parameters, *self._buffers))
        sizes = [each.numel() for each in (*self._parameters, *self._buffers)]
        self._ends = np.cumsum([len(self._parameters), *sizes])
        self._flat: Array = np.zeros(self._ends[-1], np.float64 if double else np.float32)
        self._used = False

    def add(self, share: float) -> None:
        """Add the present gradients, of a micro-batch with this share of the rows of the step."""
        self._used = True
        if not share:  # this worker has no row: it computed one without weight
            return
        for number, parameter in enumerate(self._parameters):
            if parameter.grad is not None:
                self._flat[number] = 1
                self._view(number)[:] += share * _numpy(parameter.grad)
        self.clear()

    def sum(self, group: Group | None, share: float) -> None:
        """Set the gradients to the sum over the group; `share` is that of this worker. Raises GroupError."""
        for number, buffer in enumerate(self._buffers, len(self._parameters)):
            self._view(number)[:] = share * _numpy(buffer) if share else 0
        if group is not None:
            group.sum(self._flat)
        for number, parameter in enumerate(self._parameters):
            parameter.grad = _like(self._view(number), parameter) if self._flat[number] else None
        for number, buffer in enumerate(self._buffers, len(self._parameters)):
            buffer.copy_(_like(self._view(number), buffer))
        self._reset()

    @property
    def accumulated(self) -> bool:
        """True if micro-batches were added since the last sum."""
        return self._used

    def keep(self) -> None:
        """Keep the buffers after a step: the next one may have to be repeated."""
        for kept, buffer in zip(self._kept, self._buffers, strict=True):
            kept.copy_(buffer.detach())

    def discard(self) -> None:
        """Forget what was computed since the last step."""
        for kept, buffer in zip(self._kept, self._buffers, strict=True):
            buffer.detach().copy_(kept)
        self.clear()
        self._reset()

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def _reset(self) -> None:
        self._flat[:] = 0
        self._used = False

    def _view(self, number: int) -> Array:
        return self._flat[self._ends[number] : self._ends[number + 1]]


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
    step._wrapped_by_lr_sched = step._edl = True  # type: ignore[attr-defined]  # schedulers look for the first
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
