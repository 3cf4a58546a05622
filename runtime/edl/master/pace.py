"""Pace of the master's passes over all instances: the more there are, the rarer a pass, so that it takes the same
fraction of a core in every job. With few instances, every pass is due when something happens.
"""

from __future__ import annotations

import gc
import math

SECS = 1e-4  # seconds between two passes, per instance
FEW = 100  # instances of which a pass costs nothing to speak of


class Pace:
    """Schedule of one kind of pass, with at least `secs` per instance between two of them."""

    def __init__(self, secs: float = SECS) -> None:
        self._secs = secs
        self._last = -math.inf

    def wait(self, now: float, instances: int) -> float:
        """Return the seconds until the next pass may begin; 0 if it is due."""
        if instances <= FEW:
            return 0.0
        passed = now - self._last
        return max(0.0, self._secs * instances - passed) if passed >= 0.0 else 0.0

    def is_due(self, now: float, instances: int) -> bool:
        """Return True if a pass is due, and begin it."""
        if self.wait(now, instances):
            return False
        self._last = now
        return True


def collect_rarely() -> None:
    """Have the garbage collector look at young objects after 50,000 of them, for the rest of this process.

    The records of ten thousand workers are alive, and looking at them again and again takes as long as using them.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
