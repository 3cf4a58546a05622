"""Staleness of gradients in async: updates that a server has applied between the pull and the push of a gradient.

Beyond a bound k, the learning rate of a gradient that is s updates behind is multiplied by k/s, as in staleness-aware
asynchronous SGD (Zhang et al. 2016), which is the case k = 1. Every server weighs its own part, so no server has to ask
another one, and no gradient is computed again.
"""

from __future__ import annotations

import threading

from edl.jobs.snapshot import Staleness


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
