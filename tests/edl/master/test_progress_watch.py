"""Workers that hang while their heartbeats come, and those that only wait."""

from __future__ import annotations

import math

import pytest

from edl.master.tasks.progress_watch import FACTOR, FIRST_SECS, LEAST_SECS, Hanging, ProgressWatch
from edl.tasks.protocol import JoinRequest, Request, TaskUpdate
from edl.tasks.task import Report, Task, TaskType

TASK = Task(3, "predict", 0, 1000, attempt=7)


def request(
    name: str = "worker-0", *, rows: int | None = None, task: Task = TASK, **parts: object
) -> Request:
    """Of a worker that has done so many rows of the task; None: it has none."""
    held = () if rows is None else (Report(task, rows),)
    return Request(name, 0, held=held, **parts)  # type: ignore[arg-type]


class Watched:
    """A watch, and heartbeats every 3 seconds."""

    def __init__(self, timeout: float = 0.0, *, measured: bool = True) -> None:
        self.watch = ProgressWatch(timeout, measured=measured)
        self.now = 0.0

    def beat(self, *requests: Request, until: float, follows: bool = False) -> Hanging | None:
        """Heartbeats until a worker hangs, or until then."""
        while self.now < until:
            for each in requests:
                self.watch.observe(each, self.now, follows=follows)
            if (found := self.watch.take_hanging(self.now, lambda name, incarnation: True)) is not None:
                return found
            self.now += 3.0
        return None


def test_a_worker_without_progress_hangs_after_the_timeout() -> None:
    watched = Watched(60.0)
    watched.beat(request(rows=10), until=3.0)
    assert watched.beat(request(rows=20), until=1000.0) == Hanging("worker-0", 0, 63.0, TASK)
    assert watched.now == 66.0


def test_without_a_setting_the_limit_follows_from_the_progress_so_far() -> None:
    watched = Watched()
    assert watched.watch.limit("predict") == FIRST_SECS
    watched.beat(request(rows=10), until=3.0)
    watched.beat(request(rows=20), until=6.0)
    assert watched.watch.limit("predict") == LEAST_SECS
    watched.beat(request(rows=30), until=60.0)
    watched.beat(request(rows=40), until=63.0)
    assert watched.watch.limit("predict") == FACTOR * 54.0
    assert watched.watch.limit("export") == FIRST_SECS


@pytest.mark.parametrize(
    "waiting",
    [
        request(want={"predict": 1}),
        request(join=JoinRequest("host:1")),
        request(rows=10, want={"evaluate": 1, "conclude": 1, "export": 1}),  # its next task is read already
        request(rows=10, obstacle="does not reach the data source: the connection is refused"),
    ],
)
def test_a_worker_that_waits_does_not_hang(waiting: Request) -> None:
    assert Watched(60.0).beat(waiting, until=10_000.0) is None


def test_a_thread_that_reads_ahead_hides_no_step_that_hangs() -> None:
    assert Watched(60.0).beat(request(rows=10, want={"train": 2}), until=1000.0) is not None


def test_any_report_is_progress() -> None:
    watched = Watched(60.0)
    for number in range(1, 10):
        update = TaskUpdate(number, "done", Report(TASK))
        assert watched.beat(request(rows=0, updates=(update,)), until=50.0 * number) is None


def test_a_member_that_another_one_leads_hangs_only_once_it_is_left_behind() -> None:
    watched = Watched(60.0)
    assert watched.beat(request(group=4), until=600.0, follows=True) is None
    found = watched.beat(request(group=4), until=1000.0)
    assert found == Hanging("worker-0", 0, 63.0, None)


@pytest.mark.parametrize(("timeout", "limit"), [(0.0, FIRST_SECS), (60.0, 600.0), (1.0, 60.0)])
def test_a_worker_that_never_asks_for_anything_hangs_too(timeout: float, limit: float) -> None:
    watched = Watched(timeout)
    assert watched.beat(request(), until=2 * FIRST_SECS) is not None
    assert watched.now == pytest.approx(limit, abs=3.0)


def test_those_that_may_have_waited_for_it_have_their_time_again() -> None:
    watched = Watched(60.0)
    task: TaskType = "train"
    slow, other = request("worker-1", rows=0), request("worker-2", rows=0, task=Task(4, task, attempt=8))
    watched.beat(slow, until=3.0)
    assert watched.beat(slow, other, until=1000.0) is not None
    second = watched.now
    assert watched.beat(other, until=1000.0) == Hanging("worker-2", 0, 63.0, other.held[0].task)
    assert watched.now == second + 63.0


def test_a_task_that_reports_only_its_end_takes_as_long_as_it_takes() -> None:
    assert Watched(measured=False).watch.limit("predict") == math.inf
    assert Watched(30.0, measured=False).watch.limit("predict") == 30.0
