"""Position of a group member in the shared task log, read and changed under one lock.

It is transferred together with the parameters, as `GroupProgress`: the worker that takes them continues there.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from edl.tasks.task import Report, Task
from edl.worker.strategies.allreduce.task_log import AssignedTask, Entry, GroupProgress, Log, complete


class LogPosition:
    """Position in the log.

    `changed` is the lock, notified on every change. `log` is the group's log, None before the first group. `ended` is
    the last trained epoch, `concluded` the last one known to be concluded. `told` has, by lease, the reports that the
    master may not have stored. `best` is an epoch that was concluded here, with the best epoch at that time. `turning`
    is True while the loop has not executed the last entry written here.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self.log: Log | None = None
        self.ended = self.concluded = 0
        self.told: dict[int, Report] = {}
        self.durable = 0  # reports of leases up to this number survive the master
        self.best = (0, 0)
        self.turning = False
        self._assigned: dict[int, AssignedTask] = {}  # by lease, in the order of the log

    @property
    def open(self) -> list[Report]:
        """Progress of the open tasks as leased, in the order of the log."""
        left = self.log.tasks() if self.log is not None else ()
        return [*(assigned.done for assigned in self._assigned.values()), *left]

    def begin(self, unconcluded: int) -> None:
        """Begin at the start of the job or its checkpoint. `unconcluded` is the epoch that ended there, 0 for none."""
        self.ended, self.concluded = unconcluded, max(0, unconcluded - 1)

    @property
    def unconcluded(self) -> int:
        """Epoch that has ended and is not known to be concluded, 0 for none."""
        return self.ended if self.ended > self.concluded else 0

    def course(self) -> GroupProgress:
        done = [report for report in self.open if complete(report)]
        told = [*self.told.values(), *done]
        tasks = [report for report in self.open if not complete(report)]
        ended = max([self.ended, *(report.task.number for report in told if report.task.settles)])
        return GroupProgress(tuple(tasks), tuple(told), ended, self.concluded)

    def follow(self, course: GroupProgress, log: Log) -> None:
        """Continue at the position `course` in the log of another group."""
        self.log = log
        self.told = {report.task.attempt: report for report in course.told}
        self.ended, self.concluded = course.ended, course.concluded
        self.turning = False
        self._assigned.clear()

    def give(self, done: Report) -> Task:
        """Assign the next task to the loop and return its remaining part."""
        assigned = self._assigned[done.task.attempt] = AssignedTask(done)
        return assigned.task

    def has(self, task: Task) -> bool:
        """Return True if the loop got this very object in this group; an equal task may come again in the next one."""
        return self._found(task) is not None

    def advance(self, done: Report) -> Report:
        """Record the progress of a task and return it relative to the task as leased."""
        assigned = self._found(done.task)
        if assigned is None:
            return done
        assigned.done = assigned.total(done)
        return assigned.done

    def report(self, done: Report) -> None:
        """Record a done task, as it was leased."""
        if done.task.attempt > self.durable:
            self.told[done.task.attempt] = done

    def end(self, task: Task) -> None:
        """Close a task."""
        self._assigned.pop(task.attempt, None)
        if task.settles:
            self.ended = task.number
        self.changed.notify_all()

    def conclude(self, epoch: int) -> None:
        self.concluded = epoch
        self.turned()

    def turned(self) -> None:
        """Record that the loop has executed the last entry."""
        self.turning = False
        self.changed.notify_all()

    def conclusion(self, epoch: int) -> Entry:
        """Return the log entry for a concluded epoch."""
        concluded, best = self.best
        return Entry("concluded", epoch=epoch, best=best if concluded == epoch else 0)

    def forget(self, durable: int) -> None:
        """Drop reports of leases up to `durable`, which survive the master."""
        self.durable = max(self.durable, durable)
        self.told = {lease: report for lease, report in self.told.items() if lease > self.durable}

    def forget_all_but(self, unwritten: Collection[int]) -> None:
        """Drop all reports but those of the leases in `unwritten`."""
        if self.told:
            lost = self.told.keys() & unwritten
            self.forget(min(lost) - 1 if lost else max(self.told))

    def _found(self, task: Task) -> AssignedTask | None:
        assigned = self._assigned.get(task.attempt)
        return assigned if assigned is not None and assigned.task is task else None
