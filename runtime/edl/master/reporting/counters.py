"""Counters of a master's own work since its start, for its metrics."""

from __future__ import annotations

from collections.abc import Iterable


class Timed:
    """Number of operations and their total seconds."""

    def __init__(self) -> None:
        self.times = 0
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.times += 1
        self.seconds += seconds


class CheckpointTimes:
    """Seconds from the start of a checkpoint to its completion, sampled by calls of `look`.

    The resolution is the interval between two calls. `last` is the name of the last complete checkpoint, or empty.
    """

    def __init__(self, last: str) -> None:
        self.complete = Timed()
        self._last = last
        self._begun: dict[str, float] = {}
        self._looked = 0.0

    def look(self, under_way: Iterable[str], last: str, now: float) -> None:
        """Record the checkpoints in progress (`under_way`) and the last complete one at the second `now`."""
        if last != self._last and last:
            self.complete.add(now - self._begun.get(last, self._looked))
        self._last, self._looked = last, now
        self._begun = {name: self._begun.get(name, now) for name in under_way}
