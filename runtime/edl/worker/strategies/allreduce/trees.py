"""Strategy of trees on several workers: the members of a group grow every round together, each from its share of rows.

    own rows ─▶ histograms ─▶ sums over the group ─▶ the same tree on every member

Ranks follow from the members' names, and a rank has always the same rows. So the trees of a group are the same however
often its members are lost and replaced; the master forms no group until all wanted workers are there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from edl.collectives.base import Group, GroupError, Host
from edl.frameworks.adapter import Floats, Minibatches, PartitionedAdapter
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.allreduce.member import PATIENCE, GroupMember
from edl.worker.strategies.allreduce.rendezvous import Rendezvous
from edl.worker.strategies.base import VoidError

READ_SECS = 600.0  # timeout while a member reads its rows and finds their intervals
LEAST_TIMEOUT = 10.0  # seconds, of a round


class TreeGroup(GroupMember):
    """Rounds of boosting with other workers. For the parameters see `GroupMember`."""

    def __init__(self, adapter: PartitionedAdapter, rendezvous: Rendezvous, host: Host, name: str) -> None:
        super().__init__(adapter, rendezvous, host, name)
        self._trees = adapter
        self._weight = 0.0  # of the rows of all members
        self._last = 0.0  # seconds of the last round in this group

    @property
    def _seconds(self) -> float:
        return self._last

    def _order_by_rank(self, members: tuple[str, ...]) -> Sequence[str]:
        return sorted(members)

    def _begin(self, group: Group, number: int) -> None:
        self.part = group.rank, group.size
        self._last = 0.0

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        """Grow a round with the group from this member's `rows`; return the mean loss of all rows.

        Raises VoidError if another group has formed meanwhile.
        """
        try:
            group = self._ready()
            self._agree(group, rows)
            began = time.monotonic()
            if rates is not None:
                rows = rows._replace(rates=rates(self.step, 1))
            losses = self._trees.train(rows, group if group.size > 1 else None)
            self._last = time.monotonic() - began
        except GroupError:
            self.join(done)
            raise VoidError from None
        except Exception:  # error of the program: the others continue without this member
            self.leave()
            raise
        self._settled, self.step = self.step, self.step + 1
        return losses

    def weight_of(self, weight: float) -> float:
        return self._weight

    def _agree(self, group: Group, rows: Minibatches) -> None:
        """Add up the weights of all members' rows, and adapt the timeout to the slowest member."""
        weight = len(rows.labels) if rows.weights is None else float(rows.weights.sum(dtype=np.float64))
        weights, seconds = group.gather(np.array([weight, self._last])).T
        self._weight = float(weights.sum())
        group.timeout = self._timeout(float(seconds.max()))

    def _timeout(self, seconds: float) -> float:
        return max(LEAST_TIMEOUT, PATIENCE * seconds) if seconds else READ_SECS
