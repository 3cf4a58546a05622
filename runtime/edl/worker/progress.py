"""Progress events of the steps: rates and running losses, limited to a frequency that a person can read."""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.jobs.events import Observer, Phase, Progress, finite
from edl.tasks.rate import RecentRate

INTERVAL = 0.2  # seconds between two events


class Meter:
    """Row counter of one phase that notifies the observer about five times a second."""

    def __init__(
        self,
        observer: Observer,
        phase: Phase,
        total: int,
        *,
        epochs: int = 0,
        may_end_early: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._phase = phase
        self._total = total
        self._epochs = epochs
        self._may_end_early = may_end_early
        self._clock = clock
        self._rows = self._step = self._epoch = 0
        self._loss = self._weight = 0.0  # since the last event
        self._shown_at = clock()
        self._rate: RecentRate | None = None  # from the end of the first steps, which compile the model

    def add(self, rows: int, *, steps: int = 0, epoch: int = 0, loss: float | None = None) -> None:
        """Count rows that were just done with the mean loss `loss`."""
        self._rows += rows
        self._step += steps
        self._epoch = epoch
        if loss is not None:
            self._loss += loss * rows
            self._weight += rows
        self._rate = self._rate or RecentRate(self._clock(), self._rows)
        if self._clock() - self._shown_at >= INTERVAL:
            self.show()

    def show(self) -> None:
        """Notify the observer now."""
        now = self._clock()
        self._rate = self._rate or RecentRate(now, self._rows)
        self._rate.add(now, self._rows)
        loss = finite(self._loss / self._weight) if self._weight else None
        self._observer(
            Progress(
                self._phase,
                self._rows,
                self._total,
                self._rate.per_second,
                self._epoch,
                self._epochs,
                self._step,
                loss,
                self._may_end_early,
            )
        )
        self._shown_at = now
        self._loss = self._weight = 0.0
