"""Table of leases and the job's state machine behind it: what leases do, independent of the recovery policy.

Every assigned task is a lease with a growing number: the epoch of the master, then a counter. An *owner* is the name of
an instance, or of a group that owns tasks together. A task may have a second lease, its *backup*: the task goes back to
the queue when both are lost, and both end when one is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from edl.master.state import COUNTER_BITS, Checkpoint, Lease, MasterState
from edl.metrics import merge_states
from edl.ps.checkpoint.content import Progress
from edl.tasks import encoding
from edl.tasks.job_state import Job, JobState, Plan
from edl.tasks.pool import States
from edl.tasks.task import Report, Summary, Task, TaskType


class LeaseCheckpoints(Protocol):
    """Stored checkpoints (`edl.master.stored_checkpoints`)."""

    def is_there(self, name: str) -> bool:
        """Return True if the checkpoint exists and is not known to be damaged."""
        ...

    def mark(self, name: str, why: str) -> None:
        """Mark a checkpoint as damaged."""
        ...

    def older(self, name: str) -> Checkpoint | None:
        """Return the newest checkpoint to resume from apart from this one."""
        ...


class LeaseTable:
    """Leases of one job. `state` is the stored state before a restart, with the epoch of the previous master. `log`
    logs problems. `checkpoints` are the stored ones; without them all exist.
    """

    def __init__(
        self,
        plan: Plan,
        state: MasterState,
        log: Callable[[str], None],
        checkpoints: LeaseCheckpoints | None = None,
    ) -> None:
        self.plan = plan
        self.state = state
        self.log = log
        self._checkpoints = checkpoints
        state.expand_runs()
        state.begin_epoch()
        self.job = Job(plan, state.job, merge=self._merge, reserves=True)
        self.went_back: Summary | None = None  # earliest point of rollbacks that the caller has not taken yet
        # Leases of each owner, in their order. True: the owner has it, as far as is known. It may not have received the
        # answer with one that is False.
        self._of: defaultdict[str, dict[int, bool]] = defaultdict(dict)
        for number, lease in state.leases.items():
            self.job.hold(lease.type, lease.number, lease.id, lease.skip)
            self._of[lease.instance][number] = True
        self._partners = _partners(state.leases)
        for lease in state.revoking.values():
            self.job.hold(lease.type, lease.number, lease.id, lease.skip)

    @property
    def is_finished(self) -> bool:
        """True if nothing is left to do, for whatever reason."""
        return self.job.is_finished or bool(self.state.failed or self.state.cancelled)

    def of(self, owner: str) -> list[int]:
        """Return the leases of an owner, oldest first."""
        return list(self._of[owner])

    def take(self, kind: TaskType, owner: str, upto: int = 0) -> Task | None:
        """Assign the next task of that type, or return None if none is available now. See `Job.take`."""
        task = self.job.take(kind, self.state.next_lease(), upto)
        if task is not None:
            self._add(task, owner)
        return task

    def adopt(self, task: Task, owner: str) -> bool:
        """Accept a lease of an earlier master that was not persisted, if its task is still unassigned.

        The stored lease of the owner may be an earlier one of the same task; the later one counts.
        """
        if task.attempt >> COUNTER_BITS >= self.state.epoch or self.is_finished:
            return False
        for number in [number for number in self._of[owner] if number < task.attempt]:
            lease = self.state.leases[number]
            if (lease.type, lease.number, lease.id) == (task.type, task.number, task.id):
                self.give_back(number)
        if self.job.claim(task, task.attempt) is None:
            return False
        self._add(task, owner)
        self.confirm(owner, [task.attempt])
        return True

    def confirm(self, owner: str, numbers: Iterable[int]) -> None:
        """Record that the owner has these leases."""
        self._of[owner].update((number, True) for number in numbers if number in self._of[owner])

    def list_undelivered(self, owner: str, want: Mapping[TaskType, int]) -> list[int]:
        """Return the leases that the owner may not have received, as many of each type as it wants, oldest first."""
        room = dict(want)
        numbers = []
        for number, received in self._of[owner].items():
            kind = self.state.leases[number].type
            if not received and room.get(kind, 0):
                room[kind] -= 1
                numbers.append(number)
        return numbers

    def repeat(self, number: int) -> Task:
        """Return the task of a lease once more."""
        lease = self.state.leases[number]
        task = self.job.again(lease.type, lease.number, lease.id, number)
        assert task is not None  # noqa: S101 - a lease is of an assigned task
        return task

    def end(self, number: int) -> Lease:
        """Remove the lease and return it."""
        lease = self.state.leases.pop(number)
        del self._of[lease.instance][number]
        return lease

    def finish(self, number: int) -> None:
        """Remove the lease of a task that is done, and its backup."""
        self.end(number)
        if (partner := self._partners.pop(number, None)) is not None:
            del self._partners[partner]
            self.end(partner)

    def has_backup(self, number: int) -> bool:
        return number in self._partners

    def back_up(self, number: int, owner: str) -> Task | None:
        """Assign the task of a lease to another owner as well; return None if it has a backup."""
        lease = self.state.leases.get(number)
        if lease is None or lease.instance == owner or number in self._partners:
            return None
        task = self.job.again(lease.type, lease.number, lease.id, self.state.next_lease())
        if task is not None:
            self._add(task, owner)
            self._partners |= {number: task.attempt, task.attempt: number}
        return task

    def give_back(self, number: int, part: Report | None = None) -> None:
        """Return the task to the queue, unless it has another lease. `part` is its durable part."""
        if (partner := self._partners.pop(number, None)) is not None:
            del self._partners[partner]
            self.end(number)
            return
        self.job.give_back(task_of(number, self.end(number)), part)

    def copy(self) -> Job:
        """Return a copy of the job's state, with assigned tasks made unassigned. See
        `edl.master.ps.checkpoint_coordinator`."""
        copy = Job(self.plan, _copy_state(self.job.to_state()), merge=self._merge)
        for number, lease in {**self.state.leases, **self.state.revoking}.items():
            if lease.pushed and copy.claim(task_of(number, lease), number):
                copy.finish_task(report_of(lease.pushed), self.state.seconds)
        return copy

    @property
    def checkpoint_is_lost(self) -> bool:
        """True if the checkpoint to go back to does not exist any more, or is damaged."""
        checkpoint = self.state.checkpoint
        if checkpoint is None or checkpoint.manifest is not None or self._checkpoints is None:
            return False
        return not self._checkpoints.is_there(checkpoint.folder)

    def forget_damaged(self, name: str, why: str) -> bool:
        """Mark a damaged checkpoint; return True if it was the one to go back to; that is an older one then."""
        if self._checkpoints is not None:
            self._checkpoints.mark(name, why)
        if self.state.checkpoint_name != name:
            return False
        self.log(why)
        self._fall_back()
        return True

    def go_back(self) -> None:
        """Go back to the last checkpoint: the weights and the progress since are lost."""
        if self.checkpoint_is_lost:
            self.log("the last checkpoint is lost, with the disk of the master that stored it")
            self._fall_back()
        before = self.state.go_back()
        self._of.clear()
        self._partners.clear()
        self.job = Job(self.plan, _copy_state(before) if before else None, merge=self._merge, reserves=True)
        state = self.job.state
        if self.went_back is None or state.step < self.went_back.steps:
            self.went_back = Summary(state.rows, state.step, state.loss, state.weight)
        self.log(f"training resumes from step {state.step:,}" if before else "training restarts")

    def _fall_back(self) -> None:
        """Make an older checkpoint the one to go back to, or none."""
        before, name = self.state.checkpoint_step, self.state.checkpoint_name
        self.state.checkpoint = self._checkpoints.older(name) if self._checkpoints is not None else None
        self.log(repeated_steps(self.state.checkpoint_step, before))

    def _add(self, task: Task, owner: str) -> None:
        self.state.leases[task.attempt] = Lease(task.type, task.number, task.id, task.skip, owner)
        self._of[owner][task.attempt] = False

    def _merge(self, one: States, other: States) -> States | None:
        """Merge the metric states of two tasks, or return None if a metric is not a built-in one."""
        return merge_states(self.state.metric_kinds, one, other)


def repeated_steps(step: int, before: int) -> str:
    """Say which steps are trained again if training resumes from a step before a damaged checkpoint's."""
    return f"steps {step + 1:,} to {before:,} are repeated" if before > step else "no step is repeated"


