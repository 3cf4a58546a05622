"""Gradients of a script's optimizer: weighted by rows, accumulated over micro-batches, summed over the group.

The loss of the script is a mean over its rows, so the sum of the gradients, each weighted by the share of its rows in
the step, is the gradient of the mean over all rows of the step. Floating-point buffers (moving statistics) become the
weighted mean of the workers' buffers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from edl.collectives.base import Group

Take = Callable[[Callable[[], None]], bool]  # gets the optimizer's own step; returns True if it was taken


class Gradients(ABC):
    """Gradients of the parameters of an optimizer, and the buffers of the model."""

    accumulated = False  # True if micro-batches were added since the last sum

    def add(self, share: float) -> None:
        """Add the present gradients, of a micro-batch with this share of the rows of the step, and forget them."""
        self.accumulated = True
        if share:  # else this worker has no row: it computed one without weight
            self._add(share)
            self.clear()

    def sum(self, group: Group | None, share: float) -> None:
        """Set gradients and buffers to the sum over the group; `share` is this worker's share. Raises as `summed`."""
        self._sum(group, share)
        self._forget()

    def discard(self) -> None:
        """Forget what was computed since the last step."""
        self._restore()
        self.clear()
        self._forget()

    @abstractmethod
    def keep(self) -> None:
        """Keep the buffers after a step: the next one may have to be repeated."""

    @abstractmethod
    def clear(self) -> None:
        """Forget the present gradients."""

    @abstractmethod
    def _add(self, share: float) -> None:
        """Add the present gradients, weighted."""

    @abstractmethod
    def _sum(self, group: Group | None, share: float) -> None:
        """Set gradients and buffers to the sum over the group."""

    @abstractmethod
    def _restore(self) -> None:
        """Set the buffers to the kept ones."""

    def _forget(self) -> None:
        """Forget what was added."""
        self.accumulated = False
