"""Task source of a worker in all-reduce groups, and its rendezvous.

The first member of a group takes training tasks from the master and writes them into the group's log. All members train
what the log says, and stop for evaluations where it says so. So the members are at the same position when one of them
is lost: the new first member has the open tasks, and the reports that the master may not have stored.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

from edl.collectives.base import Store
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.protocol import JoinRequest, WorkerGroup
from edl.tasks.task import Report, Task, TaskType
from edl.worker.master_client import RemoteTasks
from edl.worker.strategies.allreduce.log_thread import LogThread
from edl.worker.strategies.allreduce.rendezvous_client import RendezvousClient
from edl.worker.strategies.allreduce.task_log import GroupProgress, TaskLog
from edl.worker.strategies.base import VoidError


class Parameters(Protocol):
    """Operations on the parameters that the log requires of its readers."""

    def begin(self) -> int:
        """Load the parameters of the checkpoint, or of the start. Called if nothing was trained since.

        Return the epoch that had ended there and was not concluded, 0 for none.
        """
        ...

    def keep(self, epoch: int) -> None:
        """Keep the present parameters, which may be the best, besides those kept before."""
        ...

    def postpone(self, epoch: int) -> None:
        """Keep the present parameters to measure this epoch later."""
        ...

    def keep_best(self, best: int, epoch: int) -> None:
        """Drop the kept parameters of all epochs up to the concluded `epoch`, except the best one's."""
        ...


