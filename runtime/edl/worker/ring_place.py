"""Where a member of a ring stands in the ring's tasks. All of it is read and changed under one lock.

It travels with the parameters, as the `Course`: whoever takes these goes on from there.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from edl.tasks.task import Report, Task
from edl.worker.ring_log import Course, Entry, Given, Log, complete


class Place:
    """changed: the lock, and told of every change. log: of the ring, None before the first one.

    ended: the last epoch that is trained. concluded: the last that is known to be. told: by lease, reports that the
    master may not have written down. best: an epoch that was concluded here, and the best one then. turning: whether
    the loop has not done yet what the last entry says that was written here.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self.log: Log | None = None
        self.ended = self.concluded = 0
        self.told: dict[int, Report] = {}
        self.durable = 0  # reports of leases up to this number survive the master
        self.best = (0, 0)
        self.turning = False
        self._given: dict[int, Given] = {}  # by lease, in the order of the log

    @property
    def open(self) -> list[Report]:
        """What is done of the tasks that are open, as they were leased, in the order of the log."""
        left = self.log.tasks() if self.log is not None else ()
        return [*(given.done for given in self._given.values()), *left]

    def begin(self, unconcluded: int) -> None:
        """Begin where the job does. unconcluded: the epoch that ended there, and that is to be concluded; 0: none."""
        self.ended, self.concluded = unconcluded, max(0, unconcluded - 1)

    @property
    def unconcluded(self) -> int:
        """The epoch that has ended, and is not known to be concluded; 0: none."""
        return self.ended if self.ended > self.concluded else 0

    def course(self) -> Course:
        done = [report for report in self.open if complete(report)]
        told = [*self.told.values(), *done]
        tasks = [report for report in self.open if not complete(report)]
        ended = max([self.ended, *(report.task.number for report in told if report.task.settles)])
        return Course(tuple(tasks), tuple(told), ended, self.concluded)

    def follow(self, course: Course, log: Log) -> None:
        """Go on from there, in the log of another ring."""
        self.log = log
        self.told = {report.task.attempt: report for report in course.told}
        self.ended, self.concluded = course.ended, course.concluded
        self.turning = False
        self._given.clear()

    def give(self, done: Report) -> Task:
        """The task is the next one of this member; as the loop is to have it."""
        given = self._given[done.task.attempt] = Given(done)
        return given.task

    def has(self, task: Task) -> bool:
        """Whether it was given to the loop in this ring; by identity: the same one may come again in the next."""
        return self._found(task) is not None

    def advance(self, done: Report) -> Report:
        """Know what is done of a task; that, of the task as it was leased."""
        given = self._found(done.task)
        if given is None:
            return done
        given.done = given.total(done)
        return given.done

    def report(self, done: Report) -> None:
        """All of a task is, as it was leased."""
        if done.task.attempt > self.durable:
            self.told[done.task.attempt] = done

    def end(self, task: Task) -> None:
        """It is not in hands any more."""
        self._given.pop(task.attempt, None)
        if task.settles:
            self.ended = task.number
        self.changed.notify_all()

    def conclude(self, epoch: int) -> None:
        self.concluded = epoch
        self.turned()

    def turned(self) -> None:
        """The loop has done what the last entry says."""
        self.turning = False
        self.changed.notify_all()

    def conclusion(self, epoch: int) -> Entry:
        """What the log is to say of an epoch that is concluded."""
        concluded, best = self.best
        return Entry("concluded", epoch=epoch, best=best if concluded == epoch else 0)

    def forget(self, durable: int) -> None:
        """Reports of leases up to this number survive the master."""
        self.durable = max(self.durable, durable)
        self.told = {lease: report for lease, report in self.told.items() if lease > self.durable}

    def forget_all_but(self, unwritten: Collection[int]) -> None:
        """Of what was told, only the reports of these leases may be lost with the master."""
        if self.told:
            lost = self.told.keys() & unwritten
            self.forget(min(lost) - 1 if lost else max(self.told))

    def _found(self, task: Task) -> Given | None:
        given = self._given.get(task.attempt)
        return given if given is not None and given.task is task else None
