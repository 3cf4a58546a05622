"""All-reduce strategy: the members of a worker group take every step together, each with a slice of the minibatch.

    slice ─▶ gradient part ─▶ sum over the group ─▶ the same step on every member

The minibatch keeps the size that the statement gives, whatever the size of the group, and all members have equal
parameters after each step. A member that dies costs its slice of one step, which the others repeat without it.

Compute times of the members are compared every few steps to find stragglers. All members reach the same verdict,
because all of them see the same figures."""

from __future__ import annotations

import statistics
import time
from collections import deque

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group, GroupError, Host
from edl.embeddings.model_tables import Keys
from edl.frameworks.adapter import Floats, GradientAdapter, Minibatches
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.allreduce.member import GroupMember
from edl.worker.strategies.allreduce.rendezvous import Rendezvous
from edl.worker.strategies.base import VoidError, add_minibatch


class AllReduce(GroupMember):
    """Synchronous data parallelism without parameter servers. For the parameters see `GroupMember`."""

    def __init__(self, adapter: GradientAdapter, rendezvous: Rendezvous, host: Host, name: str) -> None:
        super().__init__(adapter, rendezvous, host, name)
        self._network = adapter
        self._stragglers = StragglerDetector()

    @property
    def _seconds(self) -> float:
        return self._stragglers.seconds

    def warm_up(self, rows: Minibatches) -> None:
        """Compile the step on a few rows and discard its effect, so that other members don't wait for compilation."""
        state, tables, count = self._state(), self._network.tables, len(rows.labels)
        fetched = tables.fetch(tables.need(tables.keys(rows.features), 0, count, slice(0, count)), train=True)
        self._network.take_step(self._network.share(rows, fetched, 1.0), fetched, None)
        self._take(state, self.step)

    def _begin(self, group: Group, number: int) -> None:
        self._stragglers.begin(group.size)
        if group.rank:
            self._network.diverge(number << 16 | group.rank)

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        """Take the steps of these minibatches with the group.

        Raises VoidError if another group has formed meanwhile; its tasks come next.
        """
        try:
            if self._ready().size == 1:
                losses = super().train(rows, done, rates)
                self._settled = self.step
                return losses
            keys = self._network.tables.keys(rows.features)
            step_losses = []
            for number in range(rows.steps):
                step_losses.append(self._step(self._ready(), rows, keys, number, rates))
                done = add_minibatch(done, rows.minibatch(number), step_losses[-1])
                if self.step % WINDOW == 0:
                    self._compare(self._ready())
            return np.array(step_losses, np.float32)
        except GroupError:
            self.join(done)
            raise VoidError from None
        except Exception:  # error of the program: the others continue without this member
            self.leave()
            raise

    def _step(self, group: Group, rows: Minibatches, keys: Keys, number: int, rates: Rates | None) -> float:
        start, end = number * rows.size, min((number + 1) * rows.size, len(rows.labels))
        first, last = (start + (end - start) * rank // group.size for rank in (group.rank, group.rank + 1))
        tables = self._network.tables
        fetched = tables.fetch(tables.need(keys, start, end, slice(first, last)), train=True)
        began = time.monotonic()
        share = self._network.share(rows.rows(slice(first, last)), fetched, (last - first) / (end - start))
        self._stragglers.record_slice(last - first, time.monotonic() - began)
        group.sum(share.numbers)
        rate = None if rates is None else float(rates(self.step, 1)[0])
        loss = self._network.take_step(share, fetched, rate)
        self._settled, self.step = self.step, self.step + 1
        return loss

    def _compare(self, group: Group) -> None:
        """Adapt the timeout to the slowest member, and regroup without members that are far slower than the median."""
        slow = self._stragglers.compare(group.gather(self._stragglers.take_own_sums()))
        group.timeout = self._timeout(self._stragglers.slowest)
        if slow and group.rank == 0:
            self._rendezvous.leave_out([self._members[rank] for rank in slow])
            raise GroupError


WINDOW = 20  # steps between two comparisons
LEAST_SECS = 2.0  # compute time of the slowest member before members are compared
FAR = 3.0  # multiple of the median that makes a straggler


class StragglerDetector:
    """Compute times of this member and its group.

    `seconds` is the recent median time of a step on this member, `slowest` the time of a step on the slowest member.
    """

    def __init__(self) -> None:
        self._own = deque[float](maxlen=WINDOW)
        self.begin(1)

    def begin(self, size: int) -> None:
        """Start a group of `size` members and forget the figures of the previous one."""
        self.slowest = 0.0
        self._since = np.zeros(2)  # seconds and rows since the last comparison
        self._sums = np.zeros((size, 2))  # the same of all members, since the last verdict

    @property
    def seconds(self) -> float:
        return statistics.median(self._own) if self._own else 0.0

    def record_slice(self, rows: int, seconds: float) -> None:
        """Record the time of one slice."""
        self._own.append(seconds)
        self._since += seconds, rows

    def take_own_sums(self) -> Array:
        """Return seconds and rows since the last call, float64 (2,), to be exchanged with the group."""
        seconds, self._since = self._since, np.zeros(2)
        return seconds

    def compare(self, figures: Array) -> list[int]:
        """Return the ranks of the stragglers, once enough is known. `figures` has the figures of each member, (members,
        2).
        """
        self.slowest = float(figures[:, 0].max()) / WINDOW
        self._sums += figures
        seconds, rows = self._sums.T
        if seconds.max() < LEAST_SECS or not rows.all():
            return []
        per_row = seconds / rows
        self._sums[:] = 0
        return np.flatnonzero(per_row > FAR * statistics.median_low(per_row.tolist())).tolist()
