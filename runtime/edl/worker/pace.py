"""How many minibatches go into one call: enough to keep Python out of the way, few enough to stop soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

SHORT, LONG = 0.05, 0.2  # seconds of a call below which calls grow, and above which they shrink


class Pace:
    """Adapts the steps of a call to what they take. It changes no result: the minibatches stay the same.

    group: steps that are not to be parted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, group: int = 1) -> None:
        self._clock = clock
        self._steps = self._group = group

    def pieces(self, first: int, rows: int, size: int) -> Iterator[tuple[int, int]]:
        """[first, rows) cut at minibatch borders; the time until the next piece is asked for is what a call took."""
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
