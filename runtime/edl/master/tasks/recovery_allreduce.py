"""Recovery policy of elastic all-reduce: all workers of a group hold the parameters.

Training tasks are leased to the group: its first member, the *leader*, requests, lists and reports them. They stay with
the group when members are lost. Reports cover steps that all members have taken, so the state of every later group
includes them, and they count even if they arrive after the next group exists. A new leader lists all tasks of the group
in its first request; the rest returns to the queue. When no holder of the state is left, the job goes back to its last
checkpoint.
"""

from __future__ import annotations

from edl.cluster import Role
from edl.master.rendezvous import RendezvousManager
from edl.master.tasks.lease_table import LeaseTable
from edl.master.tasks.recovery import Gain, TrainerRecovery
from edl.tasks.protocol import Flag, Request, TaskUpdate, WorkerGroup
from edl.tasks.task import CONTROL, Task, TaskType

RING = "ring"  # owner of training tasks; no instance has this name
_LONGEST_STEP = 10.0  # seconds; a longer interval is no step


class AllReduceRecovery(TrainerRecovery):
    """Recovery policy of elastic all-reduce."""

    readmits = True  # it receives the state from other members
    independent = False  # members take the same steps, and exclude stragglers themselves

    def __init__(self, table: LeaseTable) -> None:
        super().__init__(table)
        self.rendezvous = RendezvousManager(self.kept, table.note)
        self._at = (0.0, 0)  # second and step of the leader's last report of a new step

    @property
    def _held(self) -> bool:
        return self.rendezvous.held

    def want(self, workers: int) -> None:
        self.rendezvous.wanted = workers

    def flags_for(self, request: Request) -> Flag:
        """Return REGROUP if the group of the instance is to end or has ended."""
        ends = self.rendezvous.ending if self.rendezvous.is_holder(request) else request.ring > 0
        return Flag.REGROUP if ends else Flag.NONE

    @property
    def signal(self) -> tuple[object, ...]:
        return self.rendezvous.signal

    def gained(self, role: Role) -> Gain:
        """Return the numbers of steps, unless all went back, rounds, and measured tasks."""
        job = self.table.job
        measured = sum(pool.state.done for pool in job.pools if pool.state.type in CONTROL)
        return job.state.step, job.state.rounds, measured

    def tick(self, now: float) -> None:
        self.rendezvous.tick(now)

    def hear(self, request: Request, now: float) -> None:
        self.rendezvous.hear(request, now)
        if self.rendezvous.leads(request):
            self._time_steps(request, now)

    def defers(self, told: TaskUpdate, request: Request) -> bool:
        """Defer results of a group that is not confirmed: they may be lost until the next group includes them."""
        return (
            told.kind == "done" and told.report.task.type == "train" and self.rendezvous.is_elsewhere(request)
        )

    def owner(self, kind: TaskType, request: Request) -> str:
        if kind == "train":
            return RING if self.rendezvous.leads(request) else ""
        return request.instance

    def owner_told(self, told: TaskUpdate, request: Request) -> str:
        if told.report.task.type != "train":
            return request.instance
        counts = self.rendezvous.was_in if told.kind == "failed" else self.rendezvous.has_led
        return RING if counts(request) else ""

    def named(self, request: Request) -> list[str]:
        return [request.instance, RING] if self.rendezvous.leads(request) else [request.instance]

    def may_take(self, kind: TaskType, request: Request) -> bool:
        return self.rendezvous.is_holder(request) if kind == "evaluate" else self.rendezvous.leads(request)

    def failed(self, task: Task) -> None:
        """Keep a training task with the group: a part of it may be in the weights."""
        if task.type != "train":
            super().failed(task)

    def owners(self, instance: str) -> list[str]:
        return [instance, RING] if self.matters(instance) else [instance]

    def workers(self, owner: str) -> list[str]:
        return list(self.rendezvous.members) if owner == RING else [owner]

    def standing(self, instance: str, now: float) -> str:
        return self.rendezvous.standing(instance, now)

    def takes_part(self, instance: str) -> bool:
        return self.rendezvous.takes_part(instance)

    def matters(self, instance: str) -> bool:
        return instance in self.rendezvous.members

    def lost(self, instance: str, now: float) -> None:
        if self.rendezvous.held and not self.rendezvous.has_live_holder and not self.table.job.finished:
            self.go_back()
        self.rendezvous.tick(now)

    def ring_for(self, request: Request) -> WorkerGroup | None:
        return self.rendezvous.told(request)

    def written(self, ring: int) -> None:
        self.rendezvous.written(ring)

    def begin_checkpoint(self, told: TaskUpdate, request: Request) -> None:
        if self.rendezvous.has_led(request):
            super().begin_checkpoint(told, request)

    def go_back(self) -> None:
        super().go_back()
        self.rendezvous.reset()

    def _time_steps(self, request: Request, now: float) -> None:
        """Measure the step time: a member in the middle of a step cannot join the next group sooner."""
        step = self.table.job.state.step + sum(held.steps for held in request.held)
        second, before = self._at
        if step > before:
            self.rendezvous.step_secs = (
                min(_LONGEST_STEP, (now - second) / (step - before)) if before else 0.0
            )
        if step != before:
            self._at = now, step
