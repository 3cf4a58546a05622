"""Recovery policies: one class for each location of a job's parameters.

RecoveryPolicy      evaluation and prediction: tasks are independent
TrainerRecovery     one worker trains and holds the weights
ServerRecovery      parameter servers hold them (`edl.master.ps.ps_manager`)
AllReduceRecovery   all workers of a group hold them (`edl.master.rendezvous`)
TreeRecovery        the same, and each has its share of the rows
"""

from __future__ import annotations

from edl.cluster import Role
from edl.master.rendezvous import NoGroups, RendezvousManager
from edl.master.state import Checkpoint
from edl.master.tasks.lease_table import LeaseTable
from edl.master.tasks.ownership import GroupOwnership, Ownership
from edl.tasks.protocol import Flag, Request, TaskUpdate
from edl.tasks.task import CONTROL, Report, Task, TaskType

Gain = tuple[int, ...]


class RecoveryPolicy:
    """Policy of jobs without parameters: the loss of an instance only returns its tasks.

    `readmits`: an instance that was given up may continue with its state. `adopts`: a lease that an earlier master did
    not persist may continue. `written_first`: all leases are persisted before they are announced. `shares`: tasks that
    a worker has not begun may go to another one. `ends_on_failure`: a worker counts as lost when a training task raises
    on it. `tells_dry`: a worker without a training task has to know if there is none now. `rendezvous` forms the groups
    of workers, and `owners` determines the owner of each lease.
    """

    readmits = True
    adopts = True
    written_first = False
    shares = True
    ends_on_failure = False
    tells_dry = False
    rendezvous: NoGroups | RendezvousManager = NoGroups()
    owners = Ownership()

    def __init__(self, table: LeaseTable) -> None:
        self.table = table
        self.state = table.state

    @property
    def resume(self) -> str:
        """Folder of the checkpoint that workers resume from, or empty."""
        return ""

    @property
    def flags(self) -> Flag:
        """Flags for all instances."""
        return Flag.NONE

    def flags_for(self, request: Request) -> Flag:
        """Return the flags for one instance."""
        return Flag.NONE

    def begin(self) -> None:
        """Start this master, perhaps after earlier ones."""

    def count_progress(self, role: Role) -> Gain:
        """Return a monotonic counter of durable progress for `role`; used to detect crash loops."""
        return (sum(self.state.done.values()),)

    def may_take(self, kind: TaskType, request: Request) -> bool:
        """Return True if tasks of that type may be assigned to the requesting instance now."""
        return True

    def give_back(self, number: int, part: Report | None = None) -> None:
        """Return the remaining part of a lease's task to the queue."""
        self.table.give_back(number, part)

    def on_failure(self, task: Task) -> None:
        """Handle a task that has raised."""
        self.give_back(task.attempt)

    def on_stop(self) -> None:
        """Handle an end of training before the last epoch."""

    def matters(self, instance: str) -> bool:
        """Return True if the loss of the instance is worth a log line although it holds no task."""
        return False

    def on_loss(self, instance: str) -> None:
        """Handle the loss of an instance after its tasks were returned to the queue."""

    def begin_checkpoint(self, update: TaskUpdate, request: Request) -> None:
        """Record that a worker has copied its weights."""

    def checkpoint_damaged(self, name: str, why: str) -> None:
        """Handle a checkpoint that was found damaged, unless the job would go back to another one by now."""
        if self.table.forget_damaged(name, why) and not self.has_state:
            self.go_back()

    @property
    def has_state(self) -> bool:
        """True if the trained state is in an instance, so that a damaged checkpoint does not roll the job back."""
        return False

    def go_back(self) -> None:
        """Go back to the last checkpoint."""
        self.table.go_back()
        self.rendezvous.reset()


class TrainerRecovery(RecoveryPolicy):
    """Policy of one trainer: its loss voids the work since its last checkpoint. The job goes back to that and begins a
    new generation.
    """

    readmits = False  # its weights are newer than the checkpoint
    shares = False
    ends_on_failure = True  # its weights include a part of the task

    def begin(self) -> None:
        """Go back if the last checkpoint is lost and no instance may still have the weights."""
        if self.table.checkpoint_is_lost and not (self._is_held or self.table.is_finished):
            self.go_back()

    @property
    def _is_held(self) -> bool:
        """True if an instance may have the trained state."""
        return not all(member.gone for member in self.state.members.values())

    @property
    def resume(self) -> str:
        return self.state.checkpoint_name

    def count_progress(self, role: Role) -> Gain:
        return (self.state.checkpoint_step,)

    def matters(self, instance: str) -> bool:
        return True

    def on_loss(self, instance: str) -> None:
        if not self.table.job.is_finished:
            self.go_back()

    def begin_checkpoint(self, update: TaskUpdate, request: Request) -> None:
        """Record the job state at the checkpoint: all earlier reports, and the done part of the open task."""
        copy = self.table.copy()
        part = update.report
        if part.rows and copy.claim(part.task, part.task.attempt):
            copy.give_back(part.task, part)
        self.state.begin_checkpoint(Checkpoint(update.folder, copy.to_state()))


