"""Jobs that lose their machine: SIGTERM to the supervisor, or to all processes at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import numpy as np
import pytest

from edl.jobs.outcome import JobInterruptedError
from edl.jobs.snapshot import read_snapshot
from edl.spec import Checkpoints, Cluster
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.end_to_end.slow import SlowJob
from tests.edl.end_to_end.test_pauses import EACH_STEP, SELDOM, resumed
from tests.edl.end_to_end.test_resume import OPTIONS, ROWS, signal_processes, weights
from tests.edl.end_to_end.test_training import same

pytestmark = pytest.mark.soak


def tell_supervisor(job: SlowJob) -> None:
    supervisor = job.cluster.process("supervisor")
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGTERM)


def tell_all(job: SlowJob) -> None:
    signal_processes(job.folder, numbers=(signal.SIGTERM,))


def interrupted(
    cluster: Cluster, tell: Callable[[SlowJob], None], checkpoints: Checkpoints = SELDOM
) -> tuple[SlowJob, int]:
    """A job that is interrupted, and a step that it had taken before."""
    job = SlowJob(table(ROWS), spec={"checkpoints": checkpoints, "cluster": cluster}, **OPTIONS)
    with job.running():
        job.until(lambda now: now.step > 5 and job.trains(cluster.workers)(now))
        snapshot = read_snapshot(job.cluster.snapshot)
        assert snapshot is not None
        tell(job)
        with pytest.raises(JobInterruptedError):
            job._running.result()
    assert job.folder.status().state == "interrupted"
    assert job.folder.can_resume
    return job, snapshot.step


@pytest.mark.parametrize("tell", [tell_supervisor, tell_all], ids=["supervisor", "all"])
@pytest.mark.parametrize("checkpoints", [SELDOM, EACH_STEP], ids=["between checkpoints", "at a checkpoint"])
def test_an_interrupted_training_loses_no_step_and_ends_with_the_same_weights(
    tell: Callable[[SlowJob], None], checkpoints: Checkpoints
) -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job, step = interrupted(Cluster(1), tell, checkpoints)
    assert resumed(job) >= step
    assert same(weights(job), weights(alone))


@pytest.mark.parametrize("tell", [tell_supervisor, tell_all], ids=["supervisor", "all"])
@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(3, strategy="allreduce"),
        Cluster(1, 2, "sync", grads_to_wait=1),
        Cluster(2, 2, "async"),
    ],
    ids=["all-reduce", "sync", "async"],
)
def test_a_group_and_servers_have_a_checkpoint_of_that_step(
    cluster: Cluster, tell: Callable[[SlowJob], None]
) -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job, step = interrupted(cluster, tell)
    assert resumed(job) >= step
    if cluster.strategy != "async":  # which of two gradients is applied first is left to chance
        for name, value in weights(alone).items():
            np.testing.assert_allclose(weights(job)[name], value, rtol=1e-4, atol=1e-4)


def test_a_master_alone_is_replaced_and_the_job_goes_on() -> None:
    job = SlowJob(table(ROWS), spec={"checkpoints": SELDOM, "cluster": Cluster(1)}, **OPTIONS)
    with job.running():
        job.until(job.trains(1))
        master = job.cluster.process("master")
        assert master is not None
        os.kill(master.pid, signal.SIGTERM)
        job.until(lambda now: now.master_relaunches == 1)
        assert job.result().rows == OPTIONS["epochs"] * ROWS, job.logs()


def test_a_server_alone_is_replaced_without_a_lost_update() -> None:
    spec = {"checkpoints": SELDOM, "cluster": Cluster(2, 2, "async")}
    job = SlowJob(table(ROWS), seconds=0.5, spec=spec, **OPTIONS)
    with job.running():
        job.until(lambda now: now.step > 5 and job.trains(2)(now))
        snapshot = read_snapshot(job.cluster.snapshot)
        assert snapshot is not None
        place = next(row.place for row in snapshot.instances if row.name == "ps-0")
        os.kill(int(place.removeprefix("pid ")), signal.SIGTERM)
        job.until(lambda now: "parameter servers: ps-0, ps-1 → ps-1, ps-2" in job.logs())
        outcome = job.result()
    assert (outcome.rows, outcome.lost_updates) == (OPTIONS["epochs"] * ROWS, 0), job.logs()
