"""A supervisor with its master and its workers: real processes, some of which are killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl import exit_codes
from edl.cluster.local import client
from edl.cluster.local.client import SupervisedJob
from edl.cluster.local.instance_process import TAKE_OVER
from edl.cluster.local.master_process import CHECK_SECONDS, DEATHS, START_SECONDS, Silence
from edl.cluster.quota.quota import Quota
from edl.errors import ClusterError, SourceError
from edl.jobs.event_log import EventLog
from edl.jobs.failure import Failed
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.jobs.run_folder import Process, QuotaUse
from edl.jobs.slots import SlotRequest
from edl.jobs.snapshot import Counts, Snapshot
from tests.edl.cluster.local.conftest import Player, Stage, ends, wait_until

DONE = Outcome("predict", 10, 1.0)


def ended(master: Player) -> dict[str, Any]:
    """The next change, which is an end."""
    [change] = master.do("changed", count=1)
    assert change["state"] == "ended"
    return change


def why(master: Player) -> tuple[str, int]:
    change = ended(master)
    return change["reason"], change["exit_code"]


def forkserver_of(stage: Stage) -> int:
    """The newest forkserver that there was."""
    return int(re.findall(r"forkserver: pid (\d+)", stage.folder.log("supervisor").read_text())[-1])


def finish(stage: Stage, master: Player) -> Outcome:
    """Have the master end its job well."""
    with EventLog(stage.folder.events) as log:
        log.write(DONE)
    master.send("exit", code=exit_codes.OK)
    return stage.running.follow(lambda event: None)


# Instances ---------------------------------------------------------------------------------------------------


def test_a_worker_is_pending_then_running_then_ended(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    assert (worker.who["name"], worker.who["incarnation"], worker.who["threads"]) == ("worker-0", 0, "2")
    assert worker.who["session"] == worker.pid
    worker.send("exit", code=0)
    change = ended(master)
    assert (change["reason"], change["exit_code"], change["place"]) == ("done", 0, f"pid {worker.pid}")
    assert master.do("list") == [change]


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


def test_a_job_whose_quota_is_gone_fails_and_says_so(stage: Stage, tmp_path: Path) -> None:
    use = QuotaUse(str(tmp_path / "nowhere"), SlotRequest(1, 2))
    stage.spec = msgspec.structs.replace(stage.spec, quota=use)
    with pytest.raises(ClusterError, match="there is no quota"):
        stage.start().follow(lambda event: None)
    assert stage.job.status().state == "failed"


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


def test_an_instance_that_was_started_is_not_started_again(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    assert master.do("start", name="worker-0", incarnation=0) == ""
    worker.send("exit", code=0)
    ended(master)
    assert master.do("start", name="worker-0", incarnation=0) == ""
    assert [change["state"] for change in master.do("list")] == ["ended"]


def test_a_name_goes_on_in_its_next_incarnation_and_never_back(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master).kill()
    ended(master)
    assert stage.worker(master, incarnation=3).who["incarnation"] == 3
    assert "later than 1" in master.do("start", name="worker-0", incarnation=1)
    assert [(each["instance"]["incarnation"], each["state"]) for each in master.do("list")] == [
        (3, "running")
    ]


@pytest.mark.parametrize(
    ("do", "expected"),
    [
        ({"do": "exit", "code": 7}, ("failed", 7)),
        *(
            pytest.param(*variant, marks=pytest.mark.soak)
            for variant in (
                ({"do": "leave", "code": 0}, ("done", 0)),
                ({"do": "exit", "code": exit_codes.PREEMPTED}, ("preempted", exit_codes.PREEMPTED)),
                ({"do": "raise_"}, ("failed", 1)),
                ({"do": "crash"}, ("failed", -signal.SIGABRT)),
            )
        ),
    ],
)
def test_the_end_of_a_worker_is_told_with_its_reason(
    stage: Stage, do: dict[str, Any], expected: tuple[str, int]
) -> None:
    master = stage.opening()
    stage.worker(master).send(**do)
    assert why(master) == expected


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_a_worker_that_somebody_kills_is_told_as_killed(stage: Stage, number: signal.Signals) -> None:
    master = stage.opening()
    stage.worker(master).kill(number)
    assert why(master) == ("killed", -number)


def test_what_a_worker_raises_stands_in_its_log(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master).send("raise_")
    ended(master)
    log = stage.folder.log("worker-0")
    assert "RuntimeError: as it was told" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_a_worker_that_leaves_when_it_is_told_was_stopped(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master).do("drain", code=exit_codes.PREEMPTED)
    master.do("stop", name="worker-0", incarnation=0, grace=60)
    assert why(master) == ("stopped", exit_codes.PREEMPTED)


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


# The master --------------------------------------------------------------------------------------------------


def test_the_next_master_finds_the_workers_of_the_one_that_was_killed(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    lost = stage.worker(master, "worker-1")
    master.kill(signal.SIGSTOP)
    lost.kill()
    lost.wait()
    master.kill()
    again = stage.enter()
    assert (master.who["relaunches"], again.who["relaunches"]) == (0, 1)
    by_name = {change["instance"]["name"]: change for change in again.do("list")}
    assert by_name["worker-0"]["place"] == f"pid {worker.pid}"
    assert by_name["worker-1"]["reason"] == "killed"
    worker.send("exit", code=0)
    assert ended(again)["reason"] == "done"


def test_every_master_listens_on_the_same_port(stage: Stage) -> None:
    first = stage.opening()
    host, _, port = stage.folder.address().partition(":")
    socket.create_connection((host, int(port))).close()
    first.kill()
    stage.enter()
    assert stage.folder.address() == f"{host}:{port}"
    socket.create_connection((host, int(port))).close()
    assert host == "127.0.0.1"
    assert stage.folder.token()


@pytest.mark.soak
def test_a_master_that_dies_again_and_again_fails_the_job_with_the_reason(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    for _ in range(DEATHS - 1):
        master.send("exit", code=1)
        master = stage.enter()
    master.kill()
    with pytest.raises(
        ClusterError, match=f"the master died {DEATHS} times .* killed by SIGKILL; its log is"
    ):
        stage.running.follow(lambda event: None)
    status = stage.job.status()
    assert status.state == "failed"
    assert "killed by SIGKILL" in status.error
    worker.wait()


@pytest.mark.soak
def test_deaths_of_a_master_with_work_in_between_are_not_counted_together(stage: Stage) -> None:
    master = stage.opening()
    for done in range(1, DEATHS + 2):
        Snapshot("", "", tasks={"predict": Counts(done=done)}).write(stage.folder.snapshot)
        master.kill()
        master = stage.enter()
    assert finish(stage, master) == DONE


def test_a_master_that_failed_its_job_is_not_started_again(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    with EventLog(stage.folder.events) as log:
        log.write(Failed(SourceError.code, "there is no table t", "there is a table s"))
    master.send("exit", code=exit_codes.JOB_FAILED)
    with pytest.raises(SourceError, match="there is no table t") as caught:
        stage.running.follow(lambda event: None)
    assert caught.value.hint == "there is a table s"
    assert (stage.job.status().state, stage.job.status().error) == ("failed", "there is no table t")
    worker.wait()


def test_what_a_job_is_given_reaches_its_master_and_its_workers(stage: Stage) -> None:
    stage.spec = msgspec.structs.replace(
        stage.spec, master_arguments=("--lease-secs", "2"), environment={"COLOUR": "red"}
    )
    master = stage.opening()
    assert master.who["arguments"] == ["--lease-secs", "2"]
    assert (master.who["colour"], stage.worker(master).who["colour"]) == ("red", "red")


def test_a_master_that_closes_its_cluster_watches_no_more(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    assert master.do("close") == []
    assert "closed" in master.do("start", name="worker-1", incarnation=0)
    assert worker.do("spawn", session=False)


def test_a_frozen_master_is_killed_and_the_next_one_goes_on(stage: Stage) -> None:
    stage.spec = msgspec.structs.replace(stage.spec, master_timeout=1.0)
    master = stage.opening()
    master.do("beat")
    worker = stage.worker(master)
    master.kill(signal.SIGSTOP)
    again = stage.enter()
    again.do("beat")
    assert again.who["relaunches"] == 1
    assert [change["place"] for change in again.do("list")] == [f"pid {worker.pid}"]
    assert "has not answered for 1 s and is killed" in stage.folder.log("supervisor").read_text()
    assert finish(stage, again) == DONE


def test_the_silence_of_a_master_does_not_count_while_the_supervisor_is_suspended_too() -> None:
    silence = Silence(30.0, heartbeats=0, now=0.0)
    assert not silence.too_long(1, 1.0)
    assert not silence.too_long(1, 10_000.0)  # a laptop that slept
    assert silence.seconds == 2 * CHECK_SECONDS
    looks = [silence.too_long(1, 10_000.0 + number * CHECK_SECONDS) for number in range(1, 59)]
    assert looks == [False] * 57 + [True]


def test_a_master_has_more_time_until_its_first_heartbeat() -> None:
    silence = Silence(1.0, heartbeats=7, now=0.0)  # of the masters before it
    seconds = [number * CHECK_SECONDS for number in range(1, 241)]
    assert [silence.too_long(7, now) for now in seconds] == [False] * 239 + [True]
    assert silence.seconds == START_SECONDS


# The forkserver --------------------------------------------------------------------------------------------------


def test_workers_do_not_need_the_forkserver_that_forked_them(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    killed = forkserver_of(stage)
    os.kill(killed, signal.SIGKILL)
    ends(killed)
    assert stage.worker(master, "worker-1").name == "worker-1"
    worker.send("exit", code=3)
    assert why(master)[1] == 3
    assert forkserver_of(stage) != killed


@pytest.mark.soak
def test_a_worker_that_a_dying_forkserver_was_asked_for_is_started_once(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master)
    killed = forkserver_of(stage)
    os.kill(killed, signal.SIGSTOP)
    assert master.do("start", name="worker-1", incarnation=0) == ""
    assert [change["state"] for change in master.do("changed", count=1)] == ["pending"]
    os.kill(killed, signal.SIGKILL)
    assert [change["state"] for change in master.do("changed", count=1)] == ["running"]
    assert stage.enter().name == "worker-1"
    assert len(master.do("list")) == 2


@pytest.mark.soak
def test_a_forkserver_that_does_not_answer_is_replaced(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master)
    frozen = forkserver_of(stage)
    os.kill(frozen, signal.SIGSTOP)
    assert stage.worker(master, "worker-1").name == "worker-1"
    ends(frozen)


def test_a_pending_worker_can_be_stopped(stage: Stage) -> None:
    master = stage.opening()
    stage.worker(master)
    killed = forkserver_of(stage)
    os.kill(killed, signal.SIGSTOP)
    for name in ("worker-1", "worker-2"):
        master.do("start", name=name, incarnation=0)
        master.do("stop", name=name, incarnation=0, grace=0)
    changes = master.do("changed", count=3)
    assert [(each["instance"]["name"], each["state"]) for each in changes] == [
        ("worker-1", "pending"),
        ("worker-2", "pending"),
        ("worker-2", "ended"),
    ]
    assert changes[2]["reason"] == "stopped"
    os.kill(killed, signal.SIGCONT)
    [running, end] = master.do("changed", count=2)
    assert (running["state"], end["reason"]) == ("running", "stopped")


@pytest.mark.soak
def test_without_a_forkserver_workers_are_fresh_processes(stage: Stage) -> None:
    stage.spec = msgspec.structs.replace(stage.spec, worker="mortal:work")
    master = stage.opening()
    worker = stage.worker(master)
    assert b"edl.cluster.local.instance_process" in Path(f"/proc/{worker.pid}/cmdline").read_bytes()
    worker.kill()
    assert why(master) == ("killed", -signal.SIGKILL)


# The end of it all -------------------------------------------------------------------------------------------


def test_nothing_outlives_a_supervisor_that_is_killed(stage: Stage) -> None:
    master = stage.opening()
    workers = [stage.worker(master, f"worker-{number}") for number in range(2)]
    child = workers[0].do("spawn", session=False)
    forkserver = forkserver_of(stage)
    os.kill(stage.running.pid, signal.SIGKILL)
    for player in (master, *workers):
        player.wait()
    ends(child)
    ends(forkserver)
    with pytest.raises(ClusterError, match="the job's supervisor died"):
        stage.running.follow(lambda event: None)
    assert not stage.job.status().alive


def test_a_job_goes_on_while_its_supervisor_is_stopped_and_ends_when_it_is_continued(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    os.kill(stage.running.pid, signal.SIGSTOP)
    assert worker.do("spawn", session=False)
    with EventLog(stage.folder.events) as log:
        log.write(DONE)
    master.send("exit", code=exit_codes.OK)
    master.wait()
    os.kill(stage.running.pid, signal.SIGCONT)
    assert stage.running.follow(lambda event: None) == DONE
    worker.wait()


def test_a_job_whose_supervisor_is_stopped_can_be_cancelled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "END_SECONDS", 0.2)
    master = stage.opening()
    worker = stage.worker(master)
    os.kill(stage.running.pid, signal.SIGSTOP)
    assert client.cancel(stage.job)
    for player in (master, worker):
        player.wait()
    assert stage.job.status().state == "cancelled"


def test_a_job_that_is_done_ends_its_workers_and_goes_back_to_its_client(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    assert finish(stage, master) == DONE
    worker.wait()
    status = stage.job.status()
    assert (status.state, status.pid, status.unclaimed) == ("finished", os.getpid(), False)


def test_a_cancelled_job_asks_its_master_first(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    master.do("drain", code=exit_codes.OK)
    os.kill(stage.running.pid, signal.SIGTERM)
    worker.wait()
    stage.running.close()
    assert stage.job.status().state == "cancelled"
    assert {path.name for path in stage.job.path.iterdir()} == {"logs", "status.json"}


def test_a_second_signal_cancels_at_once(stage: Stage) -> None:
    master = stage.opening()
    master.do("notice")
    os.kill(stage.running.pid, signal.SIGTERM)
    assert master.receive() == "SIGTERM"
    os.kill(stage.running.pid, signal.SIGTERM)
    with pytest.raises(JobCancelledError):
        stage.running.follow(lambda event: None)
    assert stage.job.status().state == "cancelled"


START = """
import sys
from pathlib import Path

