"""Gradients of a script's optimizer: weighted by rows, accumulated over micro-batches, summed over the group.

The loss of the script is a mean over its rows, so the sum of the gradients, each weighted by the share of its rows in
the step, is the gradient of the mean over all rows of the step. Floating-point buffers (moving statistics) become the
weighted mean of the workers' buffers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group
from edl.elastic.collective import STEP, summed

Take = Callable[[Callable[[], None]], bool]  # gets the optimizer's own step; returns True if it was taken


class Gradients(ABC):
    """Gradients of the parameters of an optimizer, and the buffers of the model, all as flat arrays.

    parameters, buffers: their numbers of elements. double: the sums are in float64.
    """

    def __init__(self, parameters: Sequence[int], buffers: Sequence[int], *, double: bool) -> None:
        self._parameters = range(len(parameters))
        self._buffers = range(len(parameters), len(parameters) + len(buffers))
        # The flat array begins with the mark of `summed`, and with 1 for each parameter that has a gradient.
        self._ends = np.cumsum([1 + len(parameters), *parameters, *buffers])
        self._flat: Array = np.zeros(self._ends[-1], np.float64 if double else np.float32)
        self._kept: list[Array] = []
        self._used = False
        self.keep()

    def add(self, share: float) -> None:
        """Add the present gradients, of a micro-batch with this share of the rows of the step."""
        self._used = True
        if not share:  # this worker has no row: it computed one without weight
            return
        for number in self._parameters:
            gradient = self._gradient(number)
            if gradient is not None:
                self._flat[1 + number] = 1
                self._view(number)[:] += share * gradient
        self.clear()

    def sum(self, group: Group | None, share: float) -> None:
        """Set the gradients to the sum over the group; `share` is that of this worker. Raises as `summed`."""
        for number in self._buffers:
            self._view(number)[:] = share * self._buffer(number - len(self._parameters)) if share else 0
        if group is not None:
            summed(group, STEP, self._flat)
        for number in self._parameters:
            self._set_gradient(number, self._view(number) if self._flat[1 + number] else None)
        self._set_buffers([self._view(number) for number in self._buffers])
        self._reset()

    @property
    def accumulated(self) -> bool:
        """True if micro-batches were added since the last sum."""
        return self._used

    def keep(self) -> None:
        """Keep the buffers after a step: the next one may have to be repeated."""
        self._kept = [np.array(self._buffer(number)) for number in range(len(self._buffers))]

    def discard(self) -> None:
        """Forget what was computed since the last step."""
        self._set_buffers(self._kept)
        self.clear()
        self._reset()

    @abstractmethod
    def clear(self) -> None:
        """Forget the present gradients."""

    @abstractmethod
    def _gradient(self, number: int) -> Array | None:
        """Return the present gradient of a parameter, or None if it has none."""

    @abstractmethod
    def _set_gradient(self, number: int, flat: Array | None) -> None:
        """Replace the gradient of a parameter. The array is valid during the call."""

    @abstractmethod
    def _buffer(self, number: int) -> Array:
        """Return the values of a buffer."""

    @abstractmethod
    def _set_buffers(self, flat: Sequence[Array]) -> None:
        """Replace the values of all buffers. The arrays are valid during the call."""

    def _reset(self) -> None:
        self._flat[:] = 0
        self._used = False

    def _view(self, number: int) -> Array:
        return self._flat[self._ends[number] : self._ends[number + 1]]