class GroupTasks:
    """Task source of one member, which exchanges messages with the master through `tasks`.

    `address` is the host:port where other members find it. `draining` is set when this worker has to leave. The group
    may have `ahead` tasks open; an evaluation in the middle of an epoch is so many tasks late at most.
    """

    waits = True
    parameters: Parameters  # set before the first group is requested

    def __init__(
        self, tasks: RemoteTasks, address: str, training: Training, draining: threading.Event, *, ahead: int
    ) -> None:
        self._tasks = tasks
        self._member = RendezvousClient(tasks)
        self._address = address
        self._training = training
        self._draining = draining
        self._ahead = ahead
        self._changed = tasks.changed
        self._log = TaskLog(self._changed)
        self._log_thread: LogThread | None = None
        self._number = 0  # number of the last known group
        self._without: Sequence[str] = ()
        self._first = False  # True if this member writes the log
        self._awake = False  # True while `next` does not wait
        tasks.has_moved_on = self._has_moved_on
        tasks.has_postponed = lambda: bool(self._log.postponed) and tasks.is_away

    # The rendezvous: called by the thread that trains -----------------------------------------------------------

    @property
    def regroup(self) -> bool:
        return not self._log.in_group or self._member.regroup or self._draining.is_set()

    def next_group(self, done: Report | None = None) -> WorkerGroup:
        self.close()
        if done is not None:
            with self._changed:
                self._log.advance(done)
        request = JoinRequest(self._address, self._number, tuple(self._without))
        group = self._member.join(request, self._draining.is_set)
        if group is None:
            raise VoidError
        self._number, self._without = group.number, ()
        if not group.holders and group.members[0] == self._member.name:
            unconcluded = self.parameters.begin()
            with self._changed:
                self._log.begin(unconcluded)
        return group

    def leave_out(self, members: Sequence[str]) -> None:
        self._without = members

    def position(self) -> bytes:
        with self._changed:
            return encoding.encode(self._log.progress())

    def follow(self, position: bytes, group: WorkerGroup, store: Store, rank: int) -> None:
        progress = encoding.decode(position, GroupProgress)
        self._first = rank == 0
        with self._changed:
            self._log.follow(progress, store)
            tasks, reports = (progress.open, progress.reports) if self._first else ((), ())
            self._member.enter(group.number, tasks, reports, 1 if self._first else len(group.members))
        self._log_thread = LogThread(
            self._log,
            store,
            self._tasks,
            self._member,
            lambda: self.regroup,
            first=self._first,
            ahead=self._ahead,
        )
        print(f"in group {group.number} of {', '.join(group.members)}", flush=True)

    def close(self) -> None:
        """Leave the group."""
        if self._log_thread is not None:
            self._log_thread.end()
            self._log_thread = None

    # The task source ------------------------------------------------------------------------------------------

    @property
    def is_pending(self) -> bool:
        return self._log.in_control

    @property
    def is_stopped(self) -> bool:
        """False: the members execute everything that is in the log."""
        return False

    @property
    def leads(self) -> bool:
        """True if this member reports for its group, or did so until it left."""
        return self._first and not self._tasks.is_over("export")

    @property
    def has_postponed(self) -> bool:
        """True if epochs are to be measured that ended earlier."""
        return bool(self._log.postponed)

    @property
    def unconcluded_epoch(self) -> int:
        """Epoch that has ended and is not known to be concluded, 0 for none. No member trains meanwhile."""
        return self._log.unconcluded_epoch

    def holds_lease(self, task: Task) -> bool:
        self._tasks.check()
        if task.type != "train":
            return self._tasks.holds_lease(task)
        with self._changed:
            return self._log.has(task)

    def is_over(self, kind: TaskType) -> bool:
        """Return True if no task of this type will come. The next group may have training tasks again."""
        return (kind == "train" and self._log.is_over and not self.regroup) or self._tasks.is_over("export")

    def next(self, *types: TaskType) -> Task | None:
        if types == ("train",):
            return self._next_of_log()
        task = self._tasks.next(*types)
        if task is None:
            with self._changed:
                self._log.on_turn()
        return task

    def turn(self) -> bool:
        with self._changed:
            entry = self._log.turn()
        if entry is None:
            return self.regroup
        if entry.kind == "concluded":
            if entry.best or self._training.keep == "last":
                self.parameters.keep_best(entry.best, entry.epoch)
            with self._changed:
                self._log.on_turn()
            return False
        if entry.kind == "postponed":
            self.parameters.postpone(entry.epoch)
            with self._changed:
                self._log.on_turn()
            return False
        if entry.epoch and self._training.keep == "best":
            self.parameters.keep(entry.epoch)
        self._member.refresh()
        return False

    def progress(self, done: Report) -> None:
        with self._changed:
            self._tasks.progress(self._log.advance(done))

    def report(self, report: Report) -> None:
        task = report.task
        if task.type != "train":
            self._record_best(report)
            self._tasks.report(report)
            return
        with self._changed:
            done = self._log.advance(report)
            self._log.report(done)
        if self._first:
            self._tasks.report(done)
        with self._changed:
            self._log.end(task)

    def take_postponed(self) -> int:
        """Return 0: the log says what is postponed."""
        return 0

    def report_failure(self, task: Task, error: Exception) -> bool:
        return self._tasks.report_failure(task, error)

    def give_back(self, part: Report) -> None:
        """Return an unfinished task. Training tasks are not returned: their progress is in the group's parameters."""
        if part.task.type != "train":
            self._tasks.give_back(part)

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        with self._changed:
            self._awake = True
            self._changed.notify_all()
        try:
            yield
        finally:
            self._awake = False

    def begin_checkpoint(self, folder: str, part: Report) -> None:
        """Report that the present weights go to `folder`, together with the task that has begun."""
        with self._changed:
            begun = next((report for report in self._log.open if report.rows), part)
            self._tasks.begin_checkpoint(folder, begun)

    def _has_moved_on(self) -> bool:
        """Return True if the group goes on without the control tasks that this member waits for."""
        log = self._log
        if not self._first:
            return log.has_entries
        return self._tasks.may_postpone(log.unconcluded_epoch, len(log.postponed))

    def _next_of_log(self) -> Task | None:
        with self._changed:
            while True:
                self._tasks.check()
                regroup = self.regroup
                if self._awake or self.is_over("train") or (regroup and not self._log.calls):
                    self._log.call()
                    return None
                if self._log.has_entries and not regroup:
                    return self._log.take()
                self._changed.wait()

    def _record_best(self, report: Report) -> None:
        round_, conclusion = report.task.round, report.conclusion
        if round_ is None or conclusion is None or not (round_.epoch and round_.final):
            return
        figures = conclusion.figures
        now = round_.standing
        if figures:
            now = now.after(round_.epoch, figures, self._training.min_delta)
        self._log.best = round_.epoch, now.best if self._training.keep == "best" else 0
