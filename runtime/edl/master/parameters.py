"""Where a job's parameters are, and what that makes of its leases: one class for each way of holding them.

NoParameters   evaluation and prediction: tasks do not depend on each other
InTrainer      one worker trains, and holds the weights
OnServers      parameter servers hold them (`edl.master.servers`)
InRing         the workers of a ring all hold them (`edl.master.ring_leases`)
"""

from __future__ import annotations

from edl.cluster import Role
from edl.master.kept import Checkpoint
from edl.master.lease_table import LeaseTable
from edl.tasks.exchange import Flag, Request, TaskUpdate, WorkerGroup
from edl.tasks.task import Report, Task, TaskType

Gain = tuple[int, ...]


class RecoveryPolicy:
    """Whoever is lost, only the tasks in hands are to do again.

    readmits: an instance that was given up may go on with what it holds. adopts: a lease that an earlier master gave
    and did not write down may go on. written_first: leases are written down before they are told. ends_on_failure: a
    worker is lost when a training task raises on it. independent: what a worker has done says how fast it is.
    """

    readmits = True
    adopts = True
    written_first = False
    ends_on_failure = False
    independent = True

    def __init__(self, table: LeaseTable) -> None:
        self.table = table
        self.kept = table.kept

    @property
    def resume(self) -> str:
        """Folder of the cut that workers go on from; empty: they go on from none."""
        return ""

    @property
    def flags(self) -> Flag:
        """What everybody is to know."""
        return Flag.NONE

    def flags_for(self, request: Request) -> Flag:
        """What one instance is to know."""
        return Flag.NONE

    @property
    def signal(self) -> tuple[object, ...]:
        """Differs when there may be something new to say to somebody who waits."""
        return ()

    def begin(self) -> None:
        """This master begins, perhaps after others."""

    def want(self, workers: int) -> None:
        """So many workers are to be there."""

    def gained(self, role: Role) -> Gain:
        """Grows with what stays when an instance of that role is lost."""
        return (sum(self.kept.done.values()),)

    def tick(self, now: float) -> None:
        """Time has passed."""

    def hear(self, request: Request, now: float) -> None:
        """What a request says besides its tasks; before these."""

    def defers(self, told: TaskUpdate, request: Request) -> bool:
        """Whether a report is to be told again later."""
        return False

    def owner(self, kind: TaskType, request: Request) -> str:
        """Whose are the tasks of that type that the request names and wants; empty: nobody's."""
        return request.instance

    def owner_told(self, told: TaskUpdate, request: Request) -> str:
        """Whose the task is that a report is of; empty: the report counts for nothing."""
        return request.instance

    def named(self, request: Request) -> list[str]:
        """The owners of whose tasks the request names all that it has."""
        return [request.instance]

    def may_take(self, kind: TaskType, request: Request) -> bool:
        """Whether tasks of that type may be handed out now to the instance that asks."""
        return True

    def give_back(self, number: int, part: Report | None = None) -> None:
        """The task of a lease is to do again, as far as it is not done."""
        self.table.give_back(number, part)

    def failed(self, task: Task) -> None:
        """A task has raised."""
        self.give_back(task.attempt)

    def stopped(self) -> None:
        """Training was ended before its last epoch."""

    def owners(self, instance: str) -> list[str]:
        """Whose tasks an instance does."""
        return [instance]

    def workers(self, owner: str) -> list[str]:
        """Who does an owner's tasks."""
        return [owner]

    def standing(self, instance: str, now: float) -> str:
        """In words, whether an instance takes part."""
        return ""

    def takes_part(self, instance: str) -> bool:
        """Whether the others count on an instance, or it waits to do its part."""
        return True

    def matters(self, instance: str) -> bool:
        """Whether the loss of an instance is worth a word, though it holds no task."""
        return False

    def lost(self, instance: str, now: float) -> None:
        """An instance is gone, and what it held is given back."""

    def ring_for(self, request: Request) -> WorkerGroup | None:
        """The ring that the request seeks, once it may be told."""
        return None

    def written(self, ring: int) -> None:
        """Rings up to that number survive this master."""

    def begin_checkpoint(self, told: TaskUpdate, request: Request) -> None:
        """A worker copies its weights."""

    def end_checkpoint(self, folder: str) -> None:
        """A worker's copy is written."""

    def go_back(self) -> None:
        """What was trained since the last cut is lost."""
        self.table.go_back()


