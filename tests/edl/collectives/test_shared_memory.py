"""Sums in shared memory, with threads as members here; `tests.edl.worker.strategies.test_allreduce` has processes."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.arrays import Array
from edl.collectives import shared_memory
from edl.collectives.base import GroupError
from edl.collectives.shared_memory import SharedSums
from edl.errors import JobError

MEMBERS = 3
PATIENT, SHORT = 30.0, 0.2  # seconds
OPEN = Path("/proc/self/fd")


class Group:
    """Members that have met, and a thread for each."""

    def __init__(self, size: int = MEMBERS) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size)
        self._meeting = threading.Barrier(size)
        self._given: list[Array] = [np.empty(0)] * size
        self.members: list[SharedSums] = self.do(self._meet)

    def begin(self, task: Callable[[int], Any]) -> list[Future[Any]]:
        return [self._pool.submit(task, rank) for rank in range(self.size)]

    def do(self, task: Callable[[int], Any]) -> list[Any]:
        return [future.result(PATIENT) for future in self.begin(task)]

    def sum(self, arrays: list[Array]) -> list[Array]:
        self.do(lambda rank: self.members[rank].sum(arrays[rank], PATIENT))
        return arrays

    def close(self) -> None:
        for member in self.members:
            member.close()

    def _meet(self, rank: int) -> SharedSums:
        def gather(array: Array) -> Array:
            self._given[rank] = array
            self._meeting.wait(PATIENT)
            return np.stack(self._given)

        return SharedSums(gather, rank, self.size, PATIENT)


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group()
    yield made
    made.close()


def drawn(shape: tuple[int, ...], seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape, np.float32) for _ in range(MEMBERS)]


def test_all_members_have_the_same_bits(group: Group) -> None:
    for seed, shape in enumerate([(1,), (7,), (40, 50), (3,), (100_000,), (2, 2, 2)]):
        parts = drawn(shape, seed)
        expected = parts[0] + parts[1] + parts[2]
        assert all(np.array_equal(found, expected) for found in group.sum(parts))


def test_arrays_of_any_numbers_are_added_up(group: Group) -> None:
    assert [found.tolist() for found in group.sum([np.array([rank, 2**40]) for rank in range(3)])] == [
        [3, 3 * 2**40]
    ] * 3
    assert [found.tolist() for found in group.sum([np.zeros(0) for _ in range(3)])] == [[]] * 3


def test_a_member_that_is_ahead_overwrites_nothing_that_others_still_read(group: Group) -> None:
    sums = 300

    def add(rank: int) -> list[float]:
        found = []
        for number in range(sums):
            array = np.full(5000, float(number * (rank + 1)), np.float32)
            group.members[rank].sum(array, PATIENT)
            found.append(array)
        return [float(array.min()) for array in found if (array == array[0]).all()]

    assert group.do(add) == [[6.0 * number for number in range(sums)]] * MEMBERS


def test_who_leaves_ends_the_sums_of_the_others(group: Group) -> None:
    def call(rank: int) -> None:
        try:
            if rank < 2:
                group.members[rank].sum(np.ones(1), PATIENT)
        finally:
            group.members[rank].close()

    for waiting in group.begin(call)[:2]:
        with pytest.raises(GroupError, match=r"it is gone|Broken pipe|reset"):
            waiting.result(PATIENT)


@pytest.mark.soak
def test_who_does_not_come_is_waited_for_as_long_as_is_said(group: Group) -> None:
    with pytest.raises(GroupError, match="timed out"):
        group.members[0].sum(np.ones(1), SHORT)


@pytest.mark.soak
def test_a_group_in_which_a_member_was_late_is_left(group: Group) -> None:
    with pytest.raises(GroupError):
        group.members[0].sum(np.ones(1), SHORT)
    with pytest.raises(GroupError):
        group.members[1].sum(np.ones(1), PATIENT)


@pytest.mark.soak
def test_a_member_that_does_not_come_to_the_meeting_is_not_waited_for_longer() -> None:
    with pytest.raises(GroupError, match="timed out"):
        SharedSums(lambda own: np.stack([own, own]), 0, 2, SHORT)


def test_a_system_without_memory_ends_the_job_and_not_the_group_alone(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shared_memory.os, "posix_fallocate", full)
    with pytest.raises(JobError, match="memory to share gradients in: No space left"):
        group.members[0].sum(np.ones(1), SHORT)


def test_nothing_is_left_open() -> None:
    before = len(list(OPEN.iterdir()))
    made = Group(2)
    made.do(lambda rank: made.members[rank].sum(np.ones(10), PATIENT))
    made.close()
    assert len(list(OPEN.iterdir())) <= before


def test_processes_of_other_users_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory.os, "getuid", lambda: 12345)
    with pytest.raises(GroupError, match="another user's process"):
        Group(2)


@pytest.mark.parametrize(
    ("address", "size", "expected"),
    [
        ("127.0.0.1:80", 2, True),
        ("[::1]:80", 8, True),
        ("10.0.0.7:80", 2, False),
        ("a-host:80", 2, False),
        ("127.0.0.1:80", 1, False),
        ("127.0.0.1:80", 9, False),
    ],
)
def test_few_members_on_one_machine_can_share_memory(address: str, size: int, expected: bool) -> None:
    assert shared_memory.is_possible(address, size) == expected
