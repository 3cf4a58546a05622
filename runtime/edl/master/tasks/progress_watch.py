"""Detection of workers that hang: their heartbeats come, and their work has made no progress for too long.

A worker makes progress when the done rows of a task grow, or it reports anything. One that waits for something to do,
or for a group, does not hang. Nor does a member of a group that another member leads: if it hangs, the others go on
without it, and then it neither is in a group nor asks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from edl.reachability import SOURCE
from edl.tasks.protocol import Request
from edl.tasks.task import CONTROL, Task, TaskType

LEAST_SECS = 600.0  # without a setting; some storage is away for minutes
FACTOR = 20.0  # multiple of the longest time so far between two signs of progress
START_FACTOR, LEAST_START_SECS = 10.0, 60.0  # of the setting, until a worker has its first task
FIRST_SECS = 3600.0  # before the first progress of that type of task, which may compile and download


class Hanging(NamedTuple):
    """Worker without progress for `seconds`, with the task that it is at, if any."""

    instance: str
    incarnation: int
    seconds: float
    task: Task | None


@dataclass
class _Worker:
    """Last state of a worker. `since` is the second of its last progress; `kind` is the type of its work, if known."""

    incarnation: int
    since: float
    rows: dict[int, int] = field(default_factory=dict)  # done rows by lease
    task: Task | None = None
    kind: TaskType | None = None


class ProgressWatch:
    """Times without progress of the workers of one job.

    `timeout` is the setting in seconds; 0 derives it from the progress so far. `measured` is False if tasks report
    nothing until they are done, however long they take: then only a setting ends them.
    """

    def __init__(self, timeout: float = 0.0, *, measured: bool = True) -> None:
        self._timeout = timeout
        self._measured = measured
        self._workers: dict[str, _Worker] = {}
        self._longest: dict[TaskType, float] = {}  # between two signs of progress

    def observe(self, request: Request, now: float, *, follows: bool) -> None:
        """Process a request. `follows`: the worker is in a group that another member leads."""
        worker = self._workers.get(request.instance)
        if worker is None or worker.incarnation != request.incarnation:
            worker = self._workers[request.instance] = _Worker(request.incarnation, now)
        rows = {held.task.attempt: held.rows for held in request.held}
        moves = bool(request.updates) or rows != worker.rows
        if moves and worker.kind is not None and worker.rows:
            self._longest[worker.kind] = max(self._longest.get(worker.kind, 0.0), now - worker.since)
        if moves or _waits(request) or (follows and not request.held):
            worker.since = now
        worker.rows = rows
        worker.task = request.held[0].task if request.held else None
        worker.kind = worker.task.type if worker.task else "train" if request.group else None

    def begin_anew(self, now: float) -> None:
        """Restart all times, because the workers may have waited for something else than their work."""
        for worker in self._workers.values():
            worker.since = now

    def take_hanging(
        self, now: float, is_alive: Callable[[str, int], bool], late: float = 0.0
    ) -> Hanging | None:
        """Return the worker that has hung for too long, longest first, and forget it. `late` are seconds that a sign of
        progress may come later.

        The others may have waited for it, so their times begin anew.
        """
        for name in [
            name for name, record in self._workers.items() if not is_alive(name, record.incarnation)
        ]:
            del self._workers[name]
        name = min(self._workers, key=lambda name: self._workers[name].since, default="")
        if not name or now - self._workers[name].since <= self.limit(self._workers[name].kind) + late:
            return None
        worker = self._workers.pop(name)
        self.begin_anew(now)
        return Hanging(name, worker.incarnation, now - worker.since, worker.task)

    def limit(self, kind: TaskType | None) -> float:
        """Return the longest time without progress, in seconds; None is a worker that has done nothing yet."""
        if kind is None:
            return max(START_FACTOR * self._timeout, LEAST_START_SECS) if self._timeout else FIRST_SECS
        if self._timeout or not self._measured:
            return self._timeout or float("inf")
        longest = self._longest.get(kind)
        return FIRST_SECS if longest is None else max(LEAST_SECS, FACTOR * longest)


def _waits(request: Request) -> bool:
    """Return True if the worker waits for something to do, for a group, or for a data source that is away.

    A thread that reads ahead requests tasks also while another one trains.
    """
    idle = bool(request.want) and not request.held
    is_waiting_for_rows = SOURCE in request.obstacle
    return (
        idle
        or is_waiting_for_rows
        or request.join is not None
        or any(kind in request.want for kind in CONTROL)
    )
