"""Workers of a script that are started and stopped together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from edl.cluster import Change, Instance, Reason
from edl.errors import JobError
from edl.jobs import script_run
from edl.jobs.event_log import EventLog
from edl.jobs.run_folder import ClusterFolder
from edl.jobs.script_run import ScriptRun
from edl.jobs.snapshot import Snapshot
from edl.master import scripts
from edl.master.scripts import Gang, ScriptMaster


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


class Looks:
    """Workers that are seen as in `looks`, one after the other, of which the last one stays."""

    relaunches = 0

    def __init__(self, looks: Sequence[list[Change]]) -> None:
        self._looks = list(looks)
        self.stopped: list[tuple[str, int]] = []

    def list(self) -> list[Change]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def start(self, instance: Instance) -> None: ...

    def stop(self, name: str, incarnation: int, grace: float) -> None:
        self.stopped.append((name, incarnation))

    def show(self, snapshot: Snapshot) -> None: ...


def test_a_replacement_that_is_first_seen_after_the_training_is_stopped_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "LOOK_SECS", 0.0)
    script_run.write(tmp_path, ScriptRun("train.py", "", (), ".", 2, 0))
    killed, replacement = ended("worker-1", "stopped"), running("worker-1", 1)
    looks = Looks(
        [
            [running("worker-0"), killed],
            [running("worker-0"), killed, replacement],
            [running("worker-0"), killed, replacement],
            [ended("worker-0", "done"), killed, ended("worker-1", "stopped", 1)],
        ]
    )
    with EventLog(tmp_path / "events") as events:
        master = ScriptMaster(ClusterFolder(tmp_path), looks, events, tmp_path)
        master.await_ends({("worker-0", 0), ("worker-1", 0)})
    assert looks.stopped == [("worker-1", 1)]
