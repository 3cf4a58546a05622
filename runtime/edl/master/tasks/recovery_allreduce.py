"""Recovery policy of elastic all-reduce: all workers of a group hold the parameters.

Training tasks are leased to the group. They stay with it when members are lost. Reports cover steps that all members
have taken, so the state of every later group includes them, and they count even if they arrive after the next group
exists. A new leader lists all tasks of the group in its first request; the rest returns to the queue. When no holder
of the state is left, the job goes back to its last checkpoint.
"""

from __future__ import annotations

from edl.cluster import Role
from edl.master.rendezvous import RendezvousManager
from edl.master.tasks.lease_table import LeaseTable
from edl.master.tasks.ownership import GroupOwnership
from edl.master.tasks.recovery import Gain, TrainerRecovery
from edl.tasks.protocol import Flag, Request, TaskUpdate
from edl.tasks.task import CONTROL, Task, TaskType


class AllReduceRecovery(TrainerRecovery):
    """Recovery policy of elastic all-reduce."""

    readmits = True  # it receives the state from other members
    rendezvous: RendezvousManager

    def __init__(self, table: LeaseTable) -> None:
        super().__init__(table)
        self.rendezvous = RendezvousManager(self.state, table.log)
        self.owners = GroupOwnership(self.rendezvous)

    @property
    def _held(self) -> bool:
        return self.rendezvous.held

    def flags_for(self, request: Request) -> Flag:
        """Return REGROUP if the group of the instance is to end or has ended."""
        ends = self.rendezvous.ending if self.rendezvous.is_holder(request) else request.group > 0
        return Flag.REGROUP if ends else Flag.NONE

    def gained(self, role: Role) -> Gain:
        """Return the numbers of steps, unless all went back, rounds, and measured tasks."""
        job = self.table.job
        measured = sum(pool.state.done for pool in job.pools if pool.state.type in CONTROL)
        return job.state.step, job.state.rounds, measured

    def may_take(self, kind: TaskType, request: Request) -> bool:
        return self.rendezvous.is_holder(request) if kind == "evaluate" else self.rendezvous.leads(request)

    def failed(self, task: Task) -> None:
        """Keep a training task with the group: a part of it may be in the weights."""
        if task.type != "train":
            super().failed(task)

    def matters(self, instance: str) -> bool:
        return instance in self.rendezvous.members

    def lost(self, instance: str) -> None:
        if self.rendezvous.held and not self.rendezvous.has_live_holder:
            super().lost(instance)

    def begin_checkpoint(self, update: TaskUpdate, request: Request) -> None:
        if self.rendezvous.has_led(request):
            super().begin_checkpoint(update, request)
