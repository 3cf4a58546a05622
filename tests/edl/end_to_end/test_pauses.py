"""Jobs that are paused at a step, and that go on from that step when they are resumed."""

from __future__ import annotations

import numpy as np
import pytest

from edl.errors import JobError
from edl.jobs.outcome import JobPausedError
from edl.jobs.snapshot import read_snapshot
from edl.master.resume import prepare
from edl.spec import Checkpoints, Cluster
from sqlflow_edl.backends.local import LocalJobHandle
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.end_to_end.slow import SlowJob
from tests.edl.end_to_end.test_resume import EPOCHS, OPTIONS, ROWS, weights
from tests.edl.end_to_end.test_training import same

pytestmark = pytest.mark.soak

SELDOM = Checkpoints(steps=0, secs=1000.0)
EACH_STEP = Checkpoints(steps=1, secs=0.0)


def paused(cluster: Cluster, checkpoints: Checkpoints = SELDOM) -> tuple[SlowJob, int]:
    """A job that is paused, and a step that it had taken before."""
    job = SlowJob(table(ROWS), spec={"checkpoints": checkpoints, "cluster": cluster}, **OPTIONS)
    with job.running():
        job.until(lambda now: now.step > 5 and job.trains(cluster.workers)(now))
        snapshot = read_snapshot(job.cluster.snapshot)
        assert snapshot is not None
        assert (
            "is paused; when it is resumed, training resumes from step" in LocalJobHandle(job.folder).pause()
        )
        with pytest.raises(JobPausedError):
            job._running.result()
    assert job.folder.status().state == "paused"
    return job, snapshot.step


def resumed(job: SlowJob) -> int:
    """Run it to its end; the step at which it goes on."""
    found = prepare(job.folder)
    job.hurry()
    job.spec = job.cluster.run_spec()
    assert job.run().rows == EPOCHS * ROWS, job.logs()
    return found.step


@pytest.mark.parametrize("checkpoints", [SELDOM, EACH_STEP], ids=["between checkpoints", "at a checkpoint"])
def test_a_paused_training_goes_on_where_it_was_to_the_same_weights(checkpoints: Checkpoints) -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job, step = paused(Cluster(1), checkpoints)
    assert "could not be written" not in job.logs()
    assert resumed(job) >= step
    assert same(weights(job), weights(alone))


def test_a_training_that_is_late_ends_with_a_checkpoint_and_has_the_same_time_again() -> None:
    job = SlowJob(table(ROWS), spec={"checkpoints": SELDOM, "cluster": Cluster(1, deadline=4.0)}, **OPTIONS)
    with job.running(), pytest.raises(JobError, match="did not end before its deadline of 4 s"):
        job._running.result()
    status = job.folder.status()
    assert (status.state, status.error) == ("failed", "the job did not end before its deadline of 4 s")
    assert job.folder.can_resume
    assert resumed(job) > 0


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(3, strategy="allreduce"),
        Cluster(1, 2, "sync", grads_to_wait=1),
        Cluster(2, 2, "async"),
    ],
    ids=["all-reduce", "sync", "async"],
)
def test_a_group_and_servers_go_on_where_they_were(cluster: Cluster) -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job, step = paused(cluster)
    assert resumed(job) >= step
    if cluster.strategy != "async":  # which of two gradients is applied first is left to chance
        for name, value in weights(alone).items():
            np.testing.assert_allclose(weights(job)[name], value, rtol=1e-4, atol=1e-4)
