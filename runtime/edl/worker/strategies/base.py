"""Contract of training strategies: gradients are applied locally, pushed to parameter servers, or all-reduced.

A strategy is composed with an adapter; the worker loop knows neither framework nor strategy. A task may be reported
once its training is durable in the parameters, which is at its last step or later. A *mark* stands for all training up
to a point, and is settled once that is durable.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from edl.arrays import Array
from edl.frameworks.adapter import Adapter, Floats, Minibatches, keeps_rounds
from edl.models.weights import Weights
from edl.tasks.task import Report, Round
from edl.worker.learning_rate import Rates

RECENT = 256  # epochs of trees, of which only numbers of rounds are kept


class VoidError(Exception):
    """Signal that the present work is discarded: its lease is void, or this worker has to leave."""


class Strategy(Protocol):
    """Training strategy of one worker.

    `step` counts the optimizer steps of the parameters, as far as known here. `group` is the preferred number of
    minibatches per call. `part` is the part of the rows of a task that this worker reads: its number and the number of
    parts. `measures_between_steps`: rows may be measured in the middle of a training task.
    """

    step: int
    group: int
    part: tuple[int, int]
    measures_between_steps: bool

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        """Take a step for each minibatch, in order; return their mean losses, float32 (steps,).

        `done` is the progress of their task before them. `rates` gives the learning rate of each step, or None to leave
        it to the optimizer. Raises VoidError if the task's lease is void.
        """
        ...

    def weight_of(self, weight: float) -> float:
        """Return the weight of the rows of the last call of `train`. This worker's rows have the weight `weight`."""
        ...

    def mark(self) -> int:
        """Return a mark for all training so far."""
        ...

    def is_durable(self, mark: int) -> bool:
        """Return True if the training up to `mark` is durable."""
        ...

    def flush(self) -> None:
        """Wait until all training is durable. Raises VoidError if it is void."""
        ...

    def scoring(self, round_: Round | None = None) -> contextlib.AbstractContextManager[None]:
        """Provide a context in which the model scores with the present parameters, or those kept for a round that is
        measured later.
        """
        ...

    def release(self, round_: Round) -> None:
        """Drop what a round needed, which is measured now."""
        ...

    def keep(self, epoch: int) -> None:
        """Keep the weights of this epoch, the present ones unless it was postponed; drop earlier epochs' weights."""
        ...

    def remember(self, epoch: int) -> None:
        """Keep the present weights of an epoch that has just ended for a while, if that costs nothing: the next master
        may have it measured again, since the conclusion was not durable.
        """
        ...

    def postpone(self, epoch: int) -> None:
        """Keep the present weights until this epoch, which has just ended, is concluded."""
        ...

    def drop(self, epoch: int) -> None:
        """Drop the weights that `postpone` has kept for this epoch, which is concluded."""
        ...

    def weights(self, epoch: int) -> Weights:
        """Return the weights kept for this epoch, or the present ones for 0. Raises GoneError if they are lost."""
        ...


class Local:
    """Strategy that takes all steps locally, many of them in one compiled call.

    `kept` has weights by epoch. They are of the best one, and of epochs that are not concluded yet. `measures` is False
    if no rows are measured at the end of an epoch.
    """

    group = 1
    part = 0, 1
    measures_between_steps = False
    measures = True

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.step = 0
        self.kept: dict[int, Mapping[str, Array]] = {}
        self.postponed: set[int] = set()
        self._recent: dict[int, Mapping[str, Array]] = {}  # what `remember` keeps, by epoch

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        if rates is not None:
            rows = rows._replace(rates=rates(self.step, rows.steps))
        losses = self._adapter.train(rows)
        self.step += len(losses)
        return losses

    def weight_of(self, weight: float) -> float:
        return weight

    def mark(self) -> int:
        return self.step

    def is_durable(self, mark: int) -> bool:
        return True

    def flush(self) -> None:
        """Return at once: local steps are durable."""

    @contextlib.contextmanager
    def scoring(self, round_: Round | None = None) -> Iterator[None]:
        later = round_ is not None and round_.final and round_.step < self.step
        kept = self._weights_of(round_.epoch) if round_ is not None and later else None
        if kept is None:
            yield
            return
        present, state = self._adapter.keep(), self._adapter.get_state()
        self._adapter.set_weights(kept)
        try:
            yield
        finally:
            self._adapter.set_weights(present)
            self._adapter.set_state(state)

    def release(self, round_: Round) -> None:
        """Drop nothing: a round needs the weights alone."""

    def keep(self, epoch: int) -> None:
        self.postponed.discard(epoch)
        later = {number: weights for number, weights in self.kept.items() if number > epoch}
        self.kept = {epoch: self._weights_of(epoch) or self._adapter.keep(), **later}

    def remember(self, epoch: int) -> None:
        if keeps_rounds(self._adapter):
            self._recent[epoch] = self._adapter.keep()
            self._recent.pop(epoch - RECENT, None)

    def _weights_of(self, epoch: int) -> Mapping[str, Array] | None:
        """Return what is known of the weights at the end of an epoch."""
        return self.kept.get(epoch) or self._recent.get(epoch)

    def postpone(self, epoch: int) -> None:
        if self.measures:
            self.kept[epoch] = self._adapter.keep()
            self.postponed.add(epoch)

    def drop(self, epoch: int) -> None:
        if epoch in self.postponed:
            self.kept.pop(epoch, None)
        self.postponed.discard(epoch)

    def weights(self, epoch: int) -> Weights:
        if epoch:
            self._adapter.set_weights(self.kept[epoch])
        return self._adapter.get_weights()


def add_minibatch(done: Report, rows: Minibatches, loss: float) -> Report:
    """Return the progress of a task after a minibatch with this mean loss."""
    count = len(rows.labels)
    weight = count if rows.weights is None else float(rows.weights.sum(dtype=np.float64))
    return done.plus(count, 1, loss * count, weight)
