"""The state of a group's member, handed over to others, by groups that only say what is sent."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from edl.collectives.base import Group
from edl.worker.strategies.allreduce import state_transfer
from edl.worker.strategies.allreduce.state_transfer import PIECE_SECS, broadcast_arrays

PIECE = 64
STATE = {
    "a scalar": np.array(7, np.int64),
    "nothing": np.zeros((0, 3), np.float32),
    "answers": np.array([True, False, True]),
    "turned": np.arange(12, dtype=np.float64).reshape(3, 4).T,
    "larger than a piece": np.arange(200, dtype=np.float32).reshape(2, 100),
    "bytes": np.arange(5, dtype=np.uint8),
}


class Giving:
    """The group of the member that gives. said: what it sends, and how long the others wait for that."""

    rank = 0

    def __init__(self) -> None:
        self.timeout = 60.0
        self.said: list[tuple[bytes, float]] = []

    def broadcast(self, data: bytes, source: int) -> bytes:
        assert source == self.rank
        self.said.append((data, self.timeout))
        return data

    def fill(self, array: Any, source: int) -> None:
        self.broadcast(array.tobytes(), source)


class Taking:
    """The group of another member, which hears what was sent."""

    rank, timeout = 1, 60.0

    def __init__(self, said: list[tuple[bytes, float]]) -> None:
        self.said = [data for data, _ in said]

    def broadcast(self, data: None, source: int) -> bytes:
        return self.said.pop(0)

    def fill(self, array: Any, source: int) -> None:
        array[:] = np.frombuffer(self.said.pop(0), np.uint8)


@pytest.fixture
def giving(monkeypatch: pytest.MonkeyPatch) -> Giving:
    """Has given the state, in small pieces."""
    monkeypatch.setattr(state_transfer, "PIECE", PIECE)
    group = Giving()
    broadcast_arrays(cast(Group, group), STATE, 0)
    return group


def test_others_have_the_arrays_of_one(giving: Giving) -> None:
    taking = Taking(giving.said)
    arrays = broadcast_arrays(cast(Group, taking), None, 0)
    assert not taking.said
    assert list(arrays) == list(STATE)
    for name, array in STATE.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_each_piece_has_a_time_limit_of_its_own_however_large_the_state_is(giving: Giving) -> None:
    (_, first), *pieces = giving.said
    total = sum(array.nbytes for array in STATE.values())
    assert [len(data) for data, _ in pieces] == [PIECE] * (total // PIECE) + [total % PIECE]
    assert {seconds for _, seconds in pieces} == {PIECE_SECS}
    assert (first, giving.timeout) == (60.0, 60.0)
