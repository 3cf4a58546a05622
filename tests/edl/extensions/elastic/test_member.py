"""Membership of a loop's worker where there is no group."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from edl.collectives.base import GroupError
from edl.extensions.elastic.member import ScriptMember
from edl.tasks.protocol import WorkerGroup
from edl.worker.strategies.base import VoidError


class LastGroup:
    """Group whose other members have left."""

    rank, size, closed = 2, 3, False

    def sum(self, array: np.ndarray) -> None:
        raise GroupError("they have left")

    def close(self) -> None:
        self.closed = True


class Ended:
    """Rendezvous of a training that has ended."""

    regroup = False

    def next_group(self, done: object = None) -> WorkerGroup:
        raise VoidError


def test_a_worker_without_a_further_group_is_in_no_world() -> None:
    member = ScriptMember(cast(Any, None), cast(Any, Ended()), cast(Any, None), "worker-0", 0)
    assert member.world is None
    member._group, member._members, member._of_members = (
        cast(Any, LastGroup()),
        ("a", "b", "worker-0"),
        (0, 0, 0),
    )
    assert member.world is not None
    assert member.world.members[member.world.rank] == "worker-0"
    member.step = 1
    with pytest.raises(VoidError):
        member.flush()
    assert member.world is None, "rank 0 of the members of before would be another worker"