class TrainerRecovery(RecoveryPolicy):
    """When the trainer is lost, what it has done since its last cut is lost with it: the job goes back to that cut and
    begins a new generation."""

    readmits = False  # its weights are not those of the cut that the job went back to
    ends_on_failure = True  # its weights have taken a part of the task

    def begin(self) -> None:
        """Without its last cut, the job is where it was only as long as somebody has the weights."""
        if self.table.checkpoint_is_lost and not (self._held or self.table.finished):
            self.go_back()

    @property
    def _held(self) -> bool:
        """Whether somebody may have what was trained."""
        return not all(member.gone for member in self.kept.members.values())

    @property
    def resume(self) -> str:
        return self.kept.checkpoint.folder if self.kept.checkpoint else ""

    def gained(self, role: Role) -> Gain:
        return (self.kept.checkpoint.job.step if self.kept.checkpoint else 0,)

    def matters(self, instance: str) -> bool:
        return True

    def lost(self, instance: str, now: float) -> None:
        if not self.table.job.finished:
            self.go_back()

    def begin_checkpoint(self, told: TaskUpdate, request: Request) -> None:
        """Remember the course of the job at the cut: what was told before it, and the part of its open task."""
        copy = self.table.copy()
        part = told.report
        if part.rows and copy.claim(part.task, part.task.attempt):
            copy.give_back(part.task, part)
        self.kept.pending_checkpoints = [
            *self.kept.pending_checkpoints[-1:],
            Checkpoint(told.folder, copy.kept()),
        ]

    def end_checkpoint(self, folder: str) -> None:
        """From now on the job goes back to this cut."""
        for checkpoint in self.kept.pending_checkpoints:
            if checkpoint.folder == folder:
                self.kept.checkpoint = checkpoint
        self.kept.pending_checkpoints = [
            checkpoint for checkpoint in self.kept.pending_checkpoints if checkpoint.folder != folder
        ]


class ServerRecovery(RecoveryPolicy):
    """What a worker did of a task before it was lost is in the parameters. So the servers revoke the lease, and say how
    much of it that is; only then the rest is given back. A lease is written down before it is told, and never adopted:
    nobody's gradients come unknown."""

    adopts = False
    written_first = True

    @property
    def flags(self) -> Flag:
        return Flag.NONE if self.table.job.waits("train") else Flag.DRY

    def flags_for(self, request: Request) -> Flag:
        """Whether the worker is to be a parameter server from now on; see `edl.master.servers`."""
        who = (request.instance, request.incarnation)
        waited_for = any((record.instance, record.incarnation) == who for record in self.kept.servers)
        return Flag.TAKE_OVER if waited_for and not self.table.finished else Flag.NONE

    @property
    def signal(self) -> tuple[object, ...]:
        return bool(self.kept.revoking), *(record.instance for record in self.kept.servers)

    def gained(self, role: Role) -> Gain:
        if role == "ps":
            return (self.kept.checkpoint.job.step if self.kept.checkpoint else 0,)
        return super().gained(role)

    def may_take(self, kind: TaskType, request: Request) -> bool:
        return kind != "export" or not self.kept.revoking

    def give_back(self, number: int, part: Report | None = None) -> None:
        if self.kept.leases[number].type == "train":
            self.kept.revoking[number] = self.table.end(number)
        else:
            super().give_back(number, part)

    def stopped(self) -> None:
        """Nobody is to push while the model is exported."""
        for number in [number for number, lease in self.kept.leases.items() if lease.type == "train"]:
            self.give_back(number)
