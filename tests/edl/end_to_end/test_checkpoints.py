"""Jobs with instances that share no disk: their checkpoints are with the master, and go with its disk."""

from __future__ import annotations

import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.checkpoints.factory import VARIABLE
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import read_snapshot
from edl.models.archive import read_archive
from edl.ps.checkpoint import manifests
from edl.spec import Checkpoints, Cluster
from tests.edl.end_to_end.distributed import Job, kill, table
from tests.edl.end_to_end.slow import SlowJob, slow_trees, started_again
from tests.edl.end_to_end.test_training import same
from tests.edl.end_to_end.test_trees import has_the_trees_of
from tests.edl.worker.test_trainer import overfitting

APART = {VARIABLE: "master"}


def weights(job: Job) -> dict[str, np.ndarray]:
    return dict(read_archive(job.archive).weights())


def notes(job: Job) -> str:
    return job.cluster.log("master").read_text()


def steps_gone_back_to(job: Job) -> list[int]:
    return [int(step.replace(",", "")) for step in re.findall(r"resumes from step ([\d,]+)", notes(job))]


def is_as_alone(job: Job, outcome: Outcome, alone: Job, expected: Outcome, tolerance: float) -> None:
    assert (outcome.rows, outcome.steps, outcome.kept_epoch) == (
        expected.rows,
        expected.steps,
        expected.kept_epoch,
    ), job.logs()
    found, wanted = weights(job), weights(alone)
    assert found.keys() == wanted.keys()
    for name, array in found.items():
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=tolerance, err_msg=job.logs())


@pytest.mark.soak
def test_a_trainer_that_is_killed_is_followed_by_one_that_has_its_checkpoint_from_the_master() -> None:
    options: dict[str, Any] = {"validation": 300, "epochs": 40, "keep": "best"}
    alone = Job(table(1500), framework="lightgbm", **options)
    expected = alone.run_here()
    job = slow_trees(
        table(1500),
        how=kill("worker-0/0 while writing a checkpoint 2", environment=APART),
        spec={"checkpoints": Checkpoints(steps=10, secs=0)},
        **options,
    )
    outcome = job.run_until(lambda event: list(job.folder.checkpoints.glob("*-worker-0-1")))
    assert (outcome.rows, outcome.steps, outcome.kept_epoch) == (
        expected.rows,
        expected.steps,
        expected.kept_epoch,
    ), job.logs()
    assert has_the_trees_of(job, alone), job.logs()
    [step] = steps_gone_back_to(job)
    assert step >= 10
    assert list(job.folder.checkpoints.glob("*-worker-0-1"))
    [fetched] = (job.folder.own / "worker-0-1").iterdir()
    assert fetched.name.endswith("-worker-0-0")


def end_workers(job: Job) -> None:
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    for row in snapshot.instances:
        with suppress(ProcessLookupError):
            os.kill(int(row.place.removeprefix("pid ")), signal.SIGKILL)


def end_master_with_its_disk(job: Job) -> None:
    found = job.cluster.process("master")
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    shutil.rmtree(job.folder.checkpoints)


@pytest.mark.soak
def test_a_group_goes_on_from_the_masters_copy_and_begins_anew_when_that_is_lost_with_it() -> None:
    options: dict[str, Any] = {
        "validation": 2000,
        "epochs": 2,
        "batch_size": 64,
        "keep": "best",
        "replace": {"torch.optim.Adam(parameters, lr, fused=True)": "torch.optim.SGD(parameters, lr)"},
    }
    alone = Job(table(20_000), **options)
    expected = alone.run_here()
    job = SlowJob(
        table(20_000),
        how=kill(environment=APART),
        spec={
            "cluster": Cluster(workers=2, strategy="allreduce"),
            "checkpoints": Checkpoints(steps=5, secs=0),
        },
        **options,
    )
    with job.running():
        job.until(lambda now: now.checkpoint and job.trains(2)(now))
        end_workers(job)
        job.until(lambda now: steps_gone_back_to(job) and job.trains(2)(now))
        end_workers(job)
        end_master_with_its_disk(job)
        job.until(lambda now: now.master_relaunches and "training restarts" in notes(job))
        outcome = job.result()
    assert min(steps_gone_back_to(job)) >= 5
    is_as_alone(job, outcome, alone, expected, 1e-5)


@pytest.mark.soak
def test_a_lone_server_has_its_checkpoints_and_the_best_weights_with_the_master() -> None:
    epochs = 30
    job = SlowJob(
        overfitting(),
        how=kill("ps-0/0 in a push 30", environment=APART),
        spec={
            "cluster": Cluster(1, 1, "sync", grads_to_wait=1),
            "checkpoints": Checkpoints(steps=10, secs=0),
        },
        validation=20,
        epochs=epochs,
        batch_size=8,
        keep="best",
    )
    outcome = job.run_until(started_again(1))
    assert (outcome.rows, outcome.steps) == (40 * epochs, 5 * epochs), job.logs()
    assert steps_gone_back_to(job)
    assert 0 < outcome.kept_epoch < epochs
    kept = sorted(job.folder.checkpoints.glob(f"best-{outcome.kept_epoch:06d}-*"))
    assert same(weights(job), manifests.read_weights(kept[-1]))


@pytest.mark.soak
def test_servers_go_on_from_an_object_store_and_leave_nothing_there(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    bucket = tmp_path / "bucket"
    job = SlowJob(
        overfitting(),
        how=kill("ps-1/0 in a push 30", environment={VARIABLE: f"file://{bucket}"}),
        spec={
            "cluster": Cluster(1, 2, "sync", grads_to_wait=1),
            "checkpoints": Checkpoints(steps=10, secs=0),
        },
        validation=20,
        epochs=30,
        batch_size=8,
        keep="best",
    )
    outcome = job.run_until(started_again(1))
    assert (outcome.rows, outcome.lost_epoch) == (40 * 30, 0), job.logs()
    assert outcome.kept_epoch
    assert steps_gone_back_to(job)
    assert not list(bucket.iterdir())
