"""The state of a ring's member, handed over to others: over gloo, and as calls of a group."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from edl.nn.collective import Group
from edl.worker import handover
from edl.worker.handover import PIECE_SECS, handed_over
from tests.edl.nn.gloo_threads import Threads, met

STATE = {
    "a scalar": np.array(7, np.int64),
    "nothing": np.zeros((0, 3), np.float32),
    "answers": np.array([True, False, True]),
    "turned": np.arange(12, dtype=np.float64).reshape(3, 4).T,
    "larger than a piece": np.arange(200, dtype=np.float32).reshape(2, 100),
    "bytes": np.arange(5, dtype=np.uint8),
}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "PIECE", 64)


@pytest.mark.usefixtures("small_pieces")
def test_all_members_have_the_arrays_of_one() -> None:
    threads = Threads(3)
    with met(threads, 3) as groups:
        found = threads.do(lambda rank: handed_over(groups[rank], STATE if rank == 1 else None, 1), 3)
    for arrays in found:
        assert list(arrays) == list(STATE)
        for name, array in STATE.items():
            assert arrays[name].dtype == array.dtype
            np.testing.assert_array_equal(arrays[name], array)


class Calls:
    """A group that remembers what it was called for, by the member that gives."""

    rank, timeout = 0, 60.0

    def __init__(self) -> None:
        self.fills: list[tuple[int, float]] = []  # bytes, and the seconds that others waited for them
        self.heads: list[float] = []

    def broadcast(self, data: bytes, source: int) -> bytes:
        self.heads.append(self.timeout)
        return data

    def fill(self, array: Any, source: int) -> None:
        self.fills.append((array.nbytes, self.timeout))


@pytest.mark.usefixtures("small_pieces")
def test_each_piece_has_a_time_limit_of_its_own_however_large_the_state_is() -> None:
    calls = Calls()
    handed_over(cast(Group, calls), STATE, 0)
    total = sum(array.nbytes for array in STATE.values())
    *full, (last, seconds) = calls.fills
    assert full == [(64, PIECE_SECS)] * (total // 64)
    assert (last, seconds) == (total % 64, PIECE_SECS)
    assert calls.heads == [60.0]
    assert calls.timeout == 60.0
