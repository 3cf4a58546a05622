"""Groups of gloo, with threads as members here; `tests.edl.worker.strategies.test_allreduce` has processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest

from edl.collectives import shared_memory
from edl.collectives.base import GroupError
from edl.collectives.gloo import GlooGroup, GlooHost

_NUMBERS = count(1)


class Threads:
    """A host and a thread for each member. do: what each gives of a call of `task`, or its error."""

    def __init__(self, size: int) -> None:
        self.hosts = [GlooHost() for _ in range(size)]
        self._pool = ThreadPoolExecutor(size)

    def begin(self, task: Callable[[int], Any], members: int) -> list[Future[Any]]:
        return [self._pool.submit(task, rank) for rank in range(members)]

    def do(self, task: Callable[[int], Any], members: int) -> list[Any]:
        return [future.result(30) for future in self.begin(task, members)]


@contextmanager
def met(threads: Threads, size: int) -> Iterator[list[GlooGroup]]:
    """A group of a number of its own."""
    address, number = threads.hosts[0].address, next(_NUMBERS)
    groups = threads.do(lambda rank: threads.hosts[rank].meet(address, number, rank, size, 5.0), size)
    try:
        yield groups
    finally:
        for group in groups:
            group.close()


@pytest.fixture(scope="module")
def threads() -> Threads:
    return Threads(3)


@pytest.fixture(params=["in shared memory", "by gloo"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members on one machine, and members on several."""
    if request.param == "by gloo":
        monkeypatch.setattr(shared_memory, "is_possible", lambda address, size: False)


@pytest.mark.usefixtures("either_way")
def test_members_add_up_gather_and_hear_the_same(threads: Threads) -> None:
    with met(threads, 3) as groups:
        numbers = [np.arange(5, dtype=np.float32) * rank for rank in range(3)]
        threads.do(lambda rank: groups[rank].sum(numbers[rank]), 3)
        assert all(np.array_equal(found, [0, 3, 6, 9, 12]) for found in numbers)
        gathered = threads.do(lambda rank: groups[rank].gather(np.array([rank, 7.5])), 3)
        assert all(found.tolist() == [[0, 7.5], [1, 7.5], [2, 7.5]] for found in gathered)
        for data in (b"course", b""):
            heard = threads.do(
                lambda rank, data=data: groups[rank].broadcast(data if rank == 1 else None, 1), 3
            )
            assert heard == [data] * 3
        places = [np.full(3, rank) for rank in range(3)]
        threads.do(lambda rank: groups[rank].fill(places[rank], 2), 3)
        assert all(place.tolist() == [2, 2, 2] for place in places)


@pytest.mark.usefixtures("either_way")
def test_members_exchange_blocks_of_several_sizes(threads: Threads) -> None:
    sizes = [3, 0, 5]
    with met(threads, 3) as groups:

        def gathered(rank: int) -> list[list[int]]:
            block = np.full(sizes[rank], rank + 1, np.uint8)
            return [part.tolist() for part in groups[rank].all_gather(block, sizes)]

        assert threads.do(gathered, 3) == [[[1, 1, 1], [], [3, 3, 3, 3, 3]]] * 3

        def exchanged(rank: int) -> list[list[int]]:
            blocks = np.concatenate(
                [np.full(size, 10 * rank + to, np.uint8) for to, size in enumerate(sizes)]
            )
            return [part.tolist() for part in groups[rank].all_to_all(blocks, sizes)]

        assert threads.do(exchanged, 3) == [
            [[0] * 3, [10] * 3, [20] * 3],
            [[], [], []],
            [[2] * 5, [12] * 5, [22] * 5],
        ]


def test_one_member_is_a_group(threads: Threads) -> None:
    with met(threads, 1) as [group]:
        number = np.ones(1, np.float32)
        group.sum(number)
        assert number == 1
        assert group.broadcast(b"course", 0) == b"course"


@pytest.mark.usefixtures("either_way")
def test_who_leaves_ends_the_calls_of_the_others_and_what_they_wait_for(threads: Threads) -> None:
    with met(threads, 3) as groups:

        def call(rank: int) -> None:
            try:
                groups[rank].sum(np.ones(1, np.float32))
            finally:
                groups[rank].close()

        calls = threads.begin(call, 2)
        waiting = threads.begin(lambda _: groups[2].store.get("log/0"), 1)
        groups[2].close()
        for future in [*calls, *waiting]:
            with pytest.raises(GroupError):
                future.result(30)


def test_what_is_too_large_for_shared_memory_is_added_up_by_gloo(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "MOST_BYTES", 64)
    with met(threads, 2) as groups:
        for size in (8, 9, 16, 17, 2):
            numbers = [np.full(size, rank + 0.5) for rank in range(2)]
            threads.do(lambda rank, numbers=numbers: groups[rank].sum(numbers[rank]), 2)
            assert all((found == 2).all() for found in numbers)


def test_a_later_group_has_nothing_of_the_store_of_an_earlier_one(threads: Threads) -> None:
    with met(threads, 2) as groups:
        groups[0].store.set("log/0", b"old")
        assert groups[1].store.get("log/0") == b"old"
    with met(threads, 2) as groups:
        groups[0].store.set("log/0", b"new")
        assert groups[1].store.get("log/0") == b"new"


def test_members_that_do_not_come_are_waited_for_until_the_timeout(threads: Threads) -> None:
    with pytest.raises(GroupError):
        threads.hosts[0].meet(threads.hosts[0].address, next(_NUMBERS), 0, 2, 0.05)
