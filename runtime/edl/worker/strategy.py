"""What is done with gradients: applied here, pushed to parameter servers, reduced over a ring.

A strategy is composed with an adapter; the worker loop knows neither framework nor strategy. A task may be reported
when what was trained of it is in the parameters for good, which is sooner or later than its last step: a *mark* stands
for all that was trained until it was made, and is settled when that is so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from edl.models.weights import Weights
from edl.nn.adapter import Adapter, Floats, Minibatches
from edl.nn.structure import Array
from edl.tasks.task import Report
from edl.worker.rates import Rates


class VoidError(Exception):
    """What is being done counts for nothing any more: its lease is void, or this worker has to go."""


class Strategy(Protocol):
    """step: optimizer steps that the parameters have taken, as far as is known here. group: minibatches that are best
    handed in together."""

    step: int
    group: int

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        """A step for each minibatch, in order; their mean losses.

        done: what was done before of the task that they are of. rates: of the steps, None leaves them to the optimizer.
        VoidError: the task is not ours any more.
        """
        ...

    def mark(self) -> int:
        """Stands for all that was trained so far."""
        ...

    def settled(self, mark: int) -> bool:
        """Whether that is in the parameters for good."""
        ...

    def flush(self) -> None:
        """Wait until all that was trained is in the parameters. VoidError: it will not be."""
        ...

    def scoring(self) -> contextlib.AbstractContextManager[None]:
        """The model scores as the parameters are now inside."""
        ...

    def keep(self, epoch: int) -> None:
        """Keep the weights of now as those of the epoch, and forget those that were kept before."""
        ...

    def weights(self, epoch: int) -> Weights:
        """The weights that were kept of the epoch; 0: those of now. GoneError: they are lost."""
        ...


class Local:
    """All steps here, many of them in one compiled call. kept: weights of epochs, of which the best is one."""

    group = 1

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.step = 0
        self.kept: dict[int, Mapping[str, Array]] = {}

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        if rates is not None:
            rows = rows._replace(rates=rates(self.step, rows.steps))
        losses = self._adapter.train(rows)
        self.step += len(losses)
        return losses

    def mark(self) -> int:
        return self.step

    def settled(self, mark: int) -> bool:
        return True

    def flush(self) -> None:
        """There is nothing to wait for."""

    def scoring(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def keep(self, epoch: int) -> None:
        self.kept = {epoch: self._adapter.get_weights()}

    def weights(self, epoch: int) -> Weights:
        if epoch:
            self._adapter.set_weights(self.kept[epoch])
        return self._adapter.get_weights()


def after(done: Report, rows: Minibatches, loss: float) -> Report:
    """What is done of a task after a minibatch with this mean loss."""
    count = len(rows.labels)
    weight = count if rows.weights is None else float(rows.weights.sum(dtype=np.float64))
    return Report(
        done.task, done.rows + count, done.steps + 1, done.loss + loss * count, done.weight + weight
    )
