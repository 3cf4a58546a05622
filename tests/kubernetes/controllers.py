"""The thread in which the cluster's own parts work: scheduler, node, collector, Job controller.

Each is a state machine that is told the time and says when it wants to be called next. A part works under the store's
lock, in the order of the list, until none of them has anything left to do: then the cluster has settled.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.kubernetes.clock import Clock
from tests.kubernetes.store import Store

NEVER = float("inf")
PATIENCE = 5.0  # real seconds


@dataclass(frozen=True)
class Pace:
    """How long the cluster takes for things, in seconds of its clock.

    `moment` is in real seconds: what a process has before it counts as one that runs.
    """

    schedule: float = 0.0  # until a pod has a node
    notice: float = 0.0  # until the node has noticed it
    start: float = 0.0  # until its processes run
    publish: float = 0.0  # until that is said
    finish: float = 0.0  # from its end to its last phase
    grace: float = 0.0  # that a pod has at least to end
    remove: float = 0.0  # from that to its removal
    look: float = 0.0  # until it is seen that the owner of something new is not there
    collect: float = 0.0  # until an owner goes whose dependents have gone
    count: float = 0.0  # until a Job's status says how its pods are
    sync: float = 0.5  # between looks at what does not get on
    back_off: float = 0.5  # after the first failure of a container
    tolerance: float = 0.1  # that pods have at most for what is wrong with their node
    quarantine: float = 0.05  # of the pods of a node that is gone
    retry: float = 0.02  # from the first failure of a Job's pod to the next pod; longer after each
    refused: float = 0.05  # until a Job tries again to make a pod that it may not have; longer each time
    moment: float = 0.0

    def backed_off(self, failures: int) -> float:
        """Seconds after so many failures in a row: twice as long each time, thirty times at most."""
        return float(self.back_off * min(2 ** (failures - 1), 30))


QUICK = Pace()
REAL = Pace(
    schedule=0.004,
    notice=0.04,
    start=0.4,
    publish=0.4,
    finish=1.0,
    grace=2.0,
    remove=0.2,
    look=0.02,
    collect=0.07,
    count=1.0,
    sync=13.0,
    back_off=10.0,
    tolerance=float("inf"),
    quarantine=40.0,
    retry=10.0,
    refused=1.0,
    moment=0.15,
)


class Controller(Protocol):
    def step(self, now: float) -> float:
        """Do what is due. When there will be more to do, if nothing changes before."""
        ...


class Controllers:
    def __init__(
        self, store: Store, clock: Clock, parts: Sequence[Controller], on_mistake: Callable[[], None]
    ) -> None:
        self._store, self._clock, self._parts, self._on_mistake = store, clock, parts, on_mistake
        self._idle = threading.Condition(store.lock)
        self._settled: tuple[int, float] | None = None
        self._due = NEVER

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def pass_time(self, seconds: float) -> dict[str, float | None]:
        """Move the clock, stopping wherever something is due, until nothing is left to do at its last time.

        That time, and when something is due next.
        """
        with self._store.lock:
            self._clock.move(0)
            target = self._clock.now() + seconds
            self._idle.wait_for(self._has_settled, PATIENCE)
            while self._clock.now() < target:
                self._clock.move(min(self._due, target) - self._clock.now())
                self._idle.wait_for(self._has_settled, PATIENCE)
            return {"now": target, "due": None if self._due == NEVER else self._due}

    def _has_settled(self) -> bool:
        return self._settled == (self._store.revision, self._clock.now())

    def _work(self) -> None:
        try:
            self._step()
        except BaseException:  # of the double itself: nobody shall wait for a cluster that stands still
            traceback.print_exc()
            self._on_mistake()

    def _step(self) -> None:
        with self._store.changed:
            while True:
                revision, now = self._store.revision, self._clock.now()
                due = min((part.step(now) for part in self._parts), default=NEVER)
                if self._store.revision != revision or due <= now:
                    continue
                self._settled, self._due = (revision, now), due
                self._idle.notify_all()
                self._clock.wait(due)
