"""Workers of a script that are started and stopped together."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cluster import Change, Instance, Reason, Room
from edl.errors import JobError
from edl.jobs import script_run
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventLog, read_end
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.jobs.script_run import ScriptRun
from edl.jobs.snapshot import Snapshot
from edl.master import scripts
from edl.master.backend import Backend, ClientResultStore
from edl.master.master import run
from edl.master.scripts import Gang, ScriptEnds, ScriptMaster
from edl.master.state import MasterState
from edl.master.state_store import FileStateStore
from edl.rpc.channel import MasterChannel
from edl.tasks import encoding
from edl.tasks.job_state import JobState
from edl.worker.master_client import RemoteTasks
from tests.edl.master.simulated import job_spec


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
    assert not gang.has_succeeded([ended("worker-0", "done")])


def test_a_failure_stops_the_others_once_and_then_starts_all_again() -> None:
    gang = Gang(3, 1)
    there = [running("worker-0"), ended("worker-1", "killed"), ended("worker-2", "done")]
    assert named(gang.actions(there)) == ["stop worker-0.0"]
    assert gang.actions(there) == []
    assert gang.failure == "worker-1 ended"
    there[0] = ended("worker-0", "stopped")
    assert named(gang.actions(there)) == ["start worker-0.1", "start worker-1.1", "start worker-2.1"]
    assert named(gang.actions([*there[1:], running("worker-0", 1)])) == [
        "start worker-1.1",
        "start worker-2.1",
    ]


def test_the_reason_of_a_restart_is_the_kill_and_not_the_failures_that_follow_from_it() -> None:
    gang = Gang(3, 1)
    killed = ended("worker-1", "killed", detail="killed by SIGKILL")
    gang.actions([ended("worker-0", "failed", code=1), killed, running("worker-2")])
    assert gang.failure == "worker-1 was killed by SIGKILL"


def test_success_of_all_is_the_end() -> None:
    assert Gang(2, 0).has_succeeded([ended("worker-0", "done", 1), ended("worker-1", "done", 1)])
    assert not Gang(2, 0).has_succeeded([ended("worker-0", "done"), running("worker-1")])


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
    room = None
    unfit: frozenset[str] = frozenset()

    def __init__(self, looks: Sequence[list[Change]]) -> None:
        self._looks = list(looks)

    def list(self) -> list[Change]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def start(self, instance: Instance) -> None: ...

    def stop(self, instance: Instance, grace: float) -> None: ...

    def watch(self) -> Iterator[Change | Room]:
        yield from ()

    def close(self) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...


@pytest.fixture
def ends_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that waits for the ends of two workers that have trained, as they are seen."""
    monkeypatch.setattr(scripts, "LOOK_SECS", 0.0)
    script_run.write(tmp_path, ScriptRun("train.py", "", (), ".", 2, 0))
    with EventLog(tmp_path / "events") as events:
        yield lambda *looks: ScriptMaster(ClusterFolder(tmp_path), Looks(looks), events, tmp_path).await_ends(
            {("worker-0", 0), ("worker-1", 1)}
        )


def test_workers_that_have_not_trained_are_not_waited_for(ends_of: Callable[..., None]) -> None:
    killed, late = ended("worker-1", "killed"), running("worker-2", 1)
    looks = [
        [running("worker-0"), killed, running("worker-1", 1), late],
        [running("worker-0"), ended("worker-1", "done", 1), late],
        [ended("worker-0", "done"), ended("worker-1", "done", 1), late, running("worker-1", 2)],
    ]
    ends_of(*looks)


def test_a_script_that_fails_after_the_training_fails_the_job(ends_of: Callable[..., None]) -> None:
    with pytest.raises(JobError, match=r"worker-1 failed \(exit code 3\) after the training"):
        ends_of([ended("worker-0", "done"), ended("worker-1", "failed", 1, 3)])


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("error", ["", "worker-0 failed after the training"])
def test_the_master_tells_late_workers_that_the_job_is_over_while_scripts_end(
    tmp_path: Path, error: str
) -> None:
    folder, found = ClusterFolder(tmp_path), list[bool]()
    (tmp_path / "cluster").mkdir()
    folder.make_token()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*free.getsockname())

    def late(trained: AbstractSet[tuple[str, int]]) -> None:
        """Come as a worker, after the end of the training."""
        with (
            MasterChannel(address, folder.token()) as channel,
            RemoteTasks(channel, "worker-1", 1) as tasks,
        ):
            tasks.join()
            found.append(tasks.is_over("export") and tasks.next("train") is None)
        if error:
            raise JobError(error)

    with contextlib.closing(FileStateStore(folder.state)) as state_store, EventLog(folder.events) as events:
        spec = job_spec("allreduce", 512, 2)
        outcome = Outcome("train", 512, 1.0)
        state = MasterState(digest=spec.rows.digest, job=JobState(finished=True, outcome=outcome))
        state_store.write(encoding.encode(state))
        backend = Backend(
            cluster=Looks([[]]),
            state_store=state_store,
            events=events,
            result_store=ScriptEnds(ClientResultStore(), state_store, late),
            show=lambda snapshot: None,
            address=address,
        )
        code = run(spec, folder, backend, 10.0)
    assert found == [True]
    assert code == (exit_codes.JOB_FAILED if error else exit_codes.OK)
    end = read_end(folder.events)
    assert end == (Failed(JobError.code, error) if error else outcome)


def test_workers_wait_for_room_and_start_with_fewer_after_a_last_call() -> None:
    now = [0.0]
    gang = Gang(4, 3, least=2, clock=lambda: now[0])
    assert gang.actions([], 1) == []
    now[0] = 100.0
    assert len(gang.actions([], 3)) == gang.size == 3
    now[0] = 101.0
    again = Gang(4, 3, least=2, clock=lambda: now[0])
    assert again.actions([], 2) == []
    now[0] += scripts.LAST_CALL
    assert named(again.actions([], 2)) == ["start worker-0.0", "start worker-1.0"]
    assert len(Gang(4, 3, least=2).actions([], 9)) == 4


def test_after_a_loss_all_start_again_in_the_room_that_is_left() -> None:
    now = [0.0]
    gang = Gang(4, 3, least=2, size=4, clock=lambda: now[0])
    there = [ended(f"worker-{number}", "lost" if number > 1 else "stopped") for number in range(4)]
    assert gang.actions(there, 2) == []
    now[0] += scripts.LAST_CALL
    assert named(gang.actions(there, 2)) == ["start worker-0.1", "start worker-1.1"]
    assert gang.has_succeeded([ended("worker-0", "done", 1), ended("worker-1", "done", 1)])


def test_too_few_machines_for_long_are_an_error() -> None:
    now = [0.0]
    gang = Gang(4, 3, least=4, clock=lambda: now[0])
    assert gang.actions([], 2) == []
    now[0] += scripts.JOIN_SECS + 1
    with pytest.raises(JobError, match="there is room for 2 workers, and 4 are needed"):
        gang.actions([], 2)