class ServerRecovery(RecoveryPolicy):
    """Policy of parameter servers: the part of a task that a lost worker has pushed is in the parameters.

    So the servers revoke the lease and report that part; only then the rest is returned to the queue. A lease is
    persisted before it is announced, and never adopted, so no server receives gradients of an unknown lease.
    """

    adopts = False
    written_first = True
    tells_dry = True

    @property
    def flags(self) -> Flag:
        return Flag.NONE if self.table.job.waits("train") else Flag.DRY

    def flags_for(self, request: Request) -> Flag:
        """Return TAKE_OVER if the worker is to become a parameter server; see `edl.master.ps.ps_manager`."""
        who = (request.instance, request.incarnation)
        waited_for = any((record.instance, record.incarnation) == who for record in self.state.servers)
        return Flag.TAKE_OVER if waited_for and not self.table.is_finished else Flag.NONE

    def count_progress(self, role: Role) -> Gain:
        return (self.state.checkpoint_step,) if role == "ps" else super().count_progress(role)

    def may_take(self, kind: TaskType, request: Request) -> bool:
        return kind != "export" or not self.state.revoking

    def give_back(self, number: int, part: Report | None = None) -> None:
        if self.state.leases[number].type == "train":
            self.state.revoking[number] = self.table.end(number)
        else:
            super().give_back(number, part)

    def on_stop(self) -> None:
        """Revoke all training leases, so that no gradient is pushed while the model is exported."""
        for number in self.state.of_type("train"):
            self.give_back(number)


class AllReduceRecovery(TrainerRecovery):
    """Policy of elastic all-reduce: all workers of a group hold the parameters.

    Training tasks are leased to the group. They stay with it when members are lost. Reports cover steps that all
    members have taken, so the state of every later group includes them, and they count even if they arrive after the
    next group exists. A new leader lists all tasks of the group in its first request; the rest returns to the queue.
    When no holder of the state is left, the job goes back to its last checkpoint.
    """

    readmits = True  # it receives the state from other members
    rendezvous: RendezvousManager
    complete = False  # groups have the workers that are there

    def __init__(self, table: LeaseTable) -> None:
        super().__init__(table)
        self.rendezvous = RendezvousManager(self.state, table.log, complete=self.complete)
        self.owners = GroupOwnership(self.rendezvous)

    @property
    def _is_held(self) -> bool:
        return self.rendezvous.is_held

    def flags_for(self, request: Request) -> Flag:
        """Return REGROUP if the group of the instance is to end or has ended."""
        ends = self.rendezvous.is_ending if self.rendezvous.is_holder(request) else request.group > 0
        return Flag.REGROUP if ends else Flag.NONE

    @property
    def has_state(self) -> bool:
        return self.rendezvous.is_held and self.rendezvous.has_live_holder

    def count_progress(self, role: Role) -> Gain:
        """Return the numbers of steps, unless all went back, rounds, and measured tasks."""
        job = self.table.job
        measured = sum(pool.state.done for pool in job.pools if pool.state.type in CONTROL)
        return job.state.step, job.state.rounds, measured

    def may_take(self, kind: TaskType, request: Request) -> bool:
        return self.rendezvous.is_holder(request) if kind == "evaluate" else self.rendezvous.leads(request)

    def on_failure(self, task: Task) -> None:
        """Keep a training task with the group: a part of it may be in the weights."""
        if task.type != "train":
            super().on_failure(task)

    def matters(self, instance: str) -> bool:
        return self.rendezvous.has_member(instance)

    def on_loss(self, instance: str) -> None:
        if self.rendezvous.is_held and not self.rendezvous.has_live_holder:
            super().on_loss(instance)

    def begin_checkpoint(self, update: TaskUpdate, request: Request) -> None:
        if self.rendezvous.has_led(request):
            super().begin_checkpoint(update, request)


class TreeRecovery(AllReduceRecovery):
    """Policy of trees on several workers: a group has all of them, because the rows are divided among its members."""

    complete = True
