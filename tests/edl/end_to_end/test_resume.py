"""Jobs of which every process is killed at once, and which are resumed: the model is the same, bit for bit."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.checkpoints.factory import VARIABLE
from edl.errors import ClusterError, JobError
from edl.jobs.events import Tally
from edl.jobs.snapshot import read_snapshot
from edl.master import resume
from edl.master.resume import Resumption, prepare
from edl.models.archive import read_archive
from edl.spec import Checkpoints, Cluster
from tests.edl.end_to_end.distributed import Event, Job, kill, table
from tests.edl.end_to_end.slow import SlowJob
from tests.edl.end_to_end.test_training import same

OFTEN = Checkpoints(steps=10, secs=0)
OPTIONS: dict[str, Any] = {"validation": 2000, "epochs": 2, "batch_size": 256}


def weights(job: Job) -> dict[str, np.ndarray]:
    return dict(read_archive(job.archive).weights())


def processes(job: Job) -> list[int]:
    """All processes of the job: supervisor, master, forkserver, workers and servers."""
    found = [job.cluster.process(role) for role in ("supervisor", "master")]  # type: ignore[arg-type]
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    places = [row.place.removeprefix("pid ") for row in snapshot.instances if row.state == "running"]
    forkservers = re.findall(r"forkserver: pid (\d+)", job.cluster.log("supervisor").read_text())
    return [process.pid for process in found if process] + list(map(int, places + forkservers))


def kill_all(job: Job) -> None:
    """Kill all processes at once: none sees the death of another."""
    pids = processes(job)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


def break_off(job: SlowJob, workers: int = 1) -> None:
    """Run the job, and kill all of it once it has a checkpoint and has trained beyond."""
    job.folder.update(pid=os.getpid())
    with pytest.raises(ClusterError, match="supervisor died"):
        with job.running():
            job.until(lambda now: now.checkpoint and now.step > 15 and job.trains(workers)(now))
            kill_all(job)
            job.result()


def resumed(job: SlowJob) -> Resumption:
    """Resume the job and run it to its end; return where it began."""
    found = prepare(job.folder)
    job.hurry()
    job.spec = job.cluster.spec()
    outcome = job.run()
    assert outcome.rows == OPTIONS["epochs"] * 28_000, job.logs()
    return found


@pytest.mark.parametrize("framework", ["torch", pytest.param("keras", marks=pytest.mark.soak)])
def test_a_training_whose_processes_are_all_killed_at_once_is_resumed_to_the_same_weights(
    framework: str,
) -> None:
    alone = Job(table(30_000), framework=framework, **OPTIONS)
    alone.run_here()
    steps = "def loss(labels, predictions):\n" if framework == "torch" else "def feed(batch, mode):\n"
    job = SlowJob(
        table(30_000), of=steps, framework=framework, spec={"checkpoints": OFTEN}, **OPTIONS
    )
    break_off(job)
    assert job.folder.can_resume
    found = resumed(job)
    assert found.step >= 10
    assert f"resumes from step {found.step:,}" in job.cluster.log("master").read_text()
    assert same(weights(job), weights(alone))
