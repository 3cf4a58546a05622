"""What a master counts of its own work, since it began, for those who watch it."""

from __future__ import annotations

from collections.abc import Iterable


class Timed:
    """How often something was done, and the seconds that all of it took."""

    def __init__(self) -> None:
        self.times = 0
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.times += 1
        self.seconds += seconds


class CheckpointTimes:
    """Seconds from the beginning of a checkpoint to its completion, for one who looks often, to the time of a look.

    last: the name of the last that is complete, empty without one.
    """

    def __init__(self, last: str) -> None:
        self.complete = Timed()
        self._last = last
        self._begun: dict[str, float] = {}
        self._looked = 0.0

    def look(self, under_way: Iterable[str], last: str, now: float) -> None:
        """under_way: names of those that are begun."""
        if last != self._last and last:
            self.complete.add(now - self._begun.get(last, self._looked))
        self._last, self._looked = last, now
        self._begun = {name: self._begun.get(name, now) for name in under_way}
