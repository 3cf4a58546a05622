"""A supervisor that restarts its master and its forkserver: real processes, some of which are killed."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import msgspec
import pytest

from edl import exit_codes
from edl.cluster.local.master_process import CHECK_SECONDS, DEATHS, START_SECONDS, Silence
from edl.errors import ClusterError, SourceError
from edl.jobs.event_log import EventLog
from edl.jobs.failure import Failed
from edl.jobs.snapshot import Counts, Snapshot
from tests.edl.cluster.local.conftest import Stage, ends
from tests.edl.cluster.local.supervised import DONE, ended, finish, forkserver_of, why

# The master --------------------------------------------------------------------------------------------------


def test_the_next_master_finds_the_workers_of_the_one_that_was_killed_at_the_same_address(
    stage: Stage,
) -> None:
    master = stage.opening()
    host, _, port = stage.folder.address().partition(":")
    assert host == "127.0.0.1"
    assert stage.folder.token()
    socket.create_connection((host, int(port))).close()
    worker = stage.worker(master)
    lost = stage.worker(master, "worker-1")
    master.kill(signal.SIGSTOP)
    lost.kill()
    lost.wait()
    master.kill()
    again = stage.enter()
    assert (master.who["relaunches"], again.who["relaunches"]) == (0, 1)
    assert stage.folder.address() == f"{host}:{port}"
    socket.create_connection((host, int(port))).close()
    by_name = {change["instance"]["name"]: change for change in again.do("list")}
    assert by_name["worker-0"]["place"] == f"pid {worker.pid}"
    assert by_name["worker-1"]["reason"] == "killed"
    worker.send("exit", code=0)
    assert ended(again)["reason"] == "done"


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


@pytest.mark.soak
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


def test_what_a_job_is_given_reaches_its_master_and_its_workers_which_outlive_the_masters_watch(
    stage: Stage,
) -> None:
    stage.spec = msgspec.structs.replace(
        stage.spec, master_arguments=("--lease-secs", "2"), environment={"COLOUR": "red"}
    )
    master = stage.opening()
    worker = stage.worker(master)
    assert master.who["arguments"] == ["--lease-secs", "2"]
    assert (master.who["colour"], worker.who["colour"]) == ("red", "red")
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
    assert not silence.is_too_long(1, 1.0)
    assert not silence.is_too_long(1, 10_000.0)  # a laptop that slept
    assert silence.seconds == 2 * CHECK_SECONDS
    looks = [silence.is_too_long(1, 10_000.0 + number * CHECK_SECONDS) for number in range(1, 59)]
    assert looks == [False] * 57 + [True]


def test_a_master_has_more_time_until_its_first_heartbeat() -> None:
    silence = Silence(1.0, heartbeats=7, now=0.0)  # of the masters before it
    seconds = [number * CHECK_SECONDS for number in range(1, 241)]
    assert [silence.is_too_long(7, now) for now in seconds] == [False] * 239 + [True]
    assert silence.seconds == START_SECONDS


# The forkserver --------------------------------------------------------------------------------------------------


@pytest.mark.soak
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


@pytest.mark.soak
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
