"""Shares of a step in PyTorch: all that the members of a ring add up for it, as one tensor.

    gradients of the parameters | loss | buffers | whether each parameter has a gradient | gradients of the rows

A parameter that has no gradient anywhere is not moved, as in any other step: with a gradient of zeros a weight decay
would move it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from edl.nn.adapter import Share

Tensors = Sequence[torch.Tensor]


class Shares:
    """Of one model. The memory is that of the share before, where that is enough."""

    def __init__(self, parameters: Tensors) -> None:
        self._parameters = parameters
        self._zeros = [torch.zeros(parameter.numel()) for parameter in parameters]
        self._room = torch.empty(0)

    def gathered(self, loss: torch.Tensor, buffers: Tensors, rows: Tensors, share: float) -> Share:
        """The share that a minibatch's part has; its gradients are those of the parameters and the rows, by now."""
        with torch.no_grad():
            parts = [self._gradient(number) for number in range(len(self._parameters))]
            used = torch.tensor([float(parameter.grad is not None) for parameter in self._parameters])
            parts.append(loss.reshape(1) * share)
            parts += [buffer.reshape(-1).float() * share for buffer in buffers]
            parts.append(used)
            parts += [(torch.zeros_like(row) if row.grad is None else row.grad).reshape(-1) for row in rows]
            flat = self._of(sum(self._sizes(buffers, rows)))
            torch.cat(parts, out=flat)
        return Share(flat.numpy())

    def nothing(self, buffers: Tensors, rows: Tensors) -> Share:
        """The share of no rows."""
        return Share(self._of(sum(self._sizes(buffers, rows))).zero_().numpy())

    def spread(self, total: Share, buffers: Tensors, rows: Mapping[str, torch.Tensor]) -> float:
        """Set the gradients of parameters and of rows, and the buffers; the loss."""
        pieces = iter(torch.from_numpy(total.numbers).split(self._sizes(buffers, list(rows.values()))))
        gradients = [next(pieces) for _ in self._parameters]
        loss = float(next(pieces))
        for buffer in buffers:
            values = next(pieces).view_as(buffer)
            buffer.copy_(values if buffer.is_floating_point() else values.round())
        used = next(pieces).tolist()
        for parameter, gradient, has in zip(self._parameters, gradients, used, strict=True):
            parameter.grad = gradient.view_as(parameter).to(parameter.dtype) if has else None
        for row in rows.values():
            row.grad = next(pieces).view_as(row)
        return loss

    def _of(self, size: int) -> torch.Tensor:
        if size > len(self._room):
            self._room = torch.empty(size)
        return self._room[:size]

    def _gradient(self, number: int) -> torch.Tensor:
        gradient = self._parameters[number].grad
        if gradient is None:
            return self._zeros[number]
        return (gradient.to_dense() if gradient.is_sparse else gradient).reshape(-1)

    def _sizes(self, buffers: Tensors, rows: Tensors) -> list[int]:
        return [
            *(parameter.numel() for parameter in self._parameters),
            1,
            *(buffer.numel() for buffer in buffers),
            len(self._parameters),
            *(row.numel() for row in rows),
        ]


@contextmanager
def unmoved(buffers: Tensors) -> Iterator[None]:
    """The buffers are afterwards as they were before."""
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        for buffer, values in zip(buffers, before, strict=True):
            buffer.copy_(values)