def _partners(leases: Mapping[int, Lease]) -> dict[int, int]:
    """Return the other lease of each lease of a task with two."""
    seen: dict[tuple[TaskType, int, int], int] = {}
    pairs: dict[int, int] = {}
    for number, lease in leases.items():
        other = seen.setdefault((lease.type, lease.number, lease.id), number)
        if other != number:
            pairs |= {number: other, other: number}
    return pairs


def task_of(number: int, lease: Lease) -> Task:
    """Return the task of a lease, with the fields that the job needs."""
    return Task(lease.id, lease.type, number=lease.number, skip=lease.skip, attempt=number)


def report_of(part: Progress) -> Report:
    """Return the part of a task that is in the parameters, as its worker would report it."""
    return Report(part.task, part.rows, part.steps, part.loss, part.weight)


def task_key(task: Task) -> str:
    """Return the name by which the stored state counts attempts of a task."""
    return f"{task.type} {task.number} {task.id}"


def task_name(task: Task) -> str:
    """Return the name of a task in messages."""
    if task.type in ("conclude", "export"):
        return f"the task {task.type}"
    return f"the {task.type} task of the rows [{task.start:,}, {task.end:,})"


def _copy_state(state: JobState) -> JobState:
    return encoding.decode(encoding.encode(state), JobState)
