"""Task log of an all-reduce group, and a member's position in it.

The first member writes the log into the group's store, all members execute it:

    train       a training task
    control     control tasks between two training tasks; at the end of an epoch, keep its weights
    postponed   no master answers: keep the weights of the ended epoch, which is measured later
    concluded   an epoch is concluded, and all before it; the best epoch so far
    over        no training task is left

All members execute the same entries in the same order, so they call the collectives in the same order. The position is
transferred together with the parameters, as `GroupProgress`: the worker that takes them continues there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection
from typing import Literal

import msgspec

from edl.collectives.base import Store
from edl.tasks import encoding
from edl.tasks.task import Report, Task


class LogEntry(msgspec.Struct, frozen=True):
    """Entry of the log.

    `task` is the task of `train`, as leased, with what was done of it before. `epoch` is the concluded epoch, or the
    one that has ended in `control` (0 in the middle of one) and `postponed`. `best` is the best epoch so far in
    `concluded`, 0 if unknown. Reports of leases up to `durable` survive the master.
    """

    kind: Literal["train", "control", "postponed", "concluded", "over"]
    task: Report | None = None
    epoch: int = 0
    best: int = 0
    durable: int = 0


class GroupProgress(msgspec.Struct, frozen=True):
    """Position of a group in its tasks.

    `open` has the open training tasks in order, with their progress; `reports` those that the master may not have
    stored; `ended` the last trained epoch; `concluded` the last epoch that is known to be concluded, or is postponed.
    The epochs in `postponed` are measured later.
    """

    open: tuple[Report, ...] = ()
    reports: tuple[Report, ...] = ()
    ended: int = 0
    concluded: int = 0
    postponed: tuple[int, ...] = ()


class LeftError(Exception):
    """Error of a log after its group was left."""


class TaskLog:
    """Log of the present group as one member knows it, and the member's position in it.

    Three threads share it under the lock `changed`, which is notified on every change: the log thread appends entries,
    the reading thread takes them, the training thread does the tasks and executes the other entries. `ended` is the
    last trained epoch, `concluded` the last one known to be concluded, or to be `postponed`: such epochs are measured
    when a master answers again. Reports of leases up to `durable` survive the master. `best` is an epoch that was
    concluded here, with the best epoch at that time.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self.ended = self.concluded = self.durable = 0
        self.best = (0, 0)
        self.postponed: tuple[int, ...] = ()
        self._store: Store | None = None  # of the present group; None outside of a group
        self._number = 0  # of the next entry in the store
        self._entries = deque[LogEntry]()  # not taken
        self._taken: LogEntry | None = None  # last one of this group
        self._turns = deque[
            LogEntry | None
        ]()  # taken for the training thread; None calls it without an entry
        self._executing: LogEntry | None = None  # begun by the training thread
        self._assigned: dict[int, _AssignedTask] = {}  # by lease, in the order of the log
        self._reports: dict[int, Report] = {}  # by lease; the master may not have stored them

    # Groups ---------------------------------------------------------------------------------------------------

    @property
    def in_group(self) -> bool:
        return self._store is not None

    def begin(self, unconcluded: int) -> None:
        """Begin at the start of the job or its checkpoint. `unconcluded` is the epoch that ended there, 0 for none."""
        self.ended, self.concluded, self.postponed = unconcluded, max(0, unconcluded - 1), ()

    def follow(self, progress: GroupProgress, store: Store) -> None:
        """Continue at this position in the log of the next group, which begins with the tasks that are open."""
        self._store, self._number = store, 0
        self._entries = deque(LogEntry("train", task) for task in progress.open)
        self._taken = self._executing = None
        self._turns = deque([None] * len(self._turns))
        self._assigned.clear()
        self._reports = {report.task.attempt: report for report in progress.reports}
        self.ended, self.concluded, self.postponed = progress.ended, progress.concluded, progress.postponed
        self.changed.notify_all()

    def leave(self, store: Store) -> None:
        """Leave the group of this store, if it is the present one."""
        with self.changed:
            if self.is_in(store):
                self._store = None
                self.changed.notify_all()

    def progress(self) -> GroupProgress:
        done = [report for report in self.open if _complete(report)]
        reports = [*self._reports.values(), *done]
        tasks = [report for report in self.open if not _complete(report)]
        ended = max([self.ended, *(report.task.number for report in reports if report.task.settles)])
        return GroupProgress(tuple(tasks), tuple(reports), ended, self.concluded, self.postponed)

    @property
    def open(self) -> list[Report]:
        """Progress of the open tasks as leased, in the order of the log."""
        waiting = (entry.task for entry in self._entries if entry.task is not None)
        return [*(assigned.done for assigned in self._assigned.values()), *waiting]

    @property
    def unconcluded_epoch(self) -> int:
        """Epoch that has ended and is not known to be concluded, 0 for none."""
        return self.ended if self.ended > self.concluded else 0

    # The log thread -------------------------------------------------------------------------------------------

    def is_in(self, store: Store) -> bool:
        """Return True if the group of this store is the present one."""
        return self._store is store

    def write(self, entry: LogEntry, store: Store) -> None:
        """Append an entry, on the first member. Errors of the store propagate; LeftError after the end of the group."""
        store.set(str(self._number), encoding.encode(entry))
        self._append(entry, store)

    def read(self, store: Store) -> LogEntry:
        """Wait for the next entry and append it, on the other members. Raises as `write`."""
        entry = encoding.decode(store.get(str(self._number)), LogEntry)
        self._append(entry, store)
        return entry

    @property
    def is_executed(self) -> bool:
        """True if the training thread has executed all entries that are no tasks."""
        return self._executing is None and not any(self._turns) and all(entry.task for entry in self._entries)

    def conclusion(self, epoch: int) -> LogEntry:
        """Return the log entry for a concluded epoch."""
        concluded, best = self.best
        return LogEntry("concluded", epoch=epoch, best=best if concluded == epoch else 0)

    def forget(self, durable: int) -> None:
        """Drop reports of leases up to `durable`, which survive the master."""
        self.durable = max(self.durable, durable)
        self._reports = {lease: report for lease, report in self._reports.items() if lease > self.durable}

    def forget_all_but(self, unstored: Collection[int]) -> None:
        """Drop all reports except the reports of the leases in `unstored`."""
        if self._reports:
            lost = self._reports.keys() & unstored
            self.forget(min(lost) - 1 if lost else max(self._reports))

    # The reading thread ---------------------------------------------------------------------------------------

    @property
    def has_entries(self) -> bool:
        return bool(self._entries)

    @property
    def is_over(self) -> bool:
        """True if the last entry of this group was taken."""
        return self._taken is not None and self._taken.kind == "over"

    @property
    def calls(self) -> bool:
        """True if the training thread is called without an entry."""
        return None in self._turns

    def call(self) -> None:
        """Call the training thread without an entry."""
        self._turns.append(None)

    def take(self) -> Task | None:
        """Take the next entry; return the remaining part of its task, or None if the training thread executes it."""
        entry = self._taken = self._entries.popleft()
        self.changed.notify_all()
        if entry.task is None:
            self._turns.append(entry)
            return None
        assigned = self._assigned[entry.task.task.attempt] = _AssignedTask(entry.task)
        return assigned.task

    # The training thread --------------------------------------------------------------------------------------

    @property
    def in_control(self) -> bool:
        """True if control tasks are to be done now."""
        return self._executing is not None and self._executing.kind == "control"

    def turn(self) -> LogEntry | None:
        """Begin the next entry that is no task, up to `turned`; return None if the thread is called without one."""
        entry = self._turns.popleft()
        self._executing = entry if entry is None or entry.kind != "over" else None
        return entry

    def on_turn(self) -> None:
        """Record that the entry is executed."""
        entry, self._executing = self._executing, None
        if entry is not None and entry.kind in ("concluded", "postponed"):
            self.concluded = entry.epoch
        if entry is not None and entry.kind == "postponed":
            self.postponed = (*self.postponed, entry.epoch)
        elif entry is not None and entry.kind == "concluded":
            self.postponed = tuple(epoch for epoch in self.postponed if epoch > entry.epoch)
        self.changed.notify_all()

    def has(self, task: Task) -> bool:
        """Return True if this very object was taken in this group; an equal task may come again in the next one."""
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
            self._reports[done.task.attempt] = done

    def end(self, task: Task) -> None:
        """Close a task."""
        self._assigned.pop(task.attempt, None)
        if task.settles:
            self.ended = task.number
        self.changed.notify_all()

    def _append(self, entry: LogEntry, store: Store) -> None:
        with self.changed:
            if not self.is_in(store):
                raise LeftError
            self._number += 1
            self._entries.append(entry)
            self.changed.notify_all()

    def _found(self, task: Task) -> _AssignedTask | None:
        assigned = self._assigned.get(task.attempt)
        return assigned if assigned is not None and assigned.task is task else None


class _AssignedTask:
    """Training task assigned to this member. `task` is the remaining part, without what was done `before`."""

    def __init__(self, before: Report) -> None:
        leased = before.task
        self.task = msgspec.structs.replace(leased, skip=leased.skip + before.rows)
        self._before = before
        self.done = before

    def total(self, done: Report) -> Report:
        """Return the progress of the task as it was leased."""
        before = self._before
        whole = done.plus(before.rows, before.steps, before.loss, before.weight)
        return msgspec.structs.replace(whole, task=before.task)


def _complete(done: Report) -> bool:
    return done.rows >= done.task.rows
