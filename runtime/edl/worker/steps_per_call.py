"""Number of minibatches per call: enough to amortize Python's overhead, few enough to stop soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

SHORT, LONG = 0.05, 0.2  # seconds: shorter calls grow, longer ones shrink


class StepsPerCall:
    """Adaptive number of steps per call, a multiple of `group`. It changes no result: the minibatches stay the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, group: int = 1) -> None:
        self._clock = clock
        self._steps = self._group = group

    def pieces(self, first: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield [first, last) ranges of whole minibatches. The time until the next request is the call's."""
        while first < rows:
            last = min(first + self._steps * size, rows)
            began = self._clock()
            yield first, last
            self._adapt(self._clock() - began, -(-(last - first) // size))
            first = last

    def _adapt(self, seconds: float, taken: int) -> None:
        if seconds > LONG:
            self._steps = max(1, taken // 2 // self._group) * self._group
        elif seconds < SHORT and taken == self._steps:
            self._steps *= 2
