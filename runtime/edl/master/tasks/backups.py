"""Backup tasks at the end of PREDICT, EVALUATE and EXPLAIN: one that takes far longer than the others is given to an
idle worker as well, and the first result counts.

Tasks without parameters are independent of each other, and results are staged by task, so that both may run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

FACTOR = 3.0  # multiple of the median time of a task
LEAST_DONE = 3  # tasks that are done before one is far slower than they were
LEAST_SECS = 1.0  # a shorter task is not worth a second worker
_RECENT = 101  # tasks whose times are remembered


class Backups:
    """Times of the tasks of one job, by lease. Leases of an earlier master begin when they are seen first."""

    def __init__(self) -> None:
        self._begun: dict[int, float] = {}
        self._took: deque[float] = deque(maxlen=_RECENT)

    def begun(self, lease: int, now: float) -> None:
        self._begun.setdefault(lease, now)

    def done(self, lease: int, now: float) -> None:
        """Record that the task of a lease is done."""
        if (begun := self._begun.pop(lease, None)) is not None:
            self._took.append(now - begun)

    def overdue(self, leases: Iterable[int], now: float) -> list[int]:
        """Return those of the open leases whose tasks take far longer than others, the oldest last."""
        leases = [*leases]
        for lease in leases:
            self.begun(lease, now)
        self._begun = {lease: self._begun[lease] for lease in leases}
        if len(self._took) < LEAST_DONE:
            return []
        longest = max(LEAST_SECS, FACTOR * median(self._took))
        late = [lease for lease in leases if now - self._begun[lease] > longest]
        return sorted(late, key=self._begun.__getitem__, reverse=True)
