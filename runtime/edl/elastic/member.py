"""Membership of a script's process: in groups of a job's workers, or alone."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from edl.collectives.base import Group
from edl.elastic import node_check
from edl.elastic.collective import STEP, sum_over_group
from edl.tasks.task import Report
from edl.worker.strategies.allreduce.member import GroupMember

LEAST_TIMEOUT = 60.0  # seconds: a script may do anything between two steps; a dead member is noticed at once
DECAY = 0.9  # of the longest time between two steps, with each step


@dataclass(frozen=True, slots=True)
class World:
    """Group of workers as one of them sees it: its rank, their number, and their names by rank."""

    rank: int
    size: int
    members: tuple[str, ...]


class Alone:
    """Process without a master."""

    world = World(0, 1, ("worker-0",))
    group: Group | None = None
    rank, size, step = 0, 1, 0
    leaves = False

    def ready(self) -> Group | None:
        return None

    def on_step(self) -> None:
        self.step += 1

    def mark(self) -> int:
        return self.step

    def is_durable(self, mark: int) -> bool:
        return True

    def flush(self) -> None:
        """Return at once: no other worker has to take the step."""

    def join(self, done: Report | None = None) -> None:
        """Return at once: there is no group."""

    def leave(self) -> None:
        """Return at once: there is no group."""


class ScriptMember(GroupMember):
    """Member of groups of a job's workers. For the parameters see `GroupMember`."""

    _longest = 0.0  # seconds between two steps, as far as is known
    _stepped = 0.0

    @property
    def _seconds(self) -> float:
        return self._longest

    def _timeout(self, seconds: float) -> float:
        return max(LEAST_TIMEOUT, super()._timeout(seconds))

    def _begin(self, group: Group, number: int) -> None:
        self._stepped = 0.0
        node_check.check(group, self._members)

    @property
    def rank(self) -> int:
        return self._group.rank if self._group is not None else 0

    @property
    def size(self) -> int:
        return self._group.size if self._group is not None else 1

    @property
    def world(self) -> World:
        return World(self.rank, self.size, tuple(self._members))

    @property
    def leaves(self) -> bool:
        """True if this worker has no group, or has to leave it before the next step."""
        return self._group is None or self._rendezvous.regroup

    def ready(self) -> Group | None:
        """Return the group, or None if this is its only member. Raises GroupError if it has to be left."""
        group = self._ready()
        return group if group.size > 1 else None

    def wait(self) -> None:
        """Wait for the others, before a step that has no gradients. Raises as `sum_over_group`."""
        if (group := self.ready()) is not None:
            sum_over_group(group, STEP, np.zeros(1, np.float32))

    def on_step(self) -> None:
        """Record that the step was taken."""
        alone = self.size == 1
        self._settled, self.step = self.step, self.step + 1
        if alone:
            self._settled = self.step
        now = time.monotonic()
        if self._stepped:
            self._longest = max(self._longest * DECAY, now - self._stepped)
        self._stepped = now
