"""Jobs with a damaged newest checkpoint or state: they go on from an older checkpoint, to the same weights."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from edl.checkpoints import DAMAGED, STATE
from edl.jobs.snapshot import read_snapshot
from edl.spec import Cluster
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.end_to_end.slow import SlowJob, slow_trees
from tests.edl.end_to_end.test_resume import OFTEN, OPTIONS, ROWS, break_off, resumed, weights
from tests.edl.end_to_end.test_trees import has_the_trees_of


def checkpoints(job: Job) -> list[Path]:
    """Checkpoints that a job can be resumed from, the oldest first."""
    return sorted(path.parent for path in job.folder.checkpoints.glob(f"*/{STATE}"))


def flip_a_bit(checkpoint: Path) -> None:
    """Change each file with arrays: a server reads its own alone."""
    for path in checkpoint.glob("*.safetensors"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


def cut_to_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.soak
def test_a_job_with_a_damaged_state_and_newest_checkpoint_is_resumed_from_the_one_before() -> None:
    alone = Job(table(ROWS), framework="lightgbm", epochs=40)
    alone.run_here()
    job = slow_trees(table(ROWS), spec={"checkpoints": OFTEN}, epochs=40)
    break_off(job, after=2 * OFTEN.steps)
    *_, before, newest = checkpoints(job)
    flip_a_bit(newest)
    cut_to_half(job.cluster.path / "state")
    found = resumed(job)
    assert found.checkpoint == before.name
    assert found.warnings[0].endswith("cluster/state is damaged")
    assert f"the checkpoint {newest.name} is damaged" in found.warnings[1]
    assert has_the_trees_of(job, alone)


def stop(job: Job, name: str) -> int:
    """Stop an instance, so that no further checkpoint is completed; return its pid."""
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    [place] = [row.place for row in snapshot.instances if row.name == name and row.state == "running"]
    pid = int(place.removeprefix("pid "))
    os.kill(pid, signal.SIGSTOP)
    return pid


@pytest.mark.soak
@pytest.mark.parametrize(
    ("cluster", "killed"),
    [
        (Cluster(1), ("worker-0",)),
        (Cluster(2, strategy="allreduce"), ("worker-0", "worker-1")),
        (Cluster(1, 2, "sync", grads_to_wait=1), ("ps-0",)),
        (Cluster(1, 2, "async"), ("ps-1",)),
    ],
    ids=["trainer", "all-reduce", "sync", "async"],
)
def test_an_instance_that_is_replaced_and_finds_its_checkpoint_damaged_takes_the_job_back_to_the_one_before(
    cluster: Cluster, killed: tuple[str, ...]
) -> None:
    alone = Job(table(ROWS), **OPTIONS)
    alone.run_here()
    job = SlowJob(
        table(ROWS),
        workers=cluster.workers,
        spec={"checkpoints": OFTEN, "cluster": cluster},
        **OPTIONS,
    )
    job.slow_down()
    with job.running():
        job.until(lambda now: len(checkpoints(job)) >= 2 and job.trains(cluster.workers)(now))
        pids = [stop(job, name) for name in killed]
        newest = checkpoints(job)[-1]
        flip_a_bit(newest)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        job.until(lambda now: (newest / DAMAGED).exists())
        assert (newest / STATE).exists()
        job.hurry()
        outcome = job.result()
    notes = job.cluster.log("master").read_text()
    assert f"the checkpoint {newest.name} is damaged: bytes of" in notes, job.logs()
    assert "are repeated" in notes
    assert outcome.rows == OPTIONS["epochs"] * ROWS
    if cluster.strategy != "async":
        expected, found = weights(alone), weights(job)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)
