"""Backup tasks at the end of PREDICT, EVALUATE and EXPLAIN: one that takes far longer than the others is given to an
idle worker as well, and the first result counts.

Tasks without parameters are independent of each other, and results are staged by task, so that both may run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import median

from edl.master.tasks.lease_table import LeaseTable, task_name
from edl.tasks.task import Task, TaskType

FACTOR = 3.0  # multiple of the median time of a task
LEAST_DONE = 3  # tasks that are done before one is far slower than they were
LEAST_SECS = 1.0  # a shorter task is not worth a second worker
_RECENT = 101  # tasks with remembered times


class Backups:
    """Times of the tasks of one type, by lease, and the tasks that are to have a backup.

    A task begins when its worker first names it as begun, or gets it and has no other one; those that it holds in
    advance are not late.
    """

    def __init__(self, table: LeaseTable, kind: TaskType) -> None:
        self._table = table
        self._kind = kind
        # Leases without a backup that take far longer than others, the oldest last.
        self._overdue: list[int] = []
        self._begun: dict[int, float] = {}
        self._ended: dict[str, float] = {}  # time at which an owner last ended a task
        self._took: deque[float] = deque(maxlen=_RECENT)

    def on_begin(self, tasks: Iterable[Task], now: float) -> None:
        """Record tasks that a worker has begun."""
        for task in tasks:
            if task.type == self._kind:
                self._begun.setdefault(task.attempt, now)

    def on_done(self, lease: int, owner: str, now: float) -> None:
        """Record that the task of a lease is done.

        One that its worker held in advance, and did not name as begun, began when the one before it ended.
        """
        begun = self._begun.pop(lease, self._ended.get(owner))
        self._ended[owner] = now
        if begun is not None:
            self._took.append(now - begun)

    @property
    def due(self) -> int:
        """Number of tasks that the next idle workers are to do as well."""
        return len(self._overdue)

    def find_overdue(self, now: float) -> None:
        """Find the tasks that take far longer than others, once all are assigned."""
        self._overdue = []
        if self._table.job.waits(self._kind):
            return
        leases = self._table.state.leases
        self._begun = {lease: begun for lease, begun in self._begun.items() if lease in leases}
        if len(self._took) < LEAST_DONE:
            return
        longest = max(LEAST_SECS, FACTOR * median(self._took))
        late = [lease for lease, begun in self._begun.items() if now - begun > longest]
        late.sort(key=self._begun.__getitem__, reverse=True)
        self._overdue = [lease for lease in late if not self._table.has_backup(lease)]

    def take(self, kind: TaskType, owner: str) -> Task | None:
        """Assign the oldest overdue task to a worker that is idle; return None if there is none for it."""
        if self._table.of(owner):
            return None
        for number in reversed(self._overdue):
            lease = self._table.state.leases.get(number)
            if lease is None or lease.type != kind or lease.instance == owner:
                continue
            self._overdue.remove(number)
            if (task := self._table.back_up(number, owner)) is not None:
                self._table.log(f"{task_name(task)} takes long on {lease.instance}: {owner} does it too")
            return task
        return None
