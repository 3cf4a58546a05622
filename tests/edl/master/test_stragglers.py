"""How much each instance does, and who is marked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edl.jobs.snapshot import InstanceLoad
from edl.master.instances.stragglers import WINDOW, Loads, Window
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import Figures, Status
from edl.tasks.protocol import Request
from edl.tasks.task import Report
from tests.edl.master.group_stage import GroupStage
from tests.edl.master.stage import Stage
from tests.edl.master.test_schedules import finished

Busy = Callable[[int], tuple[float, int]]  # of a server: share of its time in calls, calls a second


def test_a_rate_is_taken_over_the_last_seconds() -> None:
    window = Window()
    window.add(0.0, 0)
    assert window.rates == ()
    for second in range(1, 21):
        window.add(float(second), 100.0 if second <= 10 else 100.0 + 7 * (second - 10))
    assert window.rates == (7.0,)
    assert WINDOW == 10.0


def loads(busy: Busy) -> Loads:
    """After ten seconds of a job with four servers."""
    stage = Stage(Mode("async"), servers=4)
    stage.open()
    found = Loads(stage.leases, stage.servers)
    for second in range(11):
        for call in stage.servers.calls(stage.now):
            if isinstance(call.header, Status):
                share, calls = busy(call.index)
                rows, done = {"a": 30, "b": 12}, calls * second
                figures = Figures(
                    call.index, rows=rows, bytes=9, pulls=done, rows_pulled=5 * done, busy=share * second
                )
                stage.servers.on_answer(call, figures, stage.now)
        found.look(float(second))
        stage.now += 1.0
    return found


@pytest.mark.parametrize(
    ("busy", "marks"),
    [
        (lambda index: (0.5, 100), ["", "", "", ""]),
        (lambda index: (0.9, 180) if index == 2 else (0.4, 80), ["", "", "hot", ""]),
        (lambda index: (0.9, 80) if index == 1 else (0.3, 80), ["", "straggling", "", ""]),
        (lambda index: (0.001, 1) if index else (0.01, 10), ["", "", "", ""]),
    ],
    ids=["alike", "more to do", "slower", "nothing to do"],
)
def test_a_server_is_marked_when_it_has_more_to_do_or_is_slower(busy: Busy, marks: list[str]) -> None:
    found = loads(busy)
    assert [found.note(f"ps-{index}") for index in range(4)] == marks


def test_a_server_has_what_it_holds_and_does() -> None:
    found = loads(lambda index: (0.5, 100))
    assert found.load("ps-1") == InstanceLoad(42, 9, 500.0, 0.0, 0.5, {"a": 30, "b": 12})
    assert found.load("worker-0") is None


def test_a_worker_at_a_tenth_of_the_others_speed_is_marked() -> None:
    stage = Stage(Mode("async"))
    names = ("worker-0", "worker-1", "worker-2")
    boxes = [stage.worker(name) for name in names]
    tasks = [stage.take(box) for box in boxes]
    found = Loads(stage.leases, stage.servers)
    for second in range(11):
        for name, task in zip(names, tasks, strict=True):
            assert task is not None
            speed = 10 if name == "worker-1" else 100
            held = (Report(task, speed * second),)
            stage.leases.exchange(Request(name, 0, 1, held=held, number=second + 9), stage.now)
        found.look(float(second))
    assert [found.note(name) for name in names] == ["", "straggling", ""]
    assert found.rate("worker-0") == 100.0


def test_a_worker_that_has_just_joined_a_group_does_not_straggle() -> None:
    stage = GroupStage("ab")
    stage.kill("b")
    stage.train_together("a")
    stage.start("b")
    found = Loads(stage.master, None)
    for second in range(4):
        task = stage.take("a")
        assert task is not None
        stage.held["a"].clear()
        stage.say("a", finished(task))
        found.look(float(second))
    assert found.rate("a") > found.rate("b") == 0.0
    assert [found.note(name) for name in "ab"] == ["", ""]
