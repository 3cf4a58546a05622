"""How long members of a ring compute, and who is far slower than the others.

All members come to the same, because all hear the same of each other every few steps.
"""

from __future__ import annotations

import statistics
from collections import deque

import numpy as np

from edl.nn.structure import Array

WINDOW = 20  # steps between two comparisons
LEAST_SECS = 2.0  # that the slowest must have computed before anybody is judged
FAR = 3.0  # times the median


class Laggards:
    """seconds: of a step, of late, here. slowest: of a step at the member that takes longest."""

    def __init__(self) -> None:
        self._own = deque[float](maxlen=WINDOW)
        self.begin(1)

    def begin(self, size: int) -> None:
        """A ring of `size` members begins; what was heard of others is forgotten."""
        self.slowest = 0.0
        self._since = np.zeros(2)  # seconds and rows since the last comparison
        self._sums = np.zeros((size, 2))  # … of all members since anybody was judged

    @property
    def seconds(self) -> float:
        return statistics.median(self._own) if self._own else 0.0

    def computed(self, rows: int, seconds: float) -> None:
        """A step's slice was computed here."""
        self._own.append(seconds)
        self._since += seconds, rows

    def own(self) -> Array:
        """What the others are to hear, float64 (2,)."""
        found, self._since = self._since, np.zeros(2)
        return found

    def compare(self, found: Array) -> list[int]:
        """The ranks that are far slower, once enough is known. found: what each member gave, (members, 2)."""
        self.slowest = float(found[:, 0].max()) / WINDOW
        self._sums += found
        seconds, rows = self._sums.T
        if seconds.max() < LEAST_SECS or not rows.all():
            return []
        per_row = seconds / rows
        self._sums[:] = 0
        return np.flatnonzero(per_row > FAR * statistics.median_low(per_row.tolist())).tolist()
