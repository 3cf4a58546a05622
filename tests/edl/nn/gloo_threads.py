"""Groups of gloo whose members are threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

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
def met(threads: Threads, size: int, number: int = 1) -> Iterator[list[Group]]:
    address = threads.hosts[0].address
    groups = threads.do(lambda rank: threads.hosts[rank].meet(address, number, rank, size, 5.0), size)
    try:
        yield groups
    finally:
        for group in groups:
            group.close()