from edl.cluster.local.client import SupervisedJob
from edl.jobs.run_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder

job = JobFolder(Path(sys.argv[1]))
supervised = SupervisedJob.start(job, ClusterFolder(job.path).spec())
if sys.argv[2] == "detach":
    supervised.detach()
print(supervised.pid, flush=True)
sys.stdin.read()
"""


def client_of(stage: Stage, how: str) -> tuple[subprocess.Popen[bytes], int]:
    """Another process that starts the supervisor, and the supervisor's id."""
    stage.folder.write_spec(stage.spec)
    command = [sys.executable, "-c", START, str(stage.job.path), how]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert client.stdout is not None
    return client, int(client.stdout.readline())


def test_a_job_ends_when_its_client_is_killed(stage: Stage) -> None:
    client, supervisor = client_of(stage, "stay")
    with client:
        master = stage.enter()
        worker = stage.worker(master)
        client.kill()
    for player in (master, worker):
        player.wait()
    ends(supervisor)
    assert stage.job.status().state == "died"
    assert "the process that started the job has ended" in stage.job.status().error


def test_a_detached_job_outlives_its_client_and_waits_to_be_claimed(stage: Stage) -> None:
    client, supervisor = client_of(stage, "detach")
    with client:
        master = stage.enter()
        client.kill()
    worker = stage.worker(master)
    assert stage.job.status().alive
    with EventLog(stage.folder.events) as log:
        log.write(DONE)
    master.send("exit", code=exit_codes.OK)
    worker.wait()
    ends(supervisor)
    assert stage.job.status().unclaimed


