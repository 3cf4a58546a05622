"""Rates of progress over a recent window of time."""

from __future__ import annotations

from collections import deque

WINDOW = 30.0  # seconds
# Share of the time so far; the window grows with it, so that it spans several epochs with their measuring.
SHARE = 0.2
SAMPLES = 32  # kept of a window


class RecentRate:
    """The growth of a count per second, over the last `WINDOW` seconds or the last fifth of the time, if longer.

    All time counts: reading, measuring and storing as well as training, so that what is left divided by the rate is the
    time that is left. began: the second at which the count was `count`, on the clock that is passed in.
    """

    def __init__(self, began: float, count: int = 0) -> None:
        self._began = began
        self._samples = deque([(began, count)])
        self._now = began, count

    def add(self, now: float, count: int) -> None:
        """Note the count at a second. A lower count than before, after a return to a checkpoint, begins anew."""
        if count < self._now[1]:
            self._samples.clear()
        window = max(WINDOW, SHARE * (now - self._began))
        if not self._samples or now - self._samples[-1][0] >= window / SAMPLES:
            self._samples.append((now, count))
        while len(self._samples) > 1 and now - self._samples[1][0] >= window:
            self._samples.popleft()
        self._now = now, count

    @property
    def per_second(self) -> float:
        """The rate; 0 before any time has passed."""
        (first, before), (now, count) = self._samples[0], self._now
        return (count - before) / (now - first) if now > first else 0.0
