"""Task source of a job in one process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from edl.jobs.events import EpochEnd
from edl.tasks.job_state import Job, Plan
from edl.tasks.task import CONTROL, Report, Task, TaskType


class LocalTasks:
    """Task source of a job whose tasks all run in this process. `listener` receives each row of the learning curve."""

    waits = False

    def __init__(self, plan: Plan, listener: Callable[[EpochEnd], None] = lambda row: None) -> None:
        self.job = Job(plan, began=time.monotonic())
        self._listener = listener
        self._lock = threading.Lock()

    @property
    def pending(self) -> bool:
        return any(map(self.job.waits, CONTROL))

    @property
    def stopped(self) -> bool:
        return self.job.stopped

    def turn(self) -> bool:
        return not self.pending

    def next(self, *types: TaskType) -> Task | None:
        with self._lock:
            return next((task for kind in types if (task := self.job.take(kind))), None)

    def valid(self, task: Task) -> bool:
        """Return True: no other worker exists."""
        return True

    def over(self, kind: TaskType) -> bool:
        with self._lock:
            return self.job.over(kind)

    def progress(self, done: Report) -> None:
        with self._lock:
            self.job.tick(time.monotonic())

    def report(self, report: Report) -> None:
        with self._lock:
            rows = self.job.done(report, time.monotonic())
        for row in rows:
            if isinstance(row, EpochEnd):
                self._listener(row)

    def failed(self, task: Task, error: Exception) -> bool:
        """Return False: no other worker can do it."""
        return False

    def give_back(self, part: Report) -> None:
        with self._lock:
            self.job.give_back(part.task, part)

    def awake(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that does nothing: `next` never waits here."""
        return contextlib.nullcontext()
