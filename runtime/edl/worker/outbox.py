"""Worker's state of the exchange with the master, without threads or network: assigned tasks and unacknowledged
reports.

A report is kept until the master has stored it, and sent again from the number that the master acknowledges, also to a
master that was restarted. Tasks that were received and not begun may go to another worker, if the master asks.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Collection, Iterable

from edl.jobs.failure import Failed
from edl.tasks.protocol import (
    Answer,
    Flag,
    Joined,
    JoinRequest,
    Request,
    Servers,
    TaskUpdate,
    UpdateKind,
    WorkerGroup,
    list_runs,
)
from edl.tasks.task import Report, Task, TaskType

MOST_UPDATES = 256  # of a request; the next one has the others


class Outbox:
    """Exchange state of one incarnation of an instance. Not thread-safe.

    `group` is the number of the group that this worker has the parameters of. `join_request` is the open one for the
    next group, and `found` its answer. `regroup` is True if the current group is to end. `asked` is True if the master
    has asked for tasks and was not answered.
    """

    def __init__(self, instance: str, incarnation: int) -> None:
        self.instance = instance
        self.incarnation = incarnation
        self.flags = Flag.NONE
        self.generation = self.master_epoch = 0
        self.rejoin = True
        self.informed = False  # True once an answer has come since registration
        self.seen_upto = 0
        self.servers: Servers | None = None
        self.group = 0
        self.join_request: JoinRequest | None = None
        self.found: WorkerGroup | None = None
        self.regroup = self.asked = False
        self.certain_epoch = 0  # last one that is trained whatever the next conclusions decide
        self._open_epoch = 0  # last epoch that may be begun while the master answers; 0: any
        # Group and join request of the last request.
        self._requested: tuple[int, JoinRequest | None] = (0, None)
        self._sequence = self._requests = 0
        self._updates: deque[TaskUpdate] = deque()
        self._held: dict[int, Report] = {}  # begun
        self._received: defaultdict[TaskType, deque[Task]] = defaultdict(deque)

    @property
    def last_report(self) -> int:
        """Number of the last report."""
        return self._sequence

    @property
    def is_unacknowledged(self) -> bool:
        """True if the master has not acknowledged all reports."""
        return self._sequence > self.seen_upto

    def apply_registration(self, joined: Joined) -> None:
        if joined.generation != self.generation:  # the job was rolled back: all assigned tasks are void
            self._held.clear()
            self._received.clear()
        self.generation, self.master_epoch = joined.generation, joined.master_epoch
        self.servers = joined.servers
        self.rejoin = self.informed = False
        self.flags = Flag.FINISHED if joined.finished else Flag.NONE

    def take(self, *types: TaskType, away: bool = False) -> Task | None:
        """Begin a received task and return it, types in order of preference, or None.

        `away`: no master answers, so tasks of epochs that are not open yet may be begun, too.
        """
        for kind in types:
            received = self._received[kind]
            if received and (away or self._is_open(received[0])):
                task = received.popleft()
                self._held[task.attempt] = Report(task)
                return task
        return None

    def has_received(self, *types: TaskType) -> bool:
        """Return True if a task of these types was received and not taken."""
        return any(self._received[kind] for kind in types)

    def may_begin(self, *types: TaskType) -> bool:
        """Return True if a task of these types was received and may be begun while the master answers."""
        return any(self._received[kind] and self._is_open(self._received[kind][0]) for kind in types)

    def count_received(self, kind: TaskType) -> int:
        """Return the number of tasks of that type that were received and not taken."""
        return len(self._received[kind])

    def holds(self, kind: TaskType) -> bool:
        """Return True if a task of that type is begun and not reported."""
        return any(held.task.type == kind for held in self._held.values())

    def holds_lease(self, task: Task) -> bool:
        """Return True if the task's lease is held and not known to be revoked."""
        return task.attempt in self._held

    def progress(self, done: Report) -> None:
        task = done.task
        if task.attempt in self._held:
            self._held[task.attempt] = done

    def report(
        self,
        kind: UpdateKind,
        report: Report,
        *,
        error: Failed | None = None,
        fatal: bool = False,
        folder: str = "",
    ) -> int:
        """Add a report and return its sequence number."""
        if kind not in ("checkpoint", "checkpoint written"):
            self._held.pop(report.task.attempt, None)
        self._sequence += 1
        self._updates.append(TaskUpdate(self._sequence, kind, report, error, fatal, folder))
        return self._sequence

    def give_back_received(self) -> None:
        """Return the tasks that were received and not begun."""
        for tasks in self._received.values():
            while tasks:
                self.report("given back", Report(tasks.pop()))

    def request(
        self, want: dict[TaskType, int], obstacle: str = "", awaited: Collection[TaskType] | None = None
    ) -> Request:
        """Return the next request. `want` is the number of tasks to have received, by type. A thread waits for the
        types in `awaited`, None: for all. It begins a task as soon as it comes.
        """
        unseen = (update for update in self._updates if update.sequence > self.seen_upto)
        updates = tuple(itertools.islice(unseen, MOST_UPDATES))
        waits = want.keys() if awaited is None else awaited
        idle = tuple(
            kind for kind, count in want.items() if count and kind in waits and not self.may_begin(kind)
        )
        missing = {
            kind: max(count - self.count_received(kind), int(kind in idle)) for kind, count in want.items()
        }
        self._requests += 1
        self._requested = (self.group, self.join_request)
        self.asked = False
        return Request(
            self.instance,
            self.incarnation,
            self.generation,
            updates,
            tuple(self._held.values()),
            {kind: count for kind, count in missing.items() if count > 0},
            self.seen_upto,
            self.servers.number if self.servers else 0,
            self._requests,
            self.group,
            self.join_request,
            obstacle,
            tuple(run for tasks in self._received.values() for run in list_runs(tasks)),
            idle,
            self._open_epoch,
        )

    def on_answer(self, answer: Answer) -> None:
        self.flags, self.master_epoch = answer.flags, answer.master_epoch
        self.informed = True
        self.rejoin = bool(answer.flags & Flag.REJOIN)
        if self.rejoin:
            return
        self.seen_upto = answer.seen_upto
        self.servers = answer.servers or self.servers
        # An answer to a request of another group doesn't concern this one.
        if self._requested == (self.group, None):
            self.regroup = bool(answer.flags & Flag.REGROUP)
        if (
            self.join_request is not None
            and answer.group is not None
            and answer.group.number > self.join_request.after
        ):
            self.found = answer.group
        while self._updates and self._updates[0].sequence <= answer.durable_upto:
            self._updates.popleft()
        self.certain_epoch = answer.certain_epoch
        self._open_epoch, self.asked = answer.open_epoch, bool(answer.asked)
        for lease in answer.revoked:  # if it was begun it goes on, and its report is ignored
            self._held.pop(lease, None)
        self._drop({*answer.revoked, *answer.asked})
        for task in answer.tasks:
            self._receive(task)

    # Groups -----------------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest) -> None:
        """Request a group, from the next request on."""
        self.join_request, self.found = request, None

    def enter(self, group: int, tasks: Iterable[Report], reports: Iterable[Report]) -> None:
        """Enter a group after receiving its parameters. Its leader takes over its training tasks and sends its reports
        again.
        """
        self._received["train"].clear()
        for lease in [lease for lease, kept in self._held.items() if kept.task.type == "train"]:
            del self._held[lease]
        self._held.update((done.task.attempt, done) for done in tasks)
        unstored = self.unstored_leases
        for report in reports:
            if report.task.attempt not in unstored:
                self.report("done", report)
        self.group, self.regroup = group, False

    @property
    def unstored_leases(self) -> set[int]:
        """Leases of done tasks with reports that the master may not have stored."""
        return {update.report.task.attempt for update in self._updates if update.kind == "done"}

    def _is_open(self, task: Task) -> bool:
        """Return True if the task may be begun while the master answers."""
        return not self._open_epoch or task.type != "train" or task.number <= self._open_epoch

    def _receive(self, task: Task) -> None:
        """Add a task, before later epochs' tasks."""
        received = self._received[task.type]
        received.append(task)
        if len(received) > 1 and received[-2].number > task.number:
            self._received[task.type] = deque(sorted(received, key=lambda received: received.number))

    def _drop(self, leases: set[int]) -> None:
        """Forget tasks that were not begun."""
        for kind, tasks in self._received.items() if leases else ():
            self._received[kind] = deque(task for task in tasks if task.attempt not in leases)
