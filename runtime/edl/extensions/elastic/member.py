"""Membership of a script's process: in groups of a job's workers, or alone.

The nodes of a group are checked first: a matrix product on each, and a sum over all. Slow nodes are logged and still
take part; a node that does not answer in time prevents the group from forming."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edl.collectives.base import Group, Host
from edl.extensions.elastic.collective import STEP, sum_over_group
from edl.frameworks.adapter import Adapter
from edl.logs import log
from edl.tasks.task import Report
from edl.worker.strategies.allreduce.member import GroupMember
from edl.worker.strategies.allreduce.rendezvous import Rendezvous

LEAST_TIMEOUT = 60.0  # seconds: a script may do anything between two steps; a dead member is noticed at once
DECAY = 0.9  # of the longest time between two steps, with each step


@dataclass(frozen=True, slots=True)
class World:
    """Group of workers as one of them sees it: its rank, their number, and by rank their names and numbers of restarts.

    A replacement has the name of the worker that it replaces, and one restart more.
    """

    rank: int
    size: int
    members: tuple[str, ...]
    restarts: tuple[int, ...] = (0,)


class Alone:
    """Process without a master."""

    world: World | None = World(0, 1, ("worker-0",))
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
    """Member of groups of a job's workers. It was started again `restarts` times; for the rest see `GroupMember`."""

    def __init__(
        self, adapter: Adapter, rendezvous: Rendezvous, host: Host, name: str, restarts: int
    ) -> None:
        super().__init__(adapter, rendezvous, host, name)
        self._restarts = restarts
        self._of_members: tuple[int, ...] = (restarts,)  # restarts by rank

    _longest = 0.0  # seconds between two steps, as far as is known
    _stepped = 0.0

    @property
    def _seconds(self) -> float:
        return self._longest

    def _timeout(self, seconds: float) -> float:
        return max(LEAST_TIMEOUT, super()._timeout(seconds))

    def _begin(self, group: Group, number: int) -> None:
        self._stepped = 0.0
        self._of_members = check_nodes(group, self._members, self._restarts)

    @property
    def rank(self) -> int:
        return self._group.rank if self._group is not None else 0

    @property
    def size(self) -> int:
        return self._group.size if self._group is not None else 1

    @property
    def world(self) -> World | None:
        """Group of this worker, or None between two groups and after the last one."""
        if self._group is None:
            return None
        return World(self.rank, self.size, tuple(self._members), self._of_members)

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


SIZE, TIMES = 256, 8  # rows and columns of the matrices; number of products, of which the fastest counts
FACTOR = 3.0  # times the median from which a product is slow
LEAST_SECS = 0.002  # more than the median, so that noise is not taken for a slow node
NUMBERS = 1 << 18  # float32 values in the sum
SUM_SECS, LIMIT_SECS = 2.0, 20.0  # time from which the sum is slow, and after which it fails


@functools.cache
def measure_product() -> float:
    """Return the seconds of a matrix product in this process."""
    matrix, times = np.ones((SIZE, SIZE), np.float32), []
    for _ in range(TIMES):
        began = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - began)
    return min(times)


def check_nodes(group: Group, members: Sequence[str], restarts: int) -> tuple[int, ...]:
    """Compare the members of a group, named by rank; the first one logs what is slow. Raises GroupError.

    Return the restarts of each member; this one has had `restarts`. The caller sets the timeout of the group anew.
    """
    figures = group.gather(np.array([measure_product(), restarts]))
    seconds = figures[:, 0]
    group.timeout = LIMIT_SECS
    began = time.perf_counter()
    group.sum(np.zeros(NUMBERS, np.float32))
    took = time.perf_counter() - began
    if group.rank == 0:
        for line in node_findings(members, seconds.tolist(), took):
            log(line)
    return tuple(int(count) for count in figures[:, 1])


def node_findings(members: Sequence[str], seconds: Sequence[float], took: float) -> list[str]:
    """Return a sentence for each slow member, and for a slow sum. `seconds` are the times of each member's product."""
    median = sorted(seconds)[(len(seconds) - 1) // 2]
    sentences = [
        f"{name} is slow: a matrix product takes {1000 * secs:.1f} ms there, and {1000 * median:.1f} ms elsewhere"
        for name, secs in zip(members, seconds, strict=True)
        if secs > max(FACTOR * median, median + LEAST_SECS)
    ]
    if took > SUM_SECS:
        sentences.append(
            f"the network is slow: the sum of a megabyte over {len(members)} workers takes {took:.1f} s"
        )
    return sentences
