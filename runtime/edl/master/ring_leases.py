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
from edl.master.parameters import Gain, InTrainer
from edl.master.rings import Rings
from edl.tasks.exchange import Flag, Request, Ring, Told
from edl.tasks.task import ASIDE, Task, TaskType

RING = "ring"  # the owner of training tasks; no instance is called so
_LONGEST_STEP = 10.0  # seconds; a longer time between two steps was spent on something else


class InRing(InTrainer):
    """The master's side of elastic all-reduce."""

    readmits = True  # it takes the state from the others
    independent = False  # its members take the same steps, and leave out themselves who is too slow for that

    def __init__(self, table: LeaseTable) -> None:
        super().__init__(table)
        self.rings = Rings(self.kept, table.note)
        self._at = (0.0, 0)  # second and step of the leader's last word that was of a new step

    @property
    def _held(self) -> bool:
        return self.rings.held

    def want(self, workers: int) -> None:
        self.rings.wanted = workers

    def flags_for(self, request: Request) -> Flag:
        """Whether the ring that it is in is to end, or is over."""
        ends = self.rings.ending if self.rings.is_holder(request) else request.ring > 0
        return Flag.REGROUP if ends else Flag.NONE

    @property
    def signal(self) -> tuple[object, ...]:
        return self.rings.signal

    def gained(self, role: Role) -> Gain:
        """Steps, unless all went back; then what was measured."""
        job = self.table.job
        measured = sum(pool.state.done for pool in job.pools if pool.state.type in ASIDE)
        return job.state.step, job.state.rounds, measured

    def tick(self, now: float) -> None:
        self.rings.tick(now)

    def hear(self, request: Request, now: float) -> None:
        self.rings.hear(request, now)
        if self.rings.leads(request):
            self._time_steps(request, now)

    def defers(self, told: Told, request: Request) -> bool:
        """What was settled in a ring that nobody knows of may be lost, until the next one has it."""
        return told.kind == "done" and told.report.task.type == "train" and self.rings.is_elsewhere(request)

    def owner(self, kind: TaskType, request: Request) -> str:
        if kind == "train":
            return RING if self.rings.leads(request) else ""
        return request.instance

    def owner_told(self, told: Told, request: Request) -> str:
        if told.report.task.type != "train":
            return request.instance
        counts = self.rings.was_in if told.kind == "failed" else self.rings.has_led
        return RING if counts(request) else ""

    def named(self, request: Request) -> list[str]:
        return [request.instance, RING] if self.rings.leads(request) else [request.instance]

    def may_take(self, kind: TaskType, request: Request) -> bool:
        return self.rings.is_holder(request) if kind == "evaluate" else self.rings.leads(request)

    def failed(self, task: Task) -> None:
        """A part of a training task may be in the weights of the ring, which keeps it."""
        if task.type != "train":
            super().failed(task)

    def owners(self, instance: str) -> list[str]:
        return [instance, RING] if self.matters(instance) else [instance]

    def workers(self, owner: str) -> list[str]:
        return list(self.rings.members) if owner == RING else [owner]

    def standing(self, instance: str, now: float) -> str:
        return self.rings.standing(instance, now)

    def takes_part(self, instance: str) -> bool:
        return self.rings.takes_part(instance)

    def matters(self, instance: str) -> bool:
        return instance in self.rings.members

    def lost(self, instance: str, now: float) -> None:
        if self.rings.held and not self.rings.lives and not self.table.job.finished:
            self.go_back()
        self.rings.tick(now)

    def ring_for(self, request: Request) -> Ring | None:
        return self.rings.told(request)

    def written(self, ring: int) -> None:
        self.rings.written(ring)

    def begin_cut(self, told: Told, request: Request) -> None:
        if self.rings.has_led(request):
            super().begin_cut(told, request)

    def go_back(self) -> None:
        super().go_back()
        self.rings.reset()

    def _time_steps(self, request: Request, now: float) -> None:
        """How long a step takes: who is in the middle of one cannot come to the next ring sooner."""
        step = self.table.job.state.step + sum(held.steps for held in request.held)
        second, before = self._at
        if step > before:
            self.rings.step_secs = min(_LONGEST_STEP, (now - second) / (step - before)) if before else 0.0
        if step != before:
            self._at = now, step
