"""Straggler detection in an all-reduce group: compute times of the members, compared every few steps.

All members reach the same verdict, because all of them see the same figures.
"""

from __future__ import annotations

import statistics
from collections import deque

import numpy as np

from edl.arrays import Array

WINDOW = 20  # steps between two comparisons
LEAST_SECS = 2.0  # compute time of the slowest member before members are compared
FAR = 3.0  # multiple of the median that makes a straggler


class StragglerDetector:
    """Compute times of this member and its group.

    `seconds` is the recent median time of a step on this member, `slowest` the time of a step on the slowest member.
    """

    def __init__(self) -> None:
        self._own = deque[float](maxlen=WINDOW)
        self.begin(1)

    def begin(self, size: int) -> None:
        """Start a group of `size` members and forget the figures of the previous one."""
        self.slowest = 0.0
        self._since = np.zeros(2)  # seconds and rows since the last comparison
        self._sums = np.zeros((size, 2))  # the same of all members, since the last verdict

    @property
    def seconds(self) -> float:
        return statistics.median(self._own) if self._own else 0.0

    def record_slice(self, rows: int, seconds: float) -> None:
        """Record the time of one slice."""
        self._own.append(seconds)
        self._since += seconds, rows

    def take_own_sums(self) -> Array:
        """Return seconds and rows since the last call, float64 (2,), to be exchanged with the group."""
        seconds, self._since = self._since, np.zeros(2)
        return seconds

    def compare(self, figures: Array) -> list[int]:
        """Return the ranks of the stragglers, once enough is known. `figures` has the figures of each member, (members,
        2).
        """
        self.slowest = float(figures[:, 0].max()) / WINDOW
        self._sums += figures
        seconds, rows = self._sums.T
        if seconds.max() < LEAST_SECS or not rows.all():
            return []
        per_row = seconds / rows
        self._sums[:] = 0
        return np.flatnonzero(per_row > FAR * statistics.median_low(per_row.tolist())).tolist()
