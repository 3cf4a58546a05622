"""Ends of a supervisor's job: done, cancelled, interrupted, its client or the supervisor itself killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cluster.local import client
from edl.cluster.local.client import SupervisedJob
from edl.errors import ClusterError
from edl.jobs.cluster_folder import Process
from edl.jobs.event_log import EventLog
from edl.jobs.events import Tally
from edl.jobs.outcome import JobCancelledError, JobInterruptedError
from edl.jobs.termination import TerminatedError
from edl.master.stopping import INTERRUPTED
from tests.edl.cluster.local.conftest import SECONDS, Stage, ends
from tests.edl.cluster.local.supervised import DONE, finish, forkserver_of


def test_nothing_outlives_a_supervisor_that_is_killed_and_no_stopped_worker_either(stage: Stage) -> None:
    master = stage.opening()
    workers = [stage.worker(master, f"worker-{number}") for number in range(2)]
    child = workers[0].do("spawn", session=False)
    forkserver = forkserver_of(stage)
    if sys.platform.startswith("linux"):  # elsewhere there is no parent-death signal
        workers[1].kill(signal.SIGSTOP)
    os.kill(stage.running.pid, signal.SIGKILL)
    for player in (master, *workers):
        player.wait()
    ends(child)
    ends(forkserver)
    with pytest.raises(ClusterError, match="the job's supervisor died"):
        stage.running.follow(lambda event: None)
    assert not stage.job.status().is_alive


@pytest.mark.soak
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


def test_a_job_with_a_stopped_supervisor_can_be_cancelled(
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


def test_a_job_has_one_supervisor_and_when_it_is_done_goes_back_to_its_client(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    second = SupervisedJob.start(stage.job, stage.spec)
    ends(second.pid)
    second.close()
    assert f"has a supervisor: pid {stage.running.pid}" in stage.folder.log("supervisor").read_text()
    assert stage.folder.process("supervisor") == Process.of(stage.running.pid)
    assert finish(stage, master) == DONE
    worker.wait()
    status = stage.job.status()
    assert (status.state, status.pid, status.is_unclaimed) == ("finished", os.getpid(), False)


@pytest.mark.soak
def test_a_cancelled_job_asks_its_master_first(stage: Stage) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    stage.running.cancel()
    assert master.do("changed", count=1) == [{"end": "cancel"}]
    master.send("exit", code=exit_codes.OK)
    worker.wait()
    stage.running.close()
    assert stage.job.status().state == "cancelled"
    assert {path.name for path in stage.job.path.iterdir()} == {"logs", "status.json"}


@pytest.mark.soak
def test_a_second_request_cancels_at_once(stage: Stage) -> None:
    master = stage.opening()
    stage.running.cancel()
    assert master.do("changed", count=1) == [{"end": "cancel"}]
    stage.running.cancel()
    with pytest.raises(JobCancelledError):
        stage.running.follow(lambda event: None)
    assert stage.job.status().state == "cancelled"


def test_sigterm_interrupts_a_training_once_and_orders_the_next_master_to_if_the_first_one_dies(
    stage: Stage,
) -> None:
    stage.job.update(kind="train")
    master = stage.opening()
    for _ in range(2):  # the client passes on what all processes of a machine get
        os.kill(stage.running.pid, signal.SIGTERM)
    assert master.do("changed", count=1) == [{"end": "interrupt"}]
    master.send("exit", code=exit_codes.PREEMPTED)
    master = stage.enter()
    assert master.do("changed", count=1) == [{"end": "interrupt"}]
    with EventLog(stage.folder.events) as log:
        log.write(INTERRUPTED)
    master.send("exit", code=exit_codes.PAUSED)
    with pytest.raises(JobInterruptedError):
        stage.running.follow(lambda event: None)
    assert (stage.job.status().state, stage.job.can_resume) == ("interrupted", True)
    assert stage.running._process.wait(SECONDS) == exit_codes.TERMINATED


@pytest.mark.soak
def test_a_job_that_is_being_interrupted_can_be_cancelled(stage: Stage) -> None:
    stage.job.update(kind="train")
    master = stage.opening()
    stage.running.interrupt()
    assert master.do("changed", count=1) == [{"end": "interrupt"}]
    stage.running.cancel()
    assert master.do("changed", count=1) == [{"end": "cancel"}]
    master.send("exit", code=exit_codes.OK)
    with pytest.raises(JobCancelledError):
        stage.running.follow(lambda event: None)
    assert stage.job.status().state == "cancelled"


@pytest.mark.soak
def test_sigterm_ends_at_once_what_could_not_be_resumed(stage: Stage) -> None:
    master = stage.opening()
    os.kill(stage.running.pid, signal.SIGTERM)
    master.wait()
    with pytest.raises(JobInterruptedError):
        stage.running.follow(lambda event: None)
    assert (stage.job.status().state, stage.job.rows.exists()) == ("interrupted", False)


@pytest.mark.variants(1)
@pytest.mark.parametrize(("cancels", "order"), [(False, "interrupt"), (True, "cancel")])
def test_a_client_that_is_terminated_interrupts_its_job_unless_it_is_to_cancel(
    stage: Stage, cancels: bool, order: str
) -> None:
    stage.job.update(kind="train")
    master = stage.opening()

    def terminate(event: object) -> None:
        raise TerminatedError(cancels=cancels)

    with EventLog(stage.folder.events) as log:
        log.write(Tally(0, 0, 0))
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(stage.running.follow, terminate)
        assert master.do("changed", count=1) == [{"end": order}]
        assert not following.done()
        master.send("exit", code=exit_codes.JOB_FAILED)
        with pytest.raises(TerminatedError):
            following.result(SECONDS)
    assert stage.job.status().state == (
        "cancelled" if cancels else "failed"
    )  # the master's own failure counts


START = """
import sys
from pathlib import Path

from edl.cluster.local.client import SupervisedJob
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder

job = JobFolder(Path(sys.argv[1]))
supervised = SupervisedJob.start(job, ClusterFolder(job.path).run_spec())
if sys.argv[2] == "detach":
    supervised.detach()
print(supervised.pid, flush=True)
sys.stdin.read()
"""


def client_of(stage: Stage, how: str) -> tuple[subprocess.Popen[bytes], int]:
    """Another process that starts the supervisor, and the supervisor's id."""
    stage.folder.write_run_spec(stage.spec)
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
    assert stage.job.status().is_alive
    with EventLog(stage.folder.events) as log:
        log.write(DONE)
    master.send("exit", code=exit_codes.OK)
    worker.wait()
    ends(supervisor)
    assert stage.job.status().is_unclaimed


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
