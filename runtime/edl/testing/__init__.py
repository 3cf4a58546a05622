"""Fault injection for tests: instances that die at named points. Real jobs load nothing of this.

A test names `edl.testing:worker`, `edl.testing:server` and `edl.testing` in a job's `Spec`, and the point in the
environment variable `EDL_TESTING_KILL`, for example `worker-0/0 after stage 2`: the first start of worker-0 kills
itself when it reaches that point for the second time; `any` is each worker. `master/1 before durable 3` is the first
master, before its third write of durable state. Several are separated by semicolons.

`EDL_TESTING_OUTAGE` has orders of the same kind for masters and servers, at which the supervisor and its whole job die.
`EDL_TESTING_SEVER` has them for servers. Their connections are closed there: their response to the call is lost
(`edl.testing.proxy`).

`EDL_TESTING_BACKOFF` is a number of seconds that each master but the first waits before it begins, as the Job
controller of Kubernetes waits before it replaces one.

`EDL_TESTING_NO_ROOM` names instances that the cluster refuses to start, such as `ps-1/1`, separated by semicolons.

With a folder in `EDL_TESTING_MOMENTS` they also record the times of events (`Moment`), in a file for each start.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from edl.cluster import Instance, NoRoomError
from edl.cluster.local.instance_process import entry
from edl.jobs.cluster_folder import SERVER

KILL = "EDL_TESTING_KILL"
OUTAGE = "EDL_TESTING_OUTAGE"
SEVER = "EDL_TESTING_SEVER"
BACKOFF = "EDL_TESTING_BACKOFF"
NO_ROOM = "EDL_TESTING_NO_ROOM"
MOMENTS = "EDL_TESTING_MOMENTS"
_ORDER = re.compile(r"([a-z0-9-]+)/(\d+) ([a-z ]+?) (\d+)")


class Point(NamedTuple):
    """Point of a fault: before or after a call of the method of `owner()`. `counts` selects calls by arguments."""

    owner: Callable[[], Any]
    method: str
    when: Literal["before", "after"]
    counts: Callable[..., bool] = lambda *arguments: True


def _remote() -> Any:
    from edl.worker.master_client import RemoteTasks

    return RemoteTasks


def _groups() -> Any:
    from edl.worker.strategies.allreduce.task_source import GroupTasks

    return GroupTasks


def _loop() -> Any:
    from edl.worker import loop

    return loop


def _results() -> Any:
    from edl.data.results import ResultFolder

    return ResultFolder


def _state_store() -> Any:
    from edl.master.state_store import FileStateStore

    return FileStateStore


def _checkpointer() -> Any:
    from edl.worker.checkpointing import Checkpointer

    return Checkpointer


def _group() -> Any:
    from edl.collectives.gloo import GlooGroup

    return GlooGroup


def _network() -> Any:
    from edl.frameworks.trees.xgboost_network import XGBoostNetwork

    return XGBoostNetwork


def _calls() -> Any:
    from edl.worker.strategies.ps_client import ParameterServers

    return ParameterServers


def _second_push(servers: Any, server: int, request: Any) -> bool:
    return server == 1 and type(request.header).__name__ == "Push"


def _server() -> Any:
    from edl.ps.server import Server

    return Server


def _shards() -> Any:
    from edl.ps.checkpoint import shard_file

    return shard_file


def _manifests() -> Any:
    from edl.ps.checkpoint import manifests

    return manifests


POINTS = {
    "in a task": Point(_remote, "progress", "before"),
    "while idle": Point(_remote, "_unavailable", "before"),
    "after metrics": Point(_loop, "measure", "after"),
    "after stage": Point(_results, "stage", "after"),
    "before report": Point(_remote, "report", "before"),
    "after report": Point(_remote, "report", "after"),
    "while writing a checkpoint": Point(_checkpointer, "_write", "before"),
    "in an exchange": Point(_group, "all_to_all", "before"),
    "in a collective call": Point(_network, "call", "before"),
    "between two pushes": Point(_calls, "send", "before", _second_push),
    "in a push": Point(_server, "_push", "before"),
    "after a push": Point(_server, "_push", "after"),
    "in a round": Point(_server, "_commit", "before"),
    "while writing a shard": Point(_shards, "write", "before"),
    "while keeping a copy": Point(_server, "_keep", "before"),
    "before the manifest": Point(_manifests, "write_manifest", "before"),
    "after the manifest": Point(_manifests, "write_manifest", "after"),
    "before durable": Point(_state_store, "write", "before"),
    "after durable": Point(_state_store, "write", "after"),
}


class Moment(msgspec.Struct, frozen=True):
    """Event in an instance, with its time.

    `second` is of the monotonic clock, which all processes of a machine share. Events: batch, `rows` of the open task
    are done; report, a task is done; acknowledged, the master of `epoch` counts another report as durable; group, a
    group has formed, and all members have the parameters; killed, this process kills itself.
    """

    second: float
    what: Literal["batch", "report", "acknowledged", "group", "killed"]
    rows: int = 0
    epoch: int = 0


Note = Callable[[Moment], object]


def read_moments(path: Path) -> list[Moment]:
    """Read the events of one start of an instance, in order."""
    return [msgspec.json.decode(line, type=Moment) for line in path.read_bytes().splitlines()]


def worker(job: Path, instance: Instance) -> int:
    """Run a worker that may die at a point."""
    install(instance.name, instance.incarnation)
    from edl.entrypoints.worker import main

    return main(job, instance)


def server(job: Path, instance: Instance) -> int:
    """Run a parameter server that may die at a point, or lose its connections there."""
    install(instance.name, instance.incarnation)
    orders = [*_orders(SEVER, instance.name, instance.incarnation)]
    if orders:
        from edl.testing.proxy import interpose

        sever = interpose()
        for point, times in orders:
            _call_at_point(point, times, sever)
    return entry(SERVER)(job, instance) or 0


def master(arguments: list[str]) -> int:
    """Run a master that may die at a point. Masters of a job are counted by lines in a file."""
    count = Path(arguments[0]) / "cluster" / "masters"
    count.parent.mkdir(exist_ok=True)
    with count.open("a") as file:
        file.write(f"{os.getpid()}\n")
    number = len(count.read_text().splitlines())
    if number > 1:
        time.sleep(float(os.environ.get(BACKOFF, 0)))
    install("master", number)
    _refuse(os.environ.get(NO_ROOM, "").split(";"))
    from edl.master.main import main

    return main(arguments)


def _refuse(names: list[str]) -> None:
    """Make the cluster refuse to start these instances."""
    from edl.cluster.local.cluster import ProcessCluster

    start = ProcessCluster.start

    def refusing(self: ProcessCluster, instance: Instance) -> None:
        if f"{instance.name}/{instance.incarnation}" in names:
            raise NoRoomError(f"there is no room for {instance.name}")
        start(self, instance)

    setattr(ProcessCluster, "start", refusing)  # noqa: B010


def install(name: str, number: int) -> None:
    """Install the faults and the recording of events that the environment names for this process."""
    note = _notes(name, number)
    if note is not _nowhere and name != "master":
        _watch(note)

    def die() -> None:
        note(Moment(time.monotonic(), "killed"))
        os.kill(os.getpid(), signal.SIGKILL)

    def all_die() -> None:
        os.kill(os.getppid(), signal.SIGKILL)
        die()

    for variable, happens in ((KILL, die), (OUTAGE, all_die)):
        for point, times in _orders(variable, name, number):
            _call_at_point(point, times, happens)


def _orders(variable: str, name: str, number: int) -> Iterator[tuple[Point, int]]:
    for order in filter(None, os.environ.get(variable, "").split(";")):
        match = _ORDER.fullmatch(order.strip())
        if match is None:
            raise ValueError(f"{variable}: {order!r} is no order")
        if match[1] in (name, "any") and int(match[2]) == number:
            yield POINTS[match[3]], int(match[4])


def _call_at_point(point: Point, times: int, happens: Callable[[], object]) -> None:
    """Call `happens` when the point is reached for the `times`-th time."""
    owner, left = point.owner(), times
    method = getattr(owner, point.method)

    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        counted = point.counts(*arguments)
        left -= counted
        due = counted and left == 0
        if due and point.when == "before":
            happens()
        result = method(*arguments, **named)
        if due and point.when == "after":
            happens()
        return result

    setattr(owner, point.method, call)


def _nowhere(moment: Moment) -> None:
    """Ignore the event."""


def _notes(name: str, number: int) -> Note:
    """Return the recorder of this start's events; each is in the file when it returns."""
    folder = os.environ.get(MOMENTS)
    if not folder:
        return _nowhere
    path = Path(folder) / f"{name}.{number}"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return lambda moment: os.write(file, msgspec.json.encode(moment) + b"\n")


def _watch(note: Note) -> None:
    """Record a worker's events at the calls by which it reports them."""
    from edl.tasks.protocol import Answer
    from edl.tasks.task import Report
    from edl.worker.outbox import Outbox

    tasks, groups = _remote(), _groups()
    progress, report, answered, follow = tasks.progress, tasks.report, Outbox.on_answer, groups.follow

    def noted_progress(self: Any, done: Report) -> None:
        note(Moment(time.monotonic(), "batch", done.rows))
        progress(self, done)

    def noted_report(self: Any, done: Report) -> None:
        note(Moment(time.monotonic(), "report", done.rows))
        report(self, done)

    def noted_answer(self: Outbox, answer: Answer) -> None:
        before = self.seen_upto
        answered(self, answer)
        if self.seen_upto > before:
            note(Moment(time.monotonic(), "acknowledged", epoch=answer.master_epoch))

    def noted_group(self: Any, *formed: Any) -> None:
        follow(self, *formed)
        note(Moment(time.monotonic(), "group"))

    tasks.progress, tasks.report, groups.follow = noted_progress, noted_report, noted_group
    setattr(Outbox, "on_answer", noted_answer)  # noqa: B010
