"""Slots of instances: the present occupant of each name, when the next one may start, and why the last one ended."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from edl.cluster import LEAVE_GRACE, Change, Instance, Reason, Role
from edl.master.tasks.recovery import Gain

STOP_GRACE = (
    120.0  # seconds for a worker to end when the job stops, and the last worker writes a checkpoint first
)
LONGEST_WAIT = 5.0  # maximum pause in seconds before a repeatedly failing instance is restarted
_BLAMELESS: frozenset[Reason] = frozenset({"preempted", "stopped"})


class ScaleAction(msgspec.Struct, frozen=True):
    """Request to the cluster to start or stop an instance. `grace` is the seconds that a stopped instance has to
    exit.
    """

    instance: Instance
    stop: bool = False
    grace: float = 0.0


@dataclass
class Backoff:
    """Restart backoff: consecutive ends without progress in between, and the progress (`gained`) at the last end."""

    fruitless: int = 0
    gained: Gain = ()

    def on_end(self, change: Change, gained: Gain) -> None:
        before = 0 if gained > self.gained else self.fruitless
        self.fruitless = before + (change.reason not in _BLAMELESS and not change.remedied)
        self.gained = max(self.gained, gained)

    @property
    def wait(self) -> float:
        """Seconds until the next start: none after the first end, then growing exponentially up to LONGEST_WAIT."""
        return 0.0 if self.fruitless <= 1 else min(LONGEST_WAIT, 0.1 * 2 ** (self.fruitless - 2))


@dataclass
class Slot:
    """Named slot with the last `change` of its occupant, which may be a worker that stands in for a server.

    `started` is the second of the last start, `not_before` the earliest second of the next one. `dismissed`: the
    occupant was asked to stop. `waits`: the cluster has no room for the slot; `refusals` counts its consecutive
    refusals. `ending` describes why the last occupant ended; it is empty after a deliberate stop. `unregistered`
    counts the seconds in which the occupant has run without registering, and this master has too.
    """

    role: Role
    incarnation: int = -1
    change: Change | None = None
    started: float = 0.0
    not_before: float = 0.0
    relaunches: int = 0
    dismissed: bool = False
    waits: bool = False
    refusals: int = 0
    backoff: Backoff = field(default_factory=Backoff)
    ending: str = ""
    unregistered: float = 0.0

    @property
    def is_vacant(self) -> bool:
        return self.change is None or self.change.state == "ended" or self.waits

    @property
    def is_running(self) -> bool:
        return self.change is not None and self.change.state == "running"

    @property
    def instance(self) -> Instance:
        """The present occupant, or the last one of a vacant slot. Raises RuntimeError without one."""
        if self.change is None:
            raise RuntimeError("the slot was never occupied")
        return self.change.instance

    def withdraw(self) -> None:
        """End the wait for room, as if the incarnation that waits had never been requested."""
        self.waits, self.refusals, self.not_before = False, 0, 0.0
        if self.change is not None and self.change.state != "ended":
            self.relaunches -= self.incarnation > 0
            self.incarnation -= 1
            self.change = None

    def saw_incarnation(self, incarnation: int) -> None:
        """Record a known incarnation. An incarnation that this master did not start was started by an earlier one."""
        if incarnation > self.incarnation:
            self.incarnation, self.relaunches = incarnation, max(self.relaunches, incarnation)

    def next(self, name: str) -> Instance:
        """Take the next incarnation of the name, to start it. A waiting slot keeps the incarnation that it waits for,
        unless that has ended.
        """
        if not self.waits:
            self.relaunches += self.incarnation >= 0
        if not self.waits or (self.change is not None and self.change.state == "ended"):
            self.incarnation += 1
        self.dismissed = False
        instance = Instance(name, self.role, self.incarnation)
        self.change = Change(instance, "pending")
        return instance

    def dismiss(self, *, now: bool = False, stops: bool = False) -> ScaleAction:
        """Return the stop of the occupant. `now`: it has nothing to return. `stops`: the job does."""
        self.dismissed = True
        grace = STOP_GRACE if stops else LEAVE_GRACE
        return ScaleAction(
            self.instance, stop=True, grace=grace if self.role == "worker" and not now else 0.0
        )


def describe_wait(name: str, why: str) -> str:
    """Return a clause on an instance that waits; the reason may be unknown."""
    return f"{name} {why}" if why.startswith("waits ") else f"{name} waits: {why}" if why else f"{name} waits"


def describe(change: Change) -> str:
    """Return how an instance ended, in words."""
    if change.reason == "done":
        return "exited before the end of the job"
    ran = "ran " if change.reason == "out of memory" else ""
    reason, code = change.reason or "ended", f"exit code {change.exit_code}"
    if change.detail.startswith(reason):
        return f"{ran}{change.detail}"
    exit_code = f" ({code})" if change.exit_code is not None and change.exit_code > 0 else ""
    more = "" if change.detail in ("", code) else f": {change.detail}"
    return f"{ran}{reason}{exit_code}{more}"
