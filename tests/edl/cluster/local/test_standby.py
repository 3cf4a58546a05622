"""Supervisors that wait for a job: real processes, some of which are killed before the job comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from edl.cluster.local.client import SupervisedJob
from edl.cluster.local.standby import STANDBY_SECS, VARIABLE, Standby
from tests.edl.cluster.local.conftest import Player, Stage, ends, wait_until
from tests.edl.cluster.local.supervised import DONE, finish, forkserver_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture
def standby(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standby]:
    """A supervisor that waits for a job like the stage's, with its forkserver and its master."""
    monkeypatch.setenv(VARIABLE, "1")
    started = Standby.start(stage.spec, collectives=False)
    assert started is not None
    wait_until(lambda: {*children_of(started)} == {"forkserver", "waiting_master"})
    yield started
    started.close()


def children_of(standby: Standby) -> dict[str, int]:
    """The processes that wait with the supervisor, by the last part of their module's name."""
    pid = standby._process.pid
    found = {}
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
        if "-m" in words:
            found[words[words.index("-m") + 1].rpartition(".")[2]] = child
    return found


def hand_over(stage: Stage, standby: Standby) -> Player:
    """The master of the stage's job, which the standby runs."""
    stage.running = SupervisedJob.start(stage.job, stage.spec, standby)
    assert stage.running.pid == standby._process.pid
    return stage.enter()


def test_a_job_runs_in_the_processes_that_waited_for_it(stage: Stage, standby: Standby) -> None:
    waiting = children_of(standby)
    master = hand_over(stage, standby)
    worker = stage.worker(master)
    assert (master.pid, forkserver_of(stage)) == (waiting["waiting_master"], waiting["forkserver"])
    assert worker.who["threads"] == master.who["threads"] == "2"
    assert finish(stage, master) == DONE
    worker.wait()
    ends(waiting["forkserver"])
    assert {path.stem for path in (stage.job.path / "logs").iterdir()} >= {"supervisor", "master", "worker-0"}


@pytest.mark.parametrize("dead", ["waiting_master", "forkserver"])
def test_a_job_runs_although_a_process_that_waited_for_it_was_killed(
    stage: Stage, standby: Standby, dead: str
) -> None:
    pid = children_of(standby)[dead]
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == b""
    )  # a zombie: its parent reaps it later
    master = hand_over(stage, standby)
    worker = stage.worker(master)
    assert pid not in (master.pid, forkserver_of(stage))
    assert finish(stage, master) == DONE
    worker.wait()


def test_a_master_that_waited_and_dies_in_its_job_is_replaced(stage: Stage, standby: Standby) -> None:
    first = hand_over(stage, standby)
    worker = stage.worker(first)
    first.kill()
    second = stage.enter()
    assert finish(stage, second) == DONE
    worker.wait()


def test_a_job_whose_standby_was_killed_has_a_supervisor_of_its_own(stage: Stage, standby: Standby) -> None:
    standby._process.kill()
    standby._process.wait()
    assert not standby.fits(stage.spec, collectives=False)
    stage.running = SupervisedJob.start(stage.job, stage.spec, standby)
    master = stage.enter()
    assert finish(stage, master) == DONE


def test_a_standby_fits_jobs_that_would_start_the_same_processes(
    stage: Stage, standby: Standby, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(standby, "_environment", dict(os.environ))  # pytest has changed a variable since
    fits = standby.fits
    assert fits(stage.spec, collectives=False)
    assert fits(msgspec.structs.replace(stage.spec, slots=3, master_timeout=7.0), collectives=False)
    assert not fits(stage.spec, collectives=True)
    assert not fits(msgspec.structs.replace(stage.spec, threads=1), collectives=False)
    assert not fits(msgspec.structs.replace(stage.spec, folder=str(tmp_path)), collectives=False)
    monkeypatch.setenv("AWS_PROFILE", "other")  # a worker would read data with it
    assert not fits(stage.spec, collectives=False)
    monkeypatch.delenv("AWS_PROFILE")
    assert fits(stage.spec, collectives=False)
    monkeypatch.setattr(standby, "_began", standby._began - STANDBY_SECS)
    assert not fits(stage.spec, collectives=False)


def test_nothing_waits_longer_than_its_session(stage: Stage, standby: Standby) -> None:
    waiting = children_of(standby)
    standby.close()
    for pid in waiting.values():
        ends(pid)


def test_nothing_waits_for_a_client_that_was_killed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    script = (
        "import sys, time\nfrom edl.cluster.local.standby import Standby\n"
        "from edl.jobs.cluster_folder import RunSpec\n"
        "standby = Standby.start(RunSpec('torch', master='cast', worker='cast:work'), collectives=False)\n"
        "print(standby._process.pid, flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        supervisor = int(client.stdout.readline())
        client.kill()
    ends(supervisor)


def test_a_variable_turns_it_off(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    assert Standby.start(stage.spec, collectives=False) is None
