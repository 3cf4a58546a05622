"""Shares of a step in PyTorch: all that the members of a ring add up for it, as one tensor.

    gradients of the parameters | loss | buffers | whether each parameter has a gradient | gradients of the rows

A parameter that has no gradient anywhere is not moved, as in any other step: with a gradient of zeros a weight decay
would move it. It is done in every step, so what can be known before is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from edl.nn.adapter import Share, is_buffer

Tensors = Sequence[torch.Tensor]


class Shares:
    """Of one model. A share is written into the memory of the one before, where that is enough."""

    def __init__(self, model: nn.Module) -> None:
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._places = [
            (module, name)
            for module in model.modules()
            for name, buffer in module.named_buffers(recurse=False)
            if name not in module._non_persistent_buffers_set
            and is_buffer(str(buffer.dtype).removeprefix("torch."), buffer.shape)
        ]
        count = len(self._parameters)
        own = [*self._parameters, torch.zeros(1), *self._buffers(), torch.zeros(count)]
        self._sizes = [tensor.numel() for tensor in own]
        self._least = sum(self._sizes)
        self._all = torch.ones(count)
        self._room = torch.empty(self._least)

    def gathered(self, loss: torch.Tensor, rows: Tensors, share: float) -> Share:
        """The share of a part of a minibatch; the gradients are those that parameters and rows have by now."""
        with torch.no_grad():
            gradients = [parameter.grad for parameter in self._parameters]
            parts = [self._flat(*pair) for pair in zip(self._parameters, gradients, strict=True)]
            parts.append(loss.view(1) * share)
            parts += [buffer.reshape(-1).float() * share for buffer in self._buffers()]
            lacking = any(gradient is None for gradient in gradients)
            parts.append(torch.tensor([float(g is not None) for g in gradients]) if lacking else self._all)
            parts += [(torch.zeros_like(row) if row.grad is None else row.grad).view(-1) for row in rows]
            flat = self._of(rows)
            torch.cat(parts, out=flat)
        return Share(flat.numpy())

    def nothing(self, rows: Tensors) -> Share:
        """The share of no rows."""
        return Share(self._of(rows).zero_().numpy())

    def spread(self, total: Share, rows: Mapping[str, torch.Tensor]) -> float:
        """Set the gradients of parameters and of rows, and the buffers; the loss."""
        flat = torch.from_numpy(total.numbers)
        pieces = iter(flat.split_with_sizes([*self._sizes, *(row.numel() for row in rows.values())]))
        gradients = [next(pieces) for _ in self._parameters]
        loss = float(next(pieces))
        for buffer in self._buffers():
            values = next(pieces).view_as(buffer)
            buffer.copy_(values if buffer.is_floating_point() else values.round())
        used = next(pieces).tolist()
        for parameter, gradient, has in zip(self._parameters, gradients, used, strict=True):
            parameter.grad = gradient.view_as(parameter).to(parameter.dtype) if has else None
        for row in rows.values():
            row.grad = next(pieces).view_as(row)
        return loss

    @contextmanager
    def unmoved(self) -> Iterator[None]:
        """The buffers are afterwards as they were before."""
        before = [buffer.clone() for buffer in self._buffers()]
        try:
            yield
        finally:
            for buffer, values in zip(self._buffers(), before, strict=True):
                buffer.copy_(values)

    def _buffers(self) -> list[torch.Tensor]:
        """A module may have made others meanwhile."""
        return [getattr(module, name) for module, name in self._places]

    def _of(self, rows: Tensors) -> torch.Tensor:
        size = self._least + sum(row.numel() for row in rows)
        if size > len(self._room):
            self._room = torch.empty(size)
        return self._room[:size]

    def _flat(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor:
        if gradient is None:
            return torch.zeros(parameter.numel())
        return (gradient.to_dense() if gradient.is_sparse else gradient).reshape(-1)