def test_a_job_has_one_supervisor(stage: Stage) -> None:
    master = stage.opening()
    second = SupervisedJob.start(stage.job, stage.spec)
    ends(second.pid)
    second.close()
    assert f"has a supervisor: pid {stage.running.pid}" in stage.folder.log("supervisor").read_text()
    assert stage.folder.process("supervisor") == Process.of(stage.running.pid)
    assert finish(stage, master) == DONE


@pytest.mark.soak
def test_two_jobs_do_not_know_of_each_other(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = stage.opening()
    (tmp_path / "other").mkdir()
    other = Stage(tmp_path / "other", stage.spec)
    monkeypatch.setenv("STAGE", str(tmp_path / "other" / "door"))
    try:
        rival = other.opening()
        assert stage.folder.address() != other.folder.address()
        mine, theirs = stage.worker(master), other.worker(rival)
        assert finish(other, rival) == DONE
        theirs.wait()
        assert [change["place"] for change in master.do("list")] == [f"pid {mine.pid}"]
        assert finish(stage, master) == DONE
    finally:
        other.running.close()
        other.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is no parent-death signal")
def test_a_stopped_worker_does_not_outlive_its_supervisor(stage: Stage) -> None:
    worker = stage.worker(stage.opening())
    worker.kill(signal.SIGSTOP)
    os.kill(stage.running.pid, signal.SIGKILL)
    worker.wait()
