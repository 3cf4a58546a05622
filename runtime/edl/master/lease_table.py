"""Which task is in whose hands, and the job's course with that: what leases do, whoever decides about them.

Every task that is handed out is a lease with a number that grows: the epoch of the master, then a counter. An *owner*
is the name of an instance, or of several that have tasks together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from edl.master.kept import Lease, MasterState
from edl.metrics import merge_states
from edl.ps.messages import Progress
from edl.tasks import encoding
from edl.tasks.job import Job, JobState, Plan
from edl.tasks.pool import States
from edl.tasks.task import Report, Summary, Task, TaskType

_COUNTER = 40  # lower bits of a lease's number


class LeaseTable:
    """kept: what was written down before a restart; its epoch is the one before. note: told what goes wrong.

    is_there: whether the checkpoint of a name is.
    """

    def __init__(
        self,
        plan: Plan,
        kept: MasterState,
        note: Callable[[str], None],
        is_there: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self.plan = plan
        self.kept = kept
        self.note = note
        self._is_there = is_there
        kept.epoch += 1
        kept.counter = 0
        self.job = Job(plan, kept.job, merge=self._merge)
        self.went_back: Summary | None = None  # where to, at the earliest; who looks at that takes it away
        self._of: defaultdict[str, dict[int, None]] = defaultdict(dict)  # in their order
        for number, lease in kept.leases.items():
            self.job.hold(lease.type, lease.number, lease.id, lease.skip)
            self._of[lease.instance][number] = None
        for lease in kept.revoking.values():
            self.job.hold(lease.type, lease.number, lease.id, lease.skip)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do, for whatever reason."""
        return self.job.finished or bool(self.kept.failed or self.kept.cancelled)

    @property
    def last(self) -> int:
        """No lease that was given out has a greater number; later ones have."""
        return (self.kept.epoch << _COUNTER) + self.kept.counter

    def of(self, owner: str) -> list[int]:
        """The leases of an owner, the first one first."""
        return list(self._of[owner])

    def take(self, kind: TaskType, owner: str) -> Task | None:
        """Hand out the next task of that type; None when none is to do now."""
        self.kept.counter += 1
        task = self.job.take(kind, self.last)
        if task is not None:
            self._add(task, owner)
        return task

    def adopt(self, task: Task, owner: str) -> bool:
        """A lease of an earlier master that was not written down: it holds if nobody else has the task.

        What was written down may be an earlier lease of the same task to the same owner; the later one counts.
        """
        if task.attempt >> _COUNTER >= self.kept.epoch or self.finished:
            return False
        for number in [number for number in self._of[owner] if number < task.attempt]:
            lease = self.kept.leases[number]
            if (lease.type, lease.number, lease.id) == (task.type, task.number, task.id):
                self.give_back(number)
        if self.job.claim(task, task.attempt) is None:
            return False
        self._add(task, owner)
        return True

    def end(self, number: int) -> Lease:
        """The lease is over, whatever becomes of its task."""
        lease = self.kept.leases.pop(number)
        del self._of[lease.instance][number]
        return lease

    def give_back(self, number: int, part: Report | None = None) -> None:
        """The task is to do again. part: what of it is done for good."""
        self.job.give_back(task_of(number, self.end(number)), part)

    def copy(self) -> Job:
        """The course of the job at this moment; what is in hands is to do. See `edl.master.cuts`."""
        copy = Job(self.plan, _copied(self.job.kept()), merge=self._merge)
        for number, lease in {**self.kept.leases, **self.kept.revoking}.items():
            if lease.pushed and copy.claim(task_of(number, lease), number):
                copy.done(report_of(lease.pushed), self.kept.seconds)
        return copy

    @property
    def checkpoint_is_lost(self) -> bool:
        """Whether the checkpoint that the job would go back to is not there any more."""
        checkpoint = self.kept.checkpoint
        return (
            checkpoint is not None and checkpoint.manifest is None and not self._is_there(checkpoint.folder)
        )

    def go_back(self) -> None:
        """The weights since the last cut are lost, and so is what was done since."""
        if self.checkpoint_is_lost:
            self.note("the last checkpoint is lost, with the disk of the master that kept it")
            self.kept.checkpoint = None
        checkpoint = self.kept.checkpoint
        self.kept.generation += 1
        self.kept.pending_checkpoints = []
        self.kept.leases.clear()
        self.kept.revoking.clear()
        self._of.clear()
        self.job = Job(self.plan, _copied(checkpoint.job) if checkpoint else None, merge=self._merge)
        state = self.job.state
        if self.went_back is None or state.step < self.went_back.steps:
            self.went_back = Summary(state.rows, state.step, state.loss, state.weight)
        self.note(f"training goes on from step {state.step:,}" if checkpoint else "training begins anew")

    def _add(self, task: Task, owner: str) -> None:
        self.kept.leases[task.attempt] = Lease(task.type, task.number, task.id, task.skip, owner)
        self._of[owner][task.attempt] = None

    def _merge(self, one: States, other: States) -> States | None:
        """The states of one task's metrics and another's as one; None when a metric is none of ours."""
        return merge_states(self.kept.metric_kinds, one, other)


def task_of(number: int, lease: Lease) -> Task:
    """As far as the job wants to know it."""
    return Task(lease.id, lease.type, number=lease.number, skip=lease.skip, attempt=number)


def report_of(part: Progress) -> Report:
    """What is in the parameters of a task, as its worker would tell it."""
    return Report(part.task, part.rows, part.steps, part.loss, part.weight)


def _copied(state: JobState) -> JobState:
    return encoding.decode(encoding.encode(state), JobState)
