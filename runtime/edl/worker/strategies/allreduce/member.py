"""Membership of a strategy with the parameters on all workers, in groups that the master forms one after another.

    join ─▶ meet ─▶ agree on parameters and position ─▶ steps … ─▶ a lost member, or a joining one ─▶ join

When a collective fails, or other workers wait to join, a member leaves its group and requests the next one. The new
group starts from the state of its most advanced holder. A holder is at most one step ahead of the others: completing a
step proves that every member has applied the one before, so that one is settled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group, GroupError, Host
from edl.frameworks import Minibatches
from edl.frameworks.adapter import Adapter
from edl.reachability import Peer, probe
from edl.tasks.protocol import WorkerGroup
from edl.tasks.task import Report
from edl.worker.strategies.allreduce.rendezvous import Rendezvous
from edl.worker.strategies.allreduce.state_transfer import broadcast_arrays
from edl.worker.strategies.base import Local, VoidError

LEAST_TIMEOUT = 2.0  # seconds, minimum of a group's timeout
PATIENCE = 5.0  # timeout as a multiple of the slowest member's compute time
STATE_SECS = 60.0  # timeout while a member copies or loads the full state


class GroupMember(Local, ABC):
    """Strategy of a member of groups.

    `host` is the address at which other members reach this worker if it is the first of a group; `name` is the
    worker's name.
    """

    def __init__(self, adapter: Adapter, rendezvous: Rendezvous, host: Host, name: str) -> None:
        super().__init__(adapter)
        self._rendezvous = rendezvous
        self._host = host
        self._name = name
        self._group: Group | None = None
        self._members: tuple[str, ...] = ()  # of the present group
        self._settled = 0  # last step that all members have taken
        self._others = Peer("the other members of its group", "")

    # Differences ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _seconds(self) -> float:
        """Seconds that this member computes between two collectives, as far as known."""

    def warm_up(self, rows: Minibatches) -> None:
        """Prepare the step on a few rows, so that other members don't wait for that."""

    def _order_by_rank(self, members: tuple[str, ...]) -> Sequence[str]:
        """Return the members in the order of their ranks in collectives."""
        return members

    def _begin(self, group: Group, number: int) -> None:
        """Begin in a group of members with equal parameters."""

    # Groups ---------------------------------------------------------------------------------------------------

    def join(self, done: Report | None = None) -> None:
        """Leave the current group, if any, and take part in the next one.

        `done` is the progress of the assigned task. Raises RefusedError or VoidError if there will be no group.
        """
        while True:
            self.leave()
            group = self._rendezvous.next_group(done)
            try:
                self._form(group)
            except GroupError as error:
                self._others.on_failure(partial(unreachable_reason, group, self._name, error))
                continue
            self._others.on_answer()
            return

    def leave(self) -> None:
        """Close the group; pending collectives of the other members fail."""
        if self._group is not None:
            self._group.close()
            self._group = None

    def _form(self, worker_group: WorkerGroup) -> None:
        """Connect the group and agree on parameters and log position.

        Both are taken together: no call that may fail stands between them.
        """
        ranked = self._order_by_rank(worker_group.members)
        rank, size = ranked.index(self._name), len(ranked)
        places = [worker_group.members.index(name) for name in ranked]  # the holders come first
        timeout = self._timeout(self._seconds)
        group = self._group = self._host.meet(worker_group.address, worker_group.number, rank, size, timeout)
        holds = places[rank] < worker_group.holders
        facts = self.step if holds else -1, max(self.kept, default=0), self._seconds
        figures = group.gather(np.array(facts))
        source = max(range(size), key=lambda member: (*figures[member, :2], -places[member]))
        position = group.broadcast(self._rendezvous.position() if rank == source else None, source)
        state = None
        if worker_group.holders < size or (figures[:, :2] != figures[source, :2]).any():
            group.timeout = STATE_SECS
            state = broadcast_arrays(group, self._state() if rank == source else None, source)
        # Barrier: every member has the state, so no rollback of a holder is needed.
        group.sum(np.zeros(1, np.float32))
        if state is not None and rank != source:
            self._take(state, int(figures[source, 0]))
        self._members = worker_group.members
        self._settled = self.step
        self._begin(group, worker_group.number)
        self._rendezvous.follow(position, worker_group, group.store, places[rank])
        if state is not None:
            group.sum(np.zeros(1, np.float32))  # barrier: every member has loaded the state
        group.timeout = self._timeout(figures[:, 2].max())

    def _state(self) -> dict[str, Array]:
        """Return all arrays that a new member needs, by path."""
        weights, state = self._adapter.cut()()
        parts = {"weights": weights, "state": state}
        parts |= {str(epoch): dict(weights) for epoch, weights in self.kept.items()}
        return {f"{part}/{name}": np.asarray(array) for part in parts for name, array in parts[part].items()}

    def _take(self, state: Mapping[str, Array], step: int) -> None:
        parts: defaultdict[str, dict[str, Array]] = defaultdict(dict)
        for path, array in state.items():
            part, _, name = path.partition("/")
            parts[part][name] = array
        self._adapter.set_weights(parts.pop("weights"))
        self._adapter.set_state(parts.pop("state"))
        self.kept = {int(epoch): weights for epoch, weights in parts.items()}
        self.step = max(step, 0)

    # Steps ----------------------------------------------------------------------------------------------------

    def is_durable(self, mark: int) -> bool:
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
        """Keep the present weights for `epoch`, besides the weights of other epochs.

        The members don't learn at the same time which epoch is the best.
        """
        if epoch not in self.kept:
            self.kept[epoch] = self._weights_of(epoch) or self._adapter.keep()

    def postpone(self, epoch: int) -> None:
        if self.measures:
            self.keep(epoch)

    def drop(self, epoch: int) -> None:
        """Drop nothing: the other members do not know yet that the epoch is concluded."""

    def keep_best(self, best: int, epoch: int) -> None:
        """Drop the kept weights of all epochs up to the concluded `epoch`, except the best one's."""
        kept = self.kept.items()
        self.kept = {number: weights for number, weights in kept if number == best or number > epoch}

    def _ready(self) -> Group:
        if self._group is None or self._rendezvous.regroup:
            raise GroupError
        return self._group

    def _timeout(self, seconds: float) -> float:
        """Return the timeout in seconds of a group; its slowest member computes for `seconds`."""
        return max(LEAST_TIMEOUT, PATIENCE * seconds)


def unreachable_reason(
    group: WorkerGroup, name: str, error: GroupError, find: Callable[[str], str] = probe
) -> str:
    """Describe the members that `name` cannot reach; `error` ended its last attempt to form the group."""
    others = zip(group.members, group.addresses, strict=False)  # a stored group may have no addresses
    by_peer = {f"{other} at {address}": find(address) for other, address in others if other != name}
    if unreached := [f"{other}: {why}" for other, why in by_peer.items() if why]:
        return "; ".join(unreached)
    return f"{', '.join(by_peer) or 'they'} accept connections, and the group does not form: {error}"
