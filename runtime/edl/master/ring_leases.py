"""Parameters that all workers hold who train together, and what that makes of their tasks.

Training tasks are leased to the ring: its first member, the *leader*, gets, names and reports them. They stay with the
ring whoever is lost of it. Reports are told of steps that all members have taken, so what a leader tells is in the
state of every later ring, and counts, though it may tell it when the next one is there already. A new leader names with
its first word what the ring has of tasks; the rest is given back. When no holder is left, the job goes back to its last
cut.
"""

from __future__ import annotations

from edl.cluster import Role
from edl.master.lease_table import LeaseTable
from edl.master.parameters import Gain, TrainerRecovery
from edl.master.rings import RendezvousManager
from edl.tasks.exchange import Flag, Request, TaskUpdate, WorkerGroup
from edl.tasks.task import CONTROL, Task, TaskType

RING = "ring"  # the owner of training tasks; no instance is called so
_LONGEST_STEP = 10.0  # seconds; a longer time between two steps was spent on something else


class AllReduceRecovery(TrainerRecovery):
    """The master's side of elastic all-reduce."""

    readmits = True  # it takes the state from the others
    independent = False  # its members take the same steps, and leave out themselves who is too slow for that

    def __init__(self, table: LeaseTable) -> None:
        super().__init__(table)
        self.rendezvous = RendezvousManager(self.kept, table.note)
        self._at = (0.0, 0)  # second and step of the leader's last word that was of a new step

    @property
    def _held(self) -> bool:
        return self.rendezvous.held

    def want(self, workers: int) -> None:
        self.rendezvous.wanted = workers

    def flags_for(self, request: Request) -> Flag:
        """Whether the ring that it is in is to end, or is over."""
        ends = self.rendezvous.ending if self.rendezvous.is_holder(request) else request.ring > 0
        return Flag.REGROUP if ends else Flag.NONE

    @property
    def signal(self) -> tuple[object, ...]:
        return self.rendezvous.signal

    def gained(self, role: Role) -> Gain:
        """Steps, unless all went back; then what was measured."""
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
        """What was settled in a ring that nobody knows of may be lost, until the next one has it."""
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
        """A part of a training task may be in the weights of the ring, which keeps it."""
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
        """How long a step takes: who is in the middle of one cannot come to the next ring sooner."""
        step = self.table.job.state.step + sum(held.steps for held in request.held)
        second, before = self._at
        if step > before:
            self.rendezvous.step_secs = (
                min(_LONGEST_STEP, (now - second) / (step - before)) if before else 0.0
            )
        if step != before:
            self._at = now, step
