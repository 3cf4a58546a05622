"""Task source of a worker in all-reduce groups, and its rendezvous.

The first member of a group takes training tasks from the master and writes them into the group's log. All members train
what the log says, and stop for evaluations where it says so. So the members are at the same position when one of them
is lost: the new first member has the open tasks, and the reports that the master may not have stored.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from edl.collectives.base import Store
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.protocol import JoinRequest, WorkerGroup
from edl.tasks.task import Report, Task, TaskType
from edl.worker.strategies.allreduce.log_threads import LogThread
from edl.worker.strategies.allreduce.position import LogPosition
from edl.worker.strategies.allreduce.rendezvous_client import GroupMember
from edl.worker.strategies.allreduce.task_log import Entry, GroupProgress, Log
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

    def keep_best(self, epoch: int) -> None:
        """Drop the kept parameters of all epochs but this one."""
        ...


class GroupTasks:
    """Task source of one member.

    `address` is the host:port where other members find it. `draining` is set when this worker has to leave. The group
    may have `ahead` tasks open; an evaluation in the middle of an epoch is so many tasks late at most.
    """

    waits = True
    parameters: Parameters  # set before the first group is requested

    def __init__(
        self,
        member: GroupMember,
        address: str,
        training: Training,
        draining: threading.Event,
        *,
        ahead: int,
    ) -> None:
        self._member = member
        self._address = address
        self._training = training
        self._draining = draining
        self._ahead = ahead
        self._changed = member.changed
        self._position = LogPosition(self._changed)
        self._number = 0  # number of the last known group
        self._without: Sequence[str] = ()
        self._first = False  # True if this member writes the log
        self._scribe: LogThread | None = None
        self._turns: deque[tuple[Log | None, Entry | None]] = (
            deque()
        )  # where `next` returned no training task
        self._called = False  # True once the loop knows that it has to request a group
        self._aside = self._over = self._awake = False

    # The rendezvous: called by the thread that trains -----------------------------------------------------------

    @property
    def regroup(self) -> bool:
        log = self._position.log
        ended = log is None or log.ended
        return ended or self._member.regroup or self._draining.is_set()

    def next_ring(self, done: Report | None = None) -> WorkerGroup:
        self.close()
        if done is not None:
            with self._changed:
                self._position.advance(done)
        seek = JoinRequest(self._address, self._number, tuple(self._without))
        ring = self._member.seek(seek, self._draining.is_set)
        if ring is None:
            raise VoidError
        self._number, self._without = ring.number, ()
        if not ring.holders and ring.members[0] == self._member.name:
            unconcluded = self.parameters.begin()
            with self._changed:
                self._position.begin(unconcluded)
        return ring

    def leave_out(self, members: Sequence[str]) -> None:
        self._without = members

    def course(self) -> bytes:
        with self._changed:
            return encoding.encode(self._position.course())

    def follow(self, course: bytes, ring: WorkerGroup, store: Store, rank: int) -> None:
        found = encoding.decode(course, GroupProgress)
        first = rank == 0
        with self._changed:
            log = Log(store, found.open, self._changed)
            self._position.follow(found, log)
            self._called = self._aside = self._over = False
            self._first = first
            self._member.enter(ring.number, found.open if first else (), found.told if first else ())
            self._changed.notify_all()
        self._scribe = LogThread(
            log, self._position, self._member, lambda: self.regroup, first=first, ahead=self._ahead
        )
        print(f"in ring {ring.number} of {', '.join(ring.members)}", flush=True)

    def close(self) -> None:
        """Leave the group's log."""
        if self._scribe is not None:
            self._scribe.end()
            self._scribe = None

    # The task source ------------------------------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        return self._aside

    @property
    def stopped(self) -> bool:
        """False: the members execute everything that is in the log."""
        return False

    @property
    def leads(self) -> bool:
        """True if this member reports for its group, or did so until it left."""
        return self._first and not self._member.over("export")

    @property
    def unconcluded(self) -> int:
        """Epoch that has ended and is not known to be concluded, 0 for none. No member trains meanwhile."""
        return self._position.unconcluded

    def valid(self, task: Task) -> bool:
        self._member.check()
        if task.type != "train":
            return self._member.valid(task)
        with self._changed:
            return self._position.has(task)

    def over(self, kind: TaskType) -> bool:
        """Return True if no task of this type will come. The next group may have training tasks again."""
        return (kind == "train" and self._over and not self.regroup) or self._member.over("export")

    def next(self, *types: TaskType) -> Task | None:
        if types == ("train",):
            return self._next_of_log()
        task = self._member.next(*types)
        if task is None:
            with self._changed:
                self._aside = False
                self._position.turned()
        return task

    def turn(self) -> bool:
        log, entry = self._turns.popleft()
        if entry is None:
            return self.regroup
        if log is not self._position.log:
            return False
        if entry.kind == "concluded":
            self._conclude(entry)
            return False
        if entry.epoch and self._training.keep == "best":
            self.parameters.keep(entry.epoch)
        self._member.refresh()
        self._aside = entry.kind == "aside"
        return False

    def progress(self, done: Report) -> None:
        with self._changed:
            self._member.progress(self._position.advance(done))

    def report(self, report: Report) -> None:
        task = report.task
        if task.type != "train":
            self._note_best(report)
            self._member.report(report)
            return
        with self._changed:
            done = self._position.advance(report)
            self._position.report(done)
        if self._first:
            self._member.report(done)
        with self._changed:
            self._position.end(task)

    def failed(self, task: Task, error: Exception) -> bool:
        return self._member.failed(task, error)

    def give_back(self, part: Report) -> None:
        """Return an unfinished task. Training tasks are not returned: their progress is in the group's parameters."""
        if part.task.type != "train":
            self._member.give_back(part)

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        with self._changed:
            self._awake = True
            self._changed.notify_all()
        try:
            yield
        finally:
            self._awake = False

    def cut(self, folder: str, part: Report) -> None:
        """Report that the present weights go to `folder`, together with the task that has begun."""
        with self._changed:
            begun = next((report for report in self._position.open if report.rows), part)
            self._member.cut(folder, begun)

    # The loop's side of the log -------------------------------------------------------------------------------

    def _next_of_log(self) -> Task | None:
        with self._changed:
            while True:
                self._member.check()
                if self._awake or self.over("train") or (self.regroup and not self._called):
                    self._called = self.regroup
                    self._turns.append((self._position.log, None))
                    return None
                if entry := self._taken():
                    return self._give(entry)
                self._changed.wait()

    def _taken(self) -> Entry | None:
        log = self._position.log
        entry = log.take() if log is not None and not self.regroup else None
        if entry is not None:
            self._changed.notify_all()
        return entry

    def _give(self, entry: Entry) -> Task | None:
        if entry.task is None:
            self._over = entry.kind == "over"
            self._turns.append((self._position.log, entry))
            return None
        return self._position.give(entry.task)

    def _conclude(self, entry: Entry) -> None:
        if entry.best:
            self.parameters.keep_best(entry.best)
        with self._changed:
            self._position.conclude(entry.epoch)

    def _note_best(self, report: Report) -> None:
        found, conclusion = report.task.round, report.conclusion
        if found is None or conclusion is None or not (found.epoch and found.final):
            return
        figures = conclusion.figures
        now = found.standing
        if figures:
            now = now.after(found.epoch, figures, self._training.min_delta)
        self._position.best = found.epoch, now.best if self._training.keep == "best" else 0
