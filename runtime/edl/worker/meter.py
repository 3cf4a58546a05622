"""From steps to progress events: rates, running losses, and not more events than a person can read."""

from __future__ import annotations

import time
from collections.abc import Callable

from edl.tasks.events import Observer, Phase, Progress, finite

INTERVAL = 0.2  # seconds between two events


class Meter:
    """Counts the rows of one phase and tells the observer about five times a second."""

    def __init__(
        self,
        observer: Observer,
        phase: Phase,
        total: int,
        *,
        epochs: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._phase = phase
        self._total = total
        self._epochs = epochs
        self._clock = clock
        self._rows = self._step = self._epoch = 0
        self._loss = self._weight = 0.0  # since the last event
        self._rate = 0.0
        self._told_at = clock()
        self._told_rows = 0

    def add(self, rows: int, *, steps: int = 0, epoch: int = 0, loss: float | None = None) -> None:
        """Count rows that were just done; loss is their mean."""
        self._rows += rows
        self._step += steps
        self._epoch = epoch
        if loss is not None:
            self._loss += loss * rows
            self._weight += rows
        if self._clock() - self._told_at >= INTERVAL:
            self.tell()

    def pause(self, seconds: float) -> None:
        """Time that went to something else does not count against the rate."""
        self._told_at += seconds

    def tell(self) -> None:
        """Tell the observer now."""
        now = self._clock()
        if now > self._told_at:
            rate = (self._rows - self._told_rows) / (now - self._told_at)
            self._rate = rate if not self._rate else (self._rate + rate) / 2
        loss = finite(self._loss / self._weight) if self._weight else None
        self._observer(
            Progress(
                self._phase, self._rows, self._total, self._rate, self._epoch, self._epochs, self._step, loss
            )
        )
        self._told_at, self._told_rows = now, self._rows
        self._loss = self._weight = 0.0
