"""The learning curve of a job, in bounded memory, and its standing: the best epoch and the epochs without a gain.

The number of epochs has no limit, and the curve travels with the job's state: into the state store, checkpoints and the
model's archive. So the curve is thinned while it grows, and the standing is kept up to date epoch by epoch in place of
being computed from all epochs.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

import msgspec

from edl.jobs.events import EpochEnd, Figures
from edl.spec import Uncertainty

LIMIT = 1000  # items kept of a series; even, so that the item after a halving is on the new stride

T = TypeVar("T")


class Thinned(msgspec.Struct, Generic[T]):
    """A series thinned to at most `LIMIT` evenly spaced items and the last one.

    Item i, counted from 0, is kept when i is a multiple of `stride`. When `LIMIT` items are kept, every second one is
    dropped and `stride` doubles; the first item always stays. Adding takes constant time, amortised, and what is kept
    depends on the added items alone. Up to `LIMIT` items, all are kept.
    """

    kept: list[T] = []
    last: T | None = None
    count: int = 0  # of the items added
    stride: int = 1

    def add(self, item: T) -> None:
        """Append an item."""
        if self.count % self.stride == 0:
            if len(self.kept) == LIMIT:
                del self.kept[1::2]
                self.stride *= 2
            self.kept.append(item)
        self.last = item
        self.count += 1

    @property
    def items(self) -> list[T]:
        """The kept items in their order, the last one among them."""
        if self.last is None or (self.count - 1) % self.stride == 0:
            return list(self.kept)
        return [*self.kept, self.last]


class Standing(msgspec.Struct, frozen=True):
    """The state of training, by its validation losses.

    best: the epoch of the lowest loss, 0 before the first; figures and uncertainty are of it. since: epochs since a
    loss was lower than `mark` by more than `min_delta`.
    """

    best: int = 0
    loss: float = math.inf
    figures: Figures = {}
    mark: float = math.inf
    since: int = 0
    uncertainty: Uncertainty | None = None

    def after(
        self, epoch: int, figures: Figures, min_delta: float, uncertainty: Uncertainty | None = None
    ) -> Standing:
        """Return the standing after an epoch with these validation figures. A loss that is no number gains nothing."""
        value = figures.get("loss")
        loss = math.inf if value is None else value
        standing = self
        if loss < self.loss:
            standing = msgspec.structs.replace(
                standing, best=epoch, loss=loss, figures=figures, uncertainty=uncertainty
            )
        if loss < self.mark - min_delta:
            return msgspec.structs.replace(standing, mark=loss, since=0)
        return msgspec.structs.replace(standing, since=self.since + 1)


class LearningCurve(msgspec.Struct):
    """A thinned learning curve: the first, the last and the best epoch, and evenly spaced ones between them.

    ends: the ends of epochs. rounds: the rows in the middle of epochs, thinned apart from the ends. best: the row of
    the lowest validation loss; without validation rows, of the lowest training loss.
    """

    ends: Thinned[EpochEnd] = msgspec.field(default_factory=Thinned)
    rounds: Thinned[EpochEnd] = msgspec.field(default_factory=Thinned)
    best: EpochEnd | None = None
    standing: Standing = Standing()

    def add(self, row: EpochEnd, min_delta: float = 0.0, uncertainty: Uncertainty | None = None) -> None:
        """Append a row; the end of an epoch with validation rows moves the standing."""
        if not row.final:
            self.rounds.add(row)
            return
        self.ends.add(row)
        if row.metrics:
            self.standing = self.standing.after(row.epoch, row.metrics, min_delta, uncertainty)
        if self.best is None or _loss(row) < _loss(self.best):
            self.best = row

    @property
    def epochs(self) -> int:
        """The number of epochs that ended."""
        return self.ends.count

    @property
    def rows(self) -> tuple[EpochEnd, ...]:
        """The kept rows by step; a row within an epoch comes before the end of that epoch."""
        rows = [*self.rounds.items, *self.ends.items]
        if self.best is not None and self.best not in self.ends.items:
            rows.append(self.best)
        return tuple(sorted(rows, key=lambda row: (row.step, row.epoch, row.final)))


def _loss(row: EpochEnd) -> float:
    """Return the validation loss, or without validation rows the training loss; infinite when it is no number."""
    value = row.metrics.get("loss") if row.metrics else row.loss
    return math.inf if value is None else value
