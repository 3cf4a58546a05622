"""Workers of a script that are started and stopped together."""

from __future__ import annotations

import pytest

from edl.cluster import Change, Instance, Reason
from edl.errors import JobError
from edl.master.scripts import Gang


def running(name: str, incarnation: int = 0) -> Change:
    return Change(Instance(name, "worker", incarnation), "running")


def ended(
    name: str, reason: Reason, incarnation: int = 0, code: int | None = None, detail: str = ""
) -> Change:
    return Change(Instance(name, "worker", incarnation), "ended", "", reason, code, detail)


def named(actions: list[tuple[Instance, bool]]) -> list[str]:
    return [f"{'stop' if stop else 'start'} {each.name}.{each.incarnation}" for each, stop in actions]


def test_all_workers_are_started_and_missing_ones_too() -> None:
    gang = Gang(2, 3)
    assert named(gang.actions([])) == ["start worker-0.0", "start worker-1.0"]
    assert named(gang.actions([running("worker-0", 2)])) == ["start worker-1.2"]
    assert not gang.done([ended("worker-0", "done")])


def test_a_failure_stops_the_others_once_and_then_starts_all_again() -> None:
    gang = Gang(3, 1)
    there = [running("worker-0"), ended("worker-1", "killed"), ended("worker-2", "done")]
    assert named(gang.actions(there)) == ["stop worker-0.0"]
    assert gang.actions(there) == []
    there[0] = ended("worker-0", "stopped")
    assert named(gang.actions(there)) == ["start worker-0.1", "start worker-1.1", "start worker-2.1"]
    assert named(gang.actions([*there[1:], running("worker-0", 1)])) == [
        "start worker-1.1",
        "start worker-2.1",
    ]


def test_success_of_all_is_the_end() -> None:
    assert Gang(2, 0).done([ended("worker-0", "done", 1), ended("worker-1", "done", 1)])
    assert not Gang(2, 0).done([ended("worker-0", "done"), running("worker-1")])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (ended("worker-1", "failed", 1, 4, "exit code 4"), "worker-1 failed (exit code 4) after 1 restart"),
        (
            ended("worker-1", "killed", 1, -9, "killed by SIGKILL"),
            "worker-1 was killed by SIGKILL after 1 restart",
        ),
    ],
)
def test_a_failure_without_restarts_left_ends_the_job(change: Change, text: str) -> None:
    with pytest.raises(JobError) as raised:
        Gang(2, 1, lambda name: f"/logs/{name}.log").actions([running("worker-0", 1), change])
    assert raised.value.message == text
    assert raised.value.hint == "its log: /logs/worker-1.log"
