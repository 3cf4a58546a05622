"""Groups of gloo, whose members are threads here; `tests.edl.worker.test_allreduce` has processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from edl.nn.collective import RingError
from edl.nn.gloo import Group, Host


class Threads:
    """A host and a thread for each member. do: what each gives of a call of `task`, or its error."""

    def __init__(self, size: int) -> None:
        self.hosts = [Host() for _ in range(size)]
        self._pool = ThreadPoolExecutor(size)

    def begin(self, task: Callable[[int], Any], members: int) -> list[Future[Any]]:
        return [self._pool.submit(task, rank) for rank in range(members)]

    def do(self, task: Callable[[int], Any], members: int) -> list[Any]:
        return [future.result(30) for future in self.begin(task, members)]


@contextmanager
def met(threads: Threads, size: int, number: int = 1, timeout: float = 5.0) -> Iterator[list[Group]]:
    address = threads.hosts[0].address
    groups = threads.do(lambda rank: threads.hosts[rank].meet(address, number, rank, size, timeout), size)
    try:
        yield groups
    finally:
        for group in groups:
            group.close()


@pytest.fixture(scope="module")
def threads() -> Threads:
    return Threads(3)


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


@pytest.mark.parametrize("direct", [0, 1 << 20], ids=["from member to member", "to all others at once"])
def test_a_sum_has_the_same_bits_everywhere(
    threads: Threads, direct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edl.nn.gloo.DIRECT", direct)
    numbers = np.random.default_rng(1).standard_normal((3, 1_000)).astype(np.float32)
    total = numbers.astype(np.float64).sum(axis=0)
    with met(threads, 3, number=7 + (direct > 0)) as groups:
        for _ in range(2):
            found = numbers.copy()
            threads.do(lambda rank, found=found: groups[rank].sum(found[rank]), 3)
            assert np.allclose(found[0], total, atol=1e-6)
            assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_one_member_is_a_group(threads: Threads) -> None:
    with met(threads, 1, number=2) as [group]:
        number = np.ones(1, np.float32)
        group.sum(number)
        assert number == 1
        assert group.broadcast(b"course", 0) == b"course"


def test_who_leaves_ends_the_calls_of_the_others_and_what_they_wait_for(threads: Threads) -> None:
    with met(threads, 3, number=3) as groups:

        def call(rank: int) -> None:
            try:
                groups[rank].sum(np.ones(1, np.float32))
            finally:
                groups[rank].close()

        calls = threads.begin(call, 2)
        waiting = threads.begin(lambda _: groups[2].store.get("log/0"), 1)
        groups[2].close()
        for future in [*calls, *waiting]:
            with pytest.raises(RingError):
                future.result(30)


def test_a_later_ring_has_nothing_of_the_store_of_an_earlier_one(threads: Threads) -> None:
    with met(threads, 2, number=4) as groups:
        groups[0].store.set("log/0", b"old")
        assert groups[1].store.get("log/0") == b"old"
    with met(threads, 2, number=5) as groups:
        groups[0].store.set("log/0", b"new")
        assert groups[1].store.get("log/0") == b"new"


def test_members_that_do_not_come_are_waited_for_until_the_timeout(threads: Threads) -> None:
    with pytest.raises(RingError):
        threads.hosts[0].meet(threads.hosts[0].address, 6, 0, 2, 0.05)


@pytest.mark.parametrize("dead", [1, 2])
def test_who_fails_in_a_sum_and_leaves_lets_nobody_wait_who_is_a_sum_ahead(
    threads: Threads, dead: int
) -> None:
    """One dies when its numbers have come to member 0 only, which then waits for the third in the next sum."""
    with met(threads, 3, number=8 + dead, timeout=60.0) as groups:

        def dies() -> None:
            gloo, number = groups[dead]._gloo, torch.ones(1)
            calls = [gloo.recv([torch.empty(1)], 0, 0), gloo.send([number], 0, 0)]
            while calls:
                calls.pop().wait()

        def add_up(rank: int) -> None:
            if rank == dead:
                dies()
                groups[dead].close()
                return
            try:
                for _ in range(2):
                    groups[rank].sum(np.ones(1, np.float32))
            except RingError:
                groups[rank].close()  # while the error is there, as in a worker that seeks the next ring
                left.wait(30)
                raise

        left = threading.Event()
        calls = threads.begin(add_up, 3)
        calls[dead].result(20)
        others = {0, 1, 2} - {dead}
        closed = wait_for(lambda: all(groups[rank].store.closed for rank in others))
        left.set()
        assert closed
        for rank in others:
            with pytest.raises(RingError):
                calls[rank].result(20)


def wait_for(found: Callable[[], bool]) -> bool:
    """Within less time than members have for each other."""
    end = time.monotonic() + 20
    while not found() and time.monotonic() < end:
        time.sleep(0.01)
    return found()
