"""Counts of a server for its snapshots: bytes and calls, and the staleness of gradients."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from edl.jobs.snapshot import Staleness
from edl.ps.messages import Figures
from edl.ps.wire import Array


class Counters:
    """Thread-safe counters of pulls, pushes, rows and busy seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulls = self._pushes = self._rows_pulled = self._rows_pushed = 0
        self._busy = 0.0

    @contextmanager
    def busy(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._busy += time.perf_counter() - began

    @contextmanager
    def pull(self, ids: Sequence[Array]) -> Iterator[None]:
        with self.busy():
            yield
        with self._lock:
            self._pulls += 1
            self._rows_pulled += sum(map(len, ids))

    @contextmanager
    def push(self, ids: Sequence[Array]) -> Iterator[None]:
        with self.busy():
            yield
        with self._lock:
            self._pushes += 1
            self._rows_pushed += sum(map(len, ids))

    def figures(self) -> Figures:
        with self._lock:
            return Figures(
                pulls=self._pulls,
                pushes=self._pushes,
                rows_pulled=self._rows_pulled,
                rows_pushed=self._rows_pushed,
                busy=self._busy,
            )


class StalenessMeter:
    """Staleness of the gradients that a server applied since its start. `bound` is k, 0 for none. Thread-safe."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._lock = threading.Lock()
        self._gradients = self._sum = self._maximum = self._reduced = 0

    def weigh(self, behind: int) -> float:
        """Count a gradient that is so many updates behind; return the factor of its learning rate."""
        with self._lock:
            self._gradients += 1
            self._sum += behind
            self._maximum = max(self._maximum, behind)
            if not self._bound or behind <= self._bound:
                return 1.0
            self._reduced += 1
            return self._bound / behind

    def figures(self) -> Staleness:
        with self._lock:
            return Staleness(self._gradients, self._sum, self._maximum, self._reduced)
