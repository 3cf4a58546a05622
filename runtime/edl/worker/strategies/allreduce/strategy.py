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
from edl.frameworks.adapter import Floats, GradientAdapter, Minibatches
from edl.frameworks.exchange import Slice
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.allreduce.member import GroupMember
from edl.worker.strategies.allreduce.rendezvous import Rendezvous
from edl.worker.strategies.base import VoidError
from edl.worker.strategies.call_progress import CallProgress


class AllReduce(GroupMember):
    """Synchronous data parallelism without parameter servers. For the parameters see `GroupMember`."""

    _call: CallProgress
    _group_of_step: Group
    _slice_rows: int
    _began: float  # of the computation of a slice

    def __init__(self, adapter: GradientAdapter, rendezvous: Rendezvous, host: Host, name: str) -> None:
        super().__init__(adapter, rendezvous, host, name)
        self._network = adapter
        self._stragglers = StragglerDetector()

    @property
    def _seconds(self) -> float:
        return self._stragglers.seconds

    def warm_up(self, rows: Minibatches) -> None:
        """Compile the step on a few rows and discard its effect, so that other members don't wait for compilation."""
        state = self._state()
        self._network.reduce_steps(rows._replace(size=len(rows.labels)), _OneStep(self._network, rows))
        self._take(state, self.step)

    def _begin(self, group: Group, number: int) -> None:
        self._stragglers.begin(group.size)
        if group.rank:
            self._network.diverge(number << 16 | group.rank)

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        """Take the steps of these minibatches with the group.

        Raises VoidError if another group has formed meanwhile; its tasks come next.
        """
        call: CallProgress | None = None
        try:
            if self._ready().size == 1:
                losses = super().train(rows, done, rates)
                self._settled = self.step
                return losses
            self._call = call = CallProgress(self._network.tables, rows, done, rates)
            if not call.is_complete:
                self._network.reduce_steps(rows, self)
            return call.losses
        except GroupError:
            self.join(done if call is None else call.done)
            raise VoidError from None
        except Exception:  # error of the program: the others continue without this member
            self.leave()
            raise

    def begin(self, number: int) -> Slice:
        self._group_of_step, call = self._ready(), self._call
        first, last = call.slice(self._group_of_step.rank, self._group_of_step.size)
        fetched = call.fetch(first, last)
        self._slice_rows, self._began = last - first, time.monotonic()
        return Slice(first, last, (last - first) / call.count_rows(), fetched)

    def sum(self, part: Floats) -> float | None:
        self._stragglers.record_slice(self._slice_rows, time.monotonic() - self._began)
        self._group_of_step.sum(part)
        rates = self._call.rates
        return None if rates is None else float(rates(self.step, 1)[0])

    def end(self, loss: float) -> Slice | None:
        self._settled, self.step = self.step, self.step + 1
        self._call.add(loss)
        if self.step % WINDOW == 0:
            self._compare(self._ready())
        return None if self._call.is_complete else self.begin(self._call.number)

    def _compare(self, group: Group) -> None:
        """Adapt the timeout to the slowest member, and regroup without members that are far slower than the median."""
        slow = self._stragglers.compare(group.gather(self._stragglers.take_own_sums()))
        group.timeout = self._timeout(self._stragglers.slowest)
        if slow and group.rank == 0:
            self._rendezvous.leave_out([self._members[rank] for rank in slow])
            raise GroupError


class _OneStep:
    """Reduction of one minibatch, without other members."""

    def __init__(self, adapter: GradientAdapter, rows: Minibatches) -> None:
        tables, count = adapter.tables, len(rows.labels)
        need = tables.need(tables.keys(rows.features), 0, count)
        self._slice = Slice(0, count, 1.0, tables.fetch(need, train=True))

    def begin(self, number: int) -> Slice:
        return self._slice

    def sum(self, part: Floats) -> float | None:
        return None

    def end(self, loss: float) -> Slice | None:
        return None


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
