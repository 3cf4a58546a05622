"""Optimizers of PyTorch: `optimizer.step` becomes a step of all workers."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group
from edl.errors import SemanticError
from edl.extensions.elastic.collective import STEP, sum_over_group
from edl.extensions.elastic.gradients import Gradients, Take


class TorchGradients(Gradients):
    """Gradients of a torch.optim.Optimizer, and the floating-point buffers of a torch.nn.Module.

    They are added up in one tensor where the model is, which is copied to the CPU and back at once:

        mark of `sum_over_group` | whether each parameter has a gradient | gradients of the parameters | buffers

    A step has a tensor of its own: the gradients that it leaves are views of that. Raises SemanticError for parameters
    in shards.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        import torch

        self._parameters = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if any(
            hasattr(tensor, "placements") for tensor in self._parameters
        ):  # torch.distributed.tensor.DTensor
            raise SemanticError(
                "edl.elastic.checkpoint: the parameters are shards of FSDP, and a lost worker's would be gone",
                hint="without edl.elastic, edl run restarts the script, which reads its own checkpoint",
            )
        self._buffers = [tensor for tensor in model.buffers() if tensor.is_floating_point()]
        tensors = (*self._parameters, *self._buffers)
        self._dtype = torch.float64 if any(tensor.element_size() > 4 for tensor in tensors) else torch.float32
        self._head = 1 + len(self._parameters)
        self._flat: Any = None  # of the present step, from its first gradients on
        self._places: list[Any] = []  # of gradients and buffers in it
        self._host: Any = None  # memory of the CPU for it, if it is on another device
        self._has: Array = np.zeros(len(self._parameters), bool)
        self.keep()

    def keep(self) -> None:
        self._kept = [buffer.detach().clone() for buffer in self._buffers]

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def _add(self, share: float) -> None:
        import torch

        self._begin()
        present = [number for number, parameter in enumerate(self._parameters) if parameter.grad is not None]
        if present:
            self._has[present] = True
            places = [self._places[number] for number in present]
            gradients = [self._parameters[number].grad.to(self._flat) for number in present]
            with torch.no_grad():
                torch._foreach_add_(places, gradients, alpha=share)

    def _sum(self, group: Group | None, share: float) -> None:
        import torch

        self._begin()
        gradients, means = self._places[: self._head - 1], self._places[self._head - 1 :]
        with torch.no_grad():
            if share:
                for place, buffer in zip(means, self._buffers, strict=True):
                    place.copy_(buffer).mul_(share)
            if group is not None:
                self._sum_over(group)
            for parameter, gradient, has in zip(self._parameters, gradients, self._has, strict=True):
                parameter.grad = gradient.to(parameter) if has else None
            for buffer, place in zip(self._buffers, means, strict=True):
                buffer.copy_(place)

    def _sum_over(self, group: Group) -> None:
        import torch

        is_on_gpu = self._flat.device.type != "cpu"
        if is_on_gpu and self._host is None:  # pinned memory is copied several times as fast
            self._host = torch.empty(len(self._flat), dtype=self._dtype, pin_memory=self._flat.is_cuda)
        flat = self._host if is_on_gpu else self._flat
        if is_on_gpu:
            flat.copy_(self._flat)
        numbers = flat.numpy()
        numbers[1 : self._head] = self._has
        sum_over_group(group, STEP, numbers)
        self._has = numbers[1 : self._head] > 0
        if is_on_gpu:
            self._flat.copy_(flat)

    def _restore(self) -> None:
        for buffer, values in zip(self._buffers, self._kept, strict=True):
            buffer.detach().copy_(values)

    def _forget(self) -> None:
        super()._forget()
        self._flat, self._places = None, []
        self._has[:] = False

    def _begin(self) -> None:
        """Make the tensor of a step, if there is none."""
        import torch

        if self._flat is None:
            tensors = (*self._parameters, *self._buffers)
            sizes = [self._head, *(tensor.numel() for tensor in tensors)]
            self._flat = torch.zeros(sum(sizes), dtype=self._dtype, device=self._parameters[0].device)
            _, *places = self._flat.split_with_sizes(sizes)
            self._places = [place.view(tensor.shape) for place, tensor in zip(places, tensors, strict=True)]


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
