"""Number of tasks that a worker holds in advance, so that it goes on while no master answers.

A lost master is replaced after 10 s by the Job controller of Kubernetes, the next ones after 20, 40, … s. The tasks in
advance last for longer, as far as the time of a task is known.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from edl.tasks.task import TaskType

FIRST_SECS, LONGEST_SECS = 20.0, 60.0  # of work in advance: until a master is lost, and after several
MOST = 2048  # tasks
REFILL = 0.75  # part of them that is left when further ones are requested
_RECENT = 9  # tasks


class Ahead:
    """Number of tasks of the type `kind` to hold in advance; `least` before the time of a task is known."""

    def __init__(self, kind: TaskType, least: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.kind = kind
        self._least = least
        self._clock = clock
        self._took = deque[float](maxlen=_RECENT)
        self._since = clock()

    def on_done(self) -> None:
        """Record that a task is done."""
        now = self._clock()
        self._took.append(now - self._since)
        self._since = now

    def on_wait(self) -> None:
        """Record that this worker has waited: that is no time of a task."""
        self._since = self._clock()

    def forget(self) -> None:
        """Forget the times, because another worker gets the tasks."""
        self._took.clear()

    def count(self, masters: int) -> int:
        """Return the number of tasks in advance. `masters` is the number of masters that the job has had."""
        if not self._took:
            return self._least
        seconds = min(LONGEST_SECS, FIRST_SECS * (1 << max(0, min(masters, 8) - 1)))
        task_seconds = max(sum(self._took) / len(self._took), seconds / MOST)
        return max(self._least, math.ceil(seconds / task_seconds))
