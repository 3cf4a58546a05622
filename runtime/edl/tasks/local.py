"""Task source of a job in one process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from edl.jobs.events import EpochEnd
from edl.tasks import encoding
from edl.tasks.job_state import Job, JobState, Plan
from edl.tasks.task import CONTROL, Report, Task, TaskType


class LocalTasks:
    """Task source of a job with all tasks in this process. `listener` receives each row of the learning curve."""

    waits = False

    def __init__(self, plan: Plan, listener: Callable[[EpochEnd], None] = lambda row: None) -> None:
        self.job = Job(plan)
        self._began = time.monotonic()
        self._listener = listener
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the job, from which its state counts time."""
        return time.monotonic() - self._began

    def state_at(self, part: Report) -> JobState:
        """Return the state at this moment, from which the job can continue. Of open tasks `part` is done."""
        with self._lock:
            kept = encoding.decode(encoding.encode(self.job.to_state()), JobState)
        copy = Job(self.job.plan, kept)
        if part.rows and copy.claim(part.task, part.task.attempt):
            copy.give_back(part.task, part)
        return copy.to_state()

    @property
    def is_pending(self) -> bool:
        return any(map(self.job.waits, CONTROL))

    @property
    def is_stopped(self) -> bool:
        return self.job.is_stopped

    def turn(self) -> bool:
        return not self.is_pending

    def next(self, *types: TaskType) -> Task | None:
        with self._lock:
            return next((task for kind in types if (task := self.job.take(kind))), None)

    def holds_lease(self, task: Task) -> bool:
        """Return True: no other worker exists."""
        return True

    def is_over(self, kind: TaskType) -> bool:
        with self._lock:
            return self.job.is_over(kind)

    def progress(self, done: Report) -> None:
        with self._lock:
            self.job.tick(self.seconds)

    def report(self, report: Report) -> None:
        with self._lock:
            rows = self.job.finish_task(report, self.seconds)
        for row in rows:
            if isinstance(row, EpochEnd):
                self._listener(row)

    def take_postponed(self) -> int:
        """Return 0: an epoch is measured at once."""
        return 0

    def report_failure(self, task: Task, error: Exception) -> bool:
        """Return False: no other worker can do it."""
        return False

    def give_back(self, part: Report) -> None:
        with self._lock:
            self.job.give_back(part.task, part)

    def awake(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that does nothing: `next` never waits here."""
        return contextlib.nullcontext()
