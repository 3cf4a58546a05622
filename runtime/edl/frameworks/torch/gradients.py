"""Gradient parts in PyTorch: everything that the members of a group sum for a step, as one tensor.

    gradients of the parameters | loss | buffers | whether each parameter has a gradient | gradients of the rows

A parameter without a gradient on any member is not updated, as in any other step: with a gradient of zeros, weight
decay would change it. The layout is computed once, because a part is built in every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from edl.arrays import Array
from edl.frameworks.adapter import is_buffer
from edl.frameworks.base import dtype_of
from edl.frameworks.torch.device import array_of

Tensors = Sequence[torch.Tensor]


class GradientParts:
    """Gradient parts of one model. A part reuses the memory of the previous one if that is large enough.

    On another device than the CPU a part is assembled there, and copied to the CPU and back at once.
    """

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self._device = device
        self._host: torch.Tensor | None = None  # memory of the CPU for parts of a GPU
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._places = [
            (module, name)
            for module in model.modules()
            for name, buffer in module.named_buffers(recurse=False)
            if name not in module._non_persistent_buffers_set and is_buffer(dtype_of(buffer), buffer.shape)
        ]
        count = len(self._parameters)
        tensors = [*self._parameters, torch.zeros(1), *self._buffers(), torch.zeros(count)]
        self._shapes = [tensor.shape for tensor in tensors]
        self._make_room(sum(map(torch.Size.numel, self._shapes)))

    def gather_part(self, loss: torch.Tensor, rows: Tensors, share: float) -> Array:
        """Return the part of some rows of a minibatch, from the present gradients of parameters and rows."""
        flat, of_rows = self._of(rows)
        with torch.no_grad():
            self._gather([parameter.grad for parameter in self._parameters])
            torch.mul(loss, share, out=self._loss)
            for place, buffer in zip(self._moving, self._buffers(), strict=True):
                place.copy_(buffer).mul_(share)
            for place, row in zip(of_rows, rows, strict=True):
                place.zero_() if row.grad is None else place.copy_(row.grad)
        return self._on_cpu(flat)

    def nothing(self, rows: Tensors) -> Array:
        """Return the part of no rows."""
        return self._on_cpu(self._of(rows)[0].zero_())

    def set_gradients(self, total: Array, rows: Mapping[str, torch.Tensor]) -> float:
        """Set the gradients of parameters and rows, and the buffers; return the loss. A total in this object's own
        memory is not copied: the gradients are views of it until the next part.
        """
        flat, of_rows = self._of(tuple(rows.values()))
        received = torch.from_numpy(total)
        if received.data_ptr() != flat.data_ptr():
            flat.copy_(received)
        for buffer, place in zip(self._buffers(), self._moving, strict=True):
            buffer.copy_(place if buffer.is_floating_point() else place.round())
        for parameter, gradient, has in zip(
            self._parameters, self._gradients, self._used.cpu().tolist(), strict=True
        ):
            same = parameter.dtype is gradient.dtype
            parameter.grad = (gradient if same else gradient.to(parameter.dtype)) if has else None
        for row, gradient in zip(rows.values(), of_rows, strict=True):
            row.grad = gradient
        return float(self._loss)

    @contextmanager
    def without_moves(self) -> Iterator[None]:
        """Provide a context that restores the buffers."""
        before = [buffer.clone() for buffer in self._buffers()]
        try:
            yield
        finally:
            for buffer, values in zip(self._buffers(), before, strict=True):
                buffer.copy_(values)

    def _buffers(self) -> list[torch.Tensor]:
        """Return the current buffers. A module may have replaced them."""
        return [getattr(module, name) for module, name in self._places]

    def _gather(self, gradients: list[torch.Tensor | None]) -> None:
        present = [gradient for gradient in gradients if gradient is not None and not gradient.is_sparse]
        if len(present) == len(gradients):
            torch._foreach_copy_(self._gradients, present)
            self._used.fill_(1)
            return
        for place, gradient in zip(self._gradients, gradients, strict=True):
            if gradient is None:
                place.zero_()
            else:
                place.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
        self._used.copy_(torch.tensor([float(gradient is not None) for gradient in gradients]))

    def _of(self, rows: Tensors) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return memory for a part with these row gradients, and their positions in it."""
        size = self._least + sum(row.numel() for row in rows)
        if size > len(self._room):
            self._make_room(size)
        if not rows:
            return self._own, []
        flat = self._room[:size]
        parts = flat[self._least :].split_with_sizes([row.numel() for row in rows])
        return flat, [part.view_as(row) for part, row in zip(parts, rows, strict=True)]

    def _on_cpu(self, flat: torch.Tensor) -> Array:
        """Return the numbers of a part, which pinned memory gets several times as fast."""
        if self._device.type != "cuda":
            return array_of(flat)
        if self._host is None or len(self._host) < len(flat):
            self._host = torch.empty(len(self._room), pin_memory=True)
        return array_of(self._host[: len(flat)].copy_(flat))

    def _make_room(self, size: int) -> None:
        """Allocate `size` floats; the fields that every part has come first."""
        self._room = torch.empty(size, device=self._device)
        sizes = [shape.numel() for shape in self._shapes]
        self._least = sum(sizes)
        self._own = self._room[: self._least]
        pieces = self._own.split_with_sizes(sizes)
        places = [piece.view(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]
        count = len(self._parameters)
        self._gradients, self._used = places[:count], places[-1]
        self._loss, self._moving = places[count].view(()), places[count + 1 : -1]


class ParameterVectors:
    """Trainable parameters, gradients and buffers of a model as vectors, for servers that hold them.

    `buffers` are their paths in the model, in order.
    """

    def __init__(self, model: nn.Module, buffers: Iterable[str], device: torch.device) -> None:
        self._device = device
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._sizes = [parameter.numel() for parameter in self._parameters]
        self._assigned = torch.empty(sum(self._sizes), device=device)
        places = [path.rpartition(".") for path in buffers]
        self._places = [(model.get_submodule(module), name) for module, _, name in places]

    def assign(self, values: Array | None, *, adds_own: bool) -> None:
        """Set the parameters, float32 (size,), with what steps have changed since the last call, if `adds_own`."""
        if values is None or not self._parameters:
            return
        with torch.no_grad():
            steps_taken = (
                torch.cat([parameter.flatten() for parameter in self._parameters]) if adds_own else None
            )
            if steps_taken is not None:
                steps_taken.sub_(self._assigned)
            # A tensor cannot be a view of a message, which is read-only.
            self._assigned.copy_(torch.from_numpy(np.array(values)))
            if steps_taken is not None:
                self._assigned.add_(steps_taken)
            torch._foreach_copy_(self._parameters, self._views(self._assigned))

    def gradients(self) -> Array:
        """Return the gradients of the parameters in new memory; zeros for a parameter without one."""
        vector = torch.empty(sum(self._sizes), device=self._device)
        gradients = [parameter.grad for parameter in self._parameters]
        for place, gradient in zip(self._views(vector), gradients, strict=True):
            if gradient is None:
                place.zero_()
            else:
                place.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
        return array_of(vector)

    def buffers(self) -> Array:
        """Return copies of the buffers."""
        tensors = [getattr(module, name) for module, name in self._places]
        if not tensors:
            return np.empty(0, np.float32)
        return np.concatenate([array_of(tensor).astype(np.float32).ravel() for tensor in tensors])

    def _views(self, vector: torch.Tensor) -> list[torch.Tensor]:
        pieces = vector.split_with_sizes(self._sizes)
        return [piece.view_as(parameter) for piece, parameter in zip(pieces, self._parameters, strict=True)]
