"""All-reduce strategy: the members of a worker group take every step together, each with a slice of the minibatch.

    slice ─▶ gradient part ─▶ sum over the group ─▶ the same step on every member

The minibatch keeps the size that the statement gives, whatever the size of the group, and all members have equal
parameters after each step. A member that dies costs its slice of one step, which the others repeat without it.

When a collective fails, or other workers wait to join, a member leaves its group and requests the next one. The new
group starts from the state of its most advanced holder. A holder is at most one step ahead of the others: completing a
step proves that every member has applied the one before, so that one is settled.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group, GroupError, Host
from edl.embeddings.model_tables import Keys
from edl.frameworks.adapter import Floats, GradientAdapter, Minibatches
from edl.tasks.protocol import WorkerGroup
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.allreduce.rendezvous import Rendezvous
from edl.worker.strategies.allreduce.state_transfer import broadcast_arrays
from edl.worker.strategies.allreduce.stragglers import WINDOW, StragglerDetector
from edl.worker.strategies.base import Local, VoidError, after

LEAST_TIMEOUT = 2.0  # seconds, minimum of a group's timeout
PATIENCE = 5.0  # timeout as a multiple of the slowest member's compute time
STATE_SECS = 60.0  # timeout while a member copies or loads the full state


class AllReduce(Local):
    """Synchronous data parallelism without parameter servers.

    `host` is the address at which other members reach this worker if it is rank 0 of a group; `name` is the worker's
    name.
    """

    def __init__(self, adapter: GradientAdapter, rendezvous: Rendezvous, host: Host, name: str) -> None:
        super().__init__(adapter)
        self._network = adapter
        self._rendezvous = rendezvous
        self._host = host
        self._name = name
        self._group: Group | None = None
        self._members: tuple[str, ...] = ()  # of the present group
        self._settled = 0  # last step that all members have taken
        self._stragglers = StragglerDetector()

    def warm_up(self, rows: Minibatches) -> None:
        """Compile the step on a few rows and discard its effect, so that other members don't wait for compilation."""
        state, tables, count = self._state(), self._network.tables, len(rows.labels)
        fetched = tables.fetch(tables.need(tables.keys(rows.features), 0, count, slice(0, count)), train=True)
        self._network.take_step(self._network.share(rows, fetched, 1.0), fetched, None)
        self._take(state, self.step)

    # Groups -------------------------------------------------------------------------------------------------

    def join(self, done: Report | None = None) -> None:
        """Leave the current group, if any, and take part in the next one.

        `done` is the progress of the assigned task. Raises RefusedError or VoidError if there will be no group.
        """
        while True:
            self.leave()
            group = self._rendezvous.next_group(done)
            try:
                self._form(group)
            except GroupError:
                continue
            return

    def leave(self) -> None:
        """Close the group; pending collectives of the other members fail."""
        if self._group is not None:
            self._group.close()
            self._group = None

    def _form(self, found: WorkerGroup) -> None:
        """Connect the group and agree on parameters and log position.

        Both are taken together: no call that may fail stands between them.
        """
        rank, size = found.members.index(self._name), len(found.members)
        timeout = _timeout(self._stragglers.seconds)
        group = self._group = self._host.meet(found.address, found.number, rank, size, timeout)
        own = self.step if rank < found.holders else -1, max(self.kept, default=0), self._stragglers.seconds
        figures = group.gather(np.array(own))
        source = max(range(size), key=lambda member: (*figures[member, :2], -member))
        position = group.broadcast(self._rendezvous.position() if rank == source else None, source)
        state = None
        if found.holders < size or (figures[:, :2] != figures[source, :2]).any():
            group.timeout = STATE_SECS
            state = broadcast_arrays(group, self._state() if rank == source else None, source)
        group.sum(
            np.zeros(1, np.float32)
        )  # barrier: every member has the state, so no rollback of a holder is needed
        if state is not None and rank != source:
            self._take(state, int(figures[source, 0]))
        self._members = found.members
        self._settled = self.step
        self._stragglers.begin(size)
        if rank:
            self._network.diverge(found.number << 16 | rank)
        self._rendezvous.follow(position, found, group.store, rank)
        if state is not None:
            group.sum(np.zeros(1, np.float32))  # barrier: every member has loaded the state
        group.timeout = _timeout(figures[:, 2].max())

    def _state(self) -> dict[str, Array]:
        """Return all arrays that a new member needs, by path."""
        parts = {"weights": self._network.get_weights(), "state": self._network.get_state()}
        parts |= {str(epoch): dict(weights) for epoch, weights in self.kept.items()}
        return {f"{part}/{name}": np.asarray(array) for part in parts for name, array in parts[part].items()}

    def _take(self, state: Mapping[str, Array], step: int) -> None:
        parts: defaultdict[str, dict[str, Array]] = defaultdict(dict)
        for path, array in state.items():
            part, _, name = path.partition("/")
            parts[part][name] = array
        self._network.set_weights(parts.pop("weights"))
        self._network.set_state(parts.pop("state"))
        self.kept = {int(epoch): weights for epoch, weights in parts.items()}
        self.step = max(step, 0)

    # Steps --------------------------------------------------------------------------------------------------

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        """Take the steps of these minibatches with the group.

        Raises VoidError if another group has formed meanwhile, whose tasks come next.
        """
        try:
            if self._ready().size == 1:
                losses = super().train(rows, done, rates)
                self._settled = self.step
                return losses
            keys = self._network.tables.keys(rows.features)
            found = []
            for number in range(rows.steps):
                found.append(self._step(self._ready(), rows, keys, number, rates))
                done = after(done, rows.minibatch(number), found[-1])
                if self.step % WINDOW == 0:
                    self._compare(self._ready())
            return np.array(found, np.float32)
        except GroupError:
            self.join(done)
            raise VoidError from None
        except Exception:  # error of the program: the others continue without this member
            self.leave()
            raise

    def settled(self, mark: int) -> bool:
        return mark <= self._settled

    def flush(self) -> None:
        """Run a barrier: reaching it proves that every member has applied the previous step.

        Raises VoidError if another group has formed.
        """
        try:
            group = self._ready()
            if self._settled == self.step:
                return
            group.sum(np.zeros(1, np.float32))
        except GroupError:
            self.join()
            raise VoidError from None
        self._settled = self.step

    def keep(self, epoch: int) -> None:
        """Keep the present weights for `epoch`, besides those of other epochs.

        The members don't learn at the same time which epoch is the best.
        """
        self.kept[epoch] = self._network.get_weights()

    def keep_best(self, epoch: int) -> None:
        """Drop the kept weights of all epochs but this one."""
        self.kept = {number: weights for number, weights in self.kept.items() if number == epoch}

    def _ready(self) -> Group:
        if self._group is None or self._rendezvous.regroup:
            raise GroupError
        return self._group

    def _step(self, group: Group, rows: Minibatches, keys: Keys, number: int, rates: Rates | None) -> float:
        start, end = number * rows.size, min((number + 1) * rows.size, len(rows.labels))
        first, last = (start + (end - start) * rank // group.size for rank in (group.rank, group.rank + 1))
        tables = self._network.tables
        fetched = tables.fetch(tables.need(keys, start, end, slice(first, last)), train=True)
        began = time.monotonic()
        share = self._network.share(rows.rows(slice(first, last)), fetched, (last - first) / (end - start))
        self._stragglers.computed(last - first, time.monotonic() - began)
        group.sum(share.numbers)
        rate = None if rates is None else float(rates(self.step, 1)[0])
        loss = self._network.take_step(share, fetched, rate)
        self._settled, self.step = self.step, self.step + 1
        return loss

    def _compare(self, group: Group) -> None:
        """Adapt the timeout to the slowest member, and regroup without members that are far slower than the median."""
        slow = self._stragglers.compare(group.gather(self._stragglers.own()))
        group.timeout = _timeout(self._stragglers.slowest)
        if slow and group.rank == 0:
            self._rendezvous.leave_out([self._members[rank] for rank in slow])
            raise GroupError


def _timeout(seconds: float) -> float:
    """Return the timeout in seconds of a group whose slowest member computes for `seconds`."""
    return max(LEAST_TIMEOUT, PATIENCE * seconds)
