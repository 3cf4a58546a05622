"""Jobs of which every process is killed at once, and which are resumed: the model is the same, bit for bit."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.jobs.snapshot import read_snapshot
from edl.master.resume import Resumption, prepare
from edl.master.state import MasterState
from edl.master.state_store import MAGIC
from edl.models.archive import read_archive
from edl.program import read_spec
from edl.spec import Checkpoints, Cluster
from edl.tasks import encoding
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.end_to_end.slow import BLOCKS, SlowJob, slow_trees
from tests.edl.end_to_end.test_training import same
from tests.edl.end_to_end.test_trees import has_the_trees_of

OFTEN = Checkpoints(steps=10, secs=0)
ROWS, EPOCHS = 4000, 2
OPTIONS: dict[str, Any] = {"epochs": EPOCHS, "batch_size": 50, "minibatches_per_task": 4}


def weights(job: Job) -> dict[str, np.ndarray]:
    return dict(read_archive(job.archive).weights())


def has_the_weights_of(job: Job, other: Job) -> bool:
    return same(weights(job), weights(other))


def kill_processes(job: JobFolder, *others: int) -> None:
    """Kill all processes of the job, and others, at once: none sees the death of another."""
    signal_processes(job, *others, numbers=(signal.SIGSTOP, signal.SIGKILL))


def signal_processes(job: JobFolder, *others: int, numbers: tuple[signal.Signals, ...]) -> None:
    """Send all processes of the job, and others, each of these signals."""
    folder = ClusterFolder(job.path)
    found = [folder.process("supervisor"), folder.process("master")]
    snapshot = read_snapshot(folder.snapshot)
    assert snapshot is not None
    places = [row.place.removeprefix("pid ") for row in snapshot.instances if row.state == "running"]
    forkservers = re.findall(r"forkserver: pid (\d+)", folder.log("supervisor").read_text())
    pids = [process.pid for process in found if process] + [int(pid) for pid in places + forkservers[-1:]]
    for number in numbers:
        for pid in (*others, *pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def stored_step(job: Job) -> int:
    """Return the step of the checkpoint that a master would go back to now."""
    with contextlib.suppress(FileNotFoundError):
        state = (job.cluster.path / "state").read_bytes()
        return encoding.decode(state[len(MAGIC) + 4 :], MasterState).checkpoint_step
    return 0


def break_off(job: SlowJob, workers: int = 1, after: int = 0) -> None:
    """Run the job, and kill all of it once a checkpoint behind the step `after` is stored and it has trained beyond."""
    job.slow_down()
    with pytest.raises(ClusterError, match="supervisor died"), job.running():
        job.until(lambda now: stored_step(job) >= after + OFTEN.steps and job.trains(workers)(now))
        kill_processes(job.folder)
        job.result()


def resumed(job: SlowJob) -> Resumption:
    """Resume the job and run it to its end; return where it began."""
    found = prepare(job.folder)
    job.hurry()
    job.spec = job.cluster.run_spec()
    outcome = job.run()
    spec = read_spec(job.folder.program)
    assert outcome.rows == spec.training.epochs * spec.rows.training, job.logs()
    return found


FRAMEWORKS: dict[str, tuple[Callable[..., SlowJob], dict[str, Any]]] = {
    "lightgbm": (slow_trees, {"epochs": 40}),
    "torch": (SlowJob, OPTIONS),
    "keras": (partial(SlowJob, of=BLOCKS, framework="keras"), OPTIONS),
}


@pytest.mark.soak
@pytest.mark.parametrize(
    "framework", ["lightgbm", *(pytest.param(name, marks=pytest.mark.soak) for name in ("torch", "keras"))]
)
def test_a_training_is_resumed_to_the_same_weights_after_all_its_processes_are_killed_at_once(
    framework: str,
) -> None:
    slow, options = FRAMEWORKS[framework]
    alone = Job(table(ROWS), framework=framework, **options)
    alone.run_here()
    job = slow(table(ROWS), spec={"checkpoints": OFTEN}, **options)
    break_off(job)
    assert job.folder.can_resume
    found = resumed(job)
    assert found.step >= OFTEN.steps
    assert f"resumes from step {found.step:,}" in job.cluster.log("master").read_text()
    alike = has_the_trees_of if framework == "lightgbm" else has_the_weights_of
    assert alike(job, alone)


@pytest.mark.soak
@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(2, strategy="allreduce"),
        Cluster(1, 2, "sync", grads_to_wait=1),
        Cluster(2, 2, "async"),
    ],
    ids=["all-reduce", "sync", "async"],
)
def test_several_processes_that_are_all_killed_at_once_are_resumed_together(cluster: Cluster) -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job = SlowJob(table(ROWS), workers=2, spec={"checkpoints": OFTEN, "cluster": cluster}, **OPTIONS)
    break_off(job, cluster.workers)
    found = resumed(job)
    assert found.step >= OFTEN.steps
    expected, values = weights(alone), weights(job)
    assert expected.keys() == values.keys()
    if cluster.strategy != "async":  # which of two gradients is applied first is left to chance
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, rtol=1e-4, atol=1e-4)


@pytest.mark.soak
def test_a_training_that_is_resumed_is_killed_again_and_resumed_again() -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job = SlowJob(table(ROWS), spec={"checkpoints": OFTEN}, **OPTIONS)
    break_off(job)
    first = prepare(job.folder)
    job.spec = job.cluster.run_spec()
    break_off(job, after=first.step)
    assert resumed(job).step > first.step
    assert has_the_weights_of(job, alone)
