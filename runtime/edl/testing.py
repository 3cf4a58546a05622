"""Instances that die at named points, for tests of what happens then. Nothing of this is in instances of real jobs.

A test names `edl.testing:worker` and `edl.testing` in a job's `Spec`, and the point in the environment variable
`EDL_TESTING_KILL`, for example `worker-0/0 after stage 2`: the first start of worker-0 kills itself when it comes to
that point for the second time; `any` is each worker. `master/1 before durable 3` is the first master, before its third
write of the ledger. Several are separated by semicolons.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from edl.cluster import Instance

KILL = "EDL_TESTING_KILL"
_ORDER = re.compile(r"([a-z0-9-]+)/(\d+) ([a-z ]+?) (\d+)")


class Point(NamedTuple):
    """Where: before or after a call of the method, found by `owner()`."""

    owner: Callable[[], Any]
    method: str
    when: Literal["before", "after"]


def _remote() -> Any:
    from edl.worker.remote import RemoteTasks

    return RemoteTasks


def _loop() -> Any:
    from edl.worker import loop

    return loop


def _results() -> Any:
    from edl.data.results import ResultFolder

    return ResultFolder


def _ledger() -> Any:
    from edl.master.ledger import FileLedger

    return FileLedger


def _checkpointer() -> Any:
    from edl.worker.checkpoints import Checkpointer

    return Checkpointer


POINTS = {
    "in a task": Point(_remote, "progress", "before"),
    "while idle": Point(_remote, "_vain", "before"),
    "after metrics": Point(_loop, "measure", "after"),
    "after stage": Point(_results, "stage", "after"),
    "before report": Point(_remote, "report", "before"),
    "after report": Point(_remote, "report", "after"),
    "while writing a cut": Point(_checkpointer, "_write", "before"),
    "before durable": Point(_ledger, "write", "before"),
    "after durable": Point(_ledger, "write", "after"),
}


def worker(job: Path, instance: Instance) -> int:
    """A worker that may die at a point."""
    install(instance.name, instance.incarnation)
    from edl.instance.worker import main

    return main(job, instance)


def master(arguments: list[str]) -> int:
    """A master that may die at a point; masters of a job are counted by the lines that they leave in a file."""
    count = Path(arguments[0]) / "cluster" / "masters"
    count.parent.mkdir(exist_ok=True)
    with count.open("a") as file:
        file.write(f"{os.getpid()}\n")
    install("master", len(count.read_text().splitlines()))
    from edl.master.main import main

    return main(arguments)


def install(name: str, number: int) -> None:
    """Have this process die where the environment says."""
    for point, times in _orders(name, number):
        owner = point.owner()
        setattr(owner, point.method, _dying(getattr(owner, point.method), point.when, times))


def _orders(name: str, number: int) -> Iterator[tuple[Point, int]]:
    for order in filter(None, os.environ.get(KILL, "").split(";")):
        found = _ORDER.fullmatch(order.strip())
        if found is None:
            raise ValueError(f"{KILL}: {order!r} is no order")
        if found[1] in (name, "any") and int(found[2]) == number:
            yield POINTS[found[3]], int(found[4])


def _dying(method: Callable[..., Any], when: str, times: int) -> Callable[..., Any]:
    left = times

    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(*arguments, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return call


if __name__ == "__main__":
    sys.exit(master(sys.argv[1:]))
