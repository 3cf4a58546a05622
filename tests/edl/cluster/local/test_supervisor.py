"""A supervisor and its workers: real processes, some of which are killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from edl import exit_codes
from edl.cluster.local.instance_process import TAKE_OVER
from edl.cluster.quota.quota import Quota
from edl.errors import ClusterError
from edl.jobs.cluster_folder import Process, QuotaUse
from edl.jobs.slots import SlotRequest
from tests.edl.cluster.local.conftest import Player, Stage, ends, wait_until
from tests.edl.cluster.local.supervised import ended, finish, why


def test_a_worker_is_pending_then_running_then_ended(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    assert (worker.who["name"], worker.who["incarnation"], worker.who["threads"]) == ("worker-0", 0, "2")
    assert worker.who["session"] == worker.pid
    worker.send("exit", code=0)
    change = ended(master)
    assert (change["reason"], change["exit_code"], change["place"]) == ("done", 0, f"pid {worker.pid}")
    assert master.do("list") == [change]


@pytest.mark.soak
def test_a_job_has_no_more_instances_than_slots(stage: Stage) -> None:
    stage.spec = msgspec.structs.replace(stage.spec, slots=1)
    master = stage.opening()
    worker = stage.worker(master)
    assert master.do("start", name="worker-1", incarnation=0) == "all 1 slots are taken"
    assert master.do("start", name="worker-0", incarnation=0) == ""
    worker.send("exit", code=0)
    ended(master)
    stage.worker(master, "worker-1")


@pytest.mark.soak
def test_a_job_on_a_quota_gives_slots_back_to_a_more_urgent_one_and_has_them_again(
    stage: Stage, tmp_path: Path
) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(3)
    use = QuotaUse(str(quota.folder), SlotRequest(1, 2))
    stage.spec = msgspec.structs.replace(stage.spec, quota=use)
    master = stage.opening()
    assert master.who["room"] == {"slots": 2}
    staying, leaving = stage.worker(master), stage.worker(master, "worker-1")
    urgent = quota.join("urgent", SlotRequest(2, 2, priority=1))
    assert master.do("changed", count=1) == [{"slots": 1}]
    assert master.do("start", name="worker-2") == "all 1 slots are taken"
    leaving.send("drain", code=exit_codes.PREEMPTED)
    leaving.receive()
    master.do("stop", name="worker-1", incarnation=0, grace=60.0)
    assert why(master) == ("stopped", exit_codes.PREEMPTED)
    wait_until(lambda: urgent.turn(0) == 2)
    urgent.leave()
    assert master.do("changed", count=1) == [{"slots": 2}]
    stage.worker(master, "worker-2")
    staying.kill()
    assert why(master) == ("killed", -signal.SIGKILL)


def test_a_job_that_can_use_more_or_fewer_workers_has_more_or_fewer_slots_of_its_quota(
    stage: Stage, tmp_path: Path
) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(4)
    use = QuotaUse(str(quota.folder), SlotRequest(1, 2))
    stage.spec = msgspec.structs.replace(stage.spec, quota=use)
    master = stage.opening()
    for wanted, slots in ((3, 3), (9, 4), (0, 1)):
        master.do("want", least=1, most=wanted)
        assert master.do("changed", count=1) == [{"slots": slots}]
    assert quota.look()[1][0].request == SlotRequest(1, 1)


@pytest.mark.soak
def test_the_next_master_hears_what_room_there_is(stage: Stage, tmp_path: Path) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(1)
    taken = quota.join("taken", SlotRequest(1, 1))
    assert taken.turn(0) == 1
    use = QuotaUse(str(quota.folder), SlotRequest(1, 2))
    stage.spec = msgspec.structs.replace(stage.spec, quota=use)
    master = stage.opening()
    assert master.who["room"] == {"slots": 0}
    taken.leave()
    assert master.do("changed", count=1) == [{"slots": 1}]
    master.kill()
    assert stage.enter().who["room"] == {"slots": 1}


def test_a_job_without_its_quota_fails_and_says_so(stage: Stage, tmp_path: Path) -> None:
    use = QuotaUse(str(tmp_path / "nowhere"), SlotRequest(1, 2))
    stage.spec = msgspec.structs.replace(stage.spec, quota=use)
    with pytest.raises(ClusterError, match="there is no quota"):
        stage.start().follow(lambda event: None)
    assert stage.job.status().state == "failed"


@pytest.mark.soak
def test_a_worker_goes_on_as_a_server_in_the_same_process(stage: Stage) -> None:
    stage.spec = msgspec.structs.replace(stage.spec, server="cast:work")
    master = stage.opening()
    worker = stage.worker(master)
    worker.send("leave", code=TAKE_OVER)
    server = stage.enter()
    assert (server.pid, server.name, server.who["incarnation"]) == (worker.pid, "worker-0", 0)
    assert (worker.who["role"], server.who["role"]) == ("worker", "ps")
    server.send("exit", code=0)
    assert why(master) == ("done", 0)


def test_a_name_that_was_started_goes_on_in_its_next_incarnation_only(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    assert master.do("start", name="worker-0", incarnation=0) == ""
    worker.kill()
    ended(master)
    assert master.do("start", name="worker-0", incarnation=0) == ""
    assert [change["state"] for change in master.do("list")] == ["ended"]
    assert stage.worker(master, incarnation=3).who["incarnation"] == 3
    assert "later than 1" in master.do("start", name="worker-0", incarnation=1)
    assert [(each["instance"]["incarnation"], each["state"]) for each in master.do("list")] == [
        (3, "running")
    ]


ENDS: tuple[tuple[Callable[[Player], object], tuple[str, int]], ...] = (
    (lambda worker: worker.send("exit", code=0), ("done", 0)),
    (lambda worker: worker.send("exit", code=7), ("failed", 7)),
    (lambda worker: worker.send("leave", code=0), ("done", 0)),
    (lambda worker: worker.send("exit", code=exit_codes.PREEMPTED), ("preempted", exit_codes.PREEMPTED)),
    (lambda worker: worker.send("raise_"), ("failed", 1)),
    (lambda worker: worker.send("crash"), ("failed", -signal.SIGABRT)),
    (lambda worker: worker.kill(signal.SIGKILL), ("killed", -signal.SIGKILL)),
    (lambda worker: worker.kill(signal.SIGTERM), ("killed", -signal.SIGTERM)),
)


def test_the_end_of_a_worker_is_told_with_its_reason_and_what_it_raised_is_in_its_log(stage: Stage) -> None:
    master = stage.opening()
    for number, (end, expected) in enumerate(ENDS):
        end(stage.worker(master, f"worker-{number}"))
        assert why(master) == expected
    stage.worker(master, "worker-last").do("drain", code=exit_codes.PREEMPTED)
    master.do("stop", name="worker-last", incarnation=0, grace=60)
    assert why(master) == ("stopped", exit_codes.PREEMPTED)
    log = stage.folder.log("worker-4")
    assert "RuntimeError: as it was told" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.soak
def test_a_worker_that_does_not_leave_is_killed_after_its_grace(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master).do("ignore")
    master.do("stop", name="worker-0", incarnation=0, grace=0.1)
    assert why(master) == ("stopped", -signal.SIGKILL)


@pytest.mark.soak
def test_a_frozen_worker_can_be_stopped(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    worker.do("ignore")
    worker.kill(signal.SIGSTOP)
    master.do("stop", name="worker-0", incarnation=0, grace=60)
    master.do("stop", name="worker-0", incarnation=0, grace=0)
    assert why(master) == ("stopped", -signal.SIGKILL)


@pytest.mark.soak
def test_stopping_what_is_unknown_or_has_ended_is_nothing(stage: Stage) -> None:
    master = stage.opening()
    master.do("stop", name="worker-7", incarnation=0, grace=0)
    stage.worker(master).kill()
    ended(master)
    master.do("stop", name="worker-0", incarnation=0, grace=0)
    assert [change["reason"] for change in master.do("list")] == ["killed"]


@pytest.mark.soak
def test_what_a_worker_started_ends_with_it_or_with_the_job(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    inside, outside = worker.do("spawn", session=False), worker.do("spawn", session=True)
    worker.kill()
    ended(master)
    ends(inside)
    assert Process.of(outside).started_as
    finish(stage, master)
    ends(outside)
