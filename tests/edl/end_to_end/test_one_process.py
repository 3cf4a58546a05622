"""Trainings in one process that end early: what they leave, and when they leave it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.trainer import complete
from edl.errors import ClusterError
from edl.jobs.events import EpochEnd, ProcessEvent
from edl.jobs.outcome import JobInterruptedError
from edl.master.resume import prepare
from edl.master.state_store import FileStateStore
from edl.run.training_client import TrainingProcess
from edl.spec import Checkpoints
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.end_to_end.test_trees import has_the_trees_of

OPTIONS: dict[str, Any] = {"framework": "lightgbm", "epochs": 40, "validation": 50, "workers": 0}
ROWS, INTERRUPTED_IN = 400, 9


def one_process(steps: int = 0, **options: Any) -> Job:
    """A training in one process that can be resumed, with a checkpoint every so many steps, or at its interruption."""
    job = Job(table(ROWS), spec={"checkpoints": Checkpoints(steps, secs=0)}, **OPTIONS | options)
    job.allow_resuming()
    return job


def interrupt(job: Job, is_due: Callable[[EpochEnd], bool] = lambda end: end.epoch == INTERRUPTED_IN) -> None:
    """Run the job in this process, and interrupt it after an epoch for which `is_due` returns True."""
    interrupted = threading.Event()

    def observe(event: ProcessEvent) -> None:
        if isinstance(event, EpochEnd) and is_due(event):
            interrupted.set()

    with pytest.raises(JobInterruptedError):
        job.run_here(interrupted, observe)
    job.folder.end("interrupted")


def checkpoints(job: Job) -> list[str]:
    return complete(SharedFolder(job.folder.checkpoints))


def test_an_interrupted_training_loses_no_step_and_is_resumed_to_the_same_model() -> None:
    alone, job = Job(table(ROWS), **OPTIONS), one_process()
    alone.run_here()
    interrupt(job)
    assert job.folder.can_resume
    found = prepare(job.folder)
    assert (found.step, found.epoch) == (INTERRUPTED_IN, INTERRUPTED_IN)
    job.spec = job.cluster.run_spec()
    outcome = job.run()
    assert (outcome.epochs, outcome.steps) == (OPTIONS["epochs"], OPTIONS["epochs"])
    assert has_the_trees_of(job, alone)


def test_a_damaged_checkpoint_is_named_and_an_older_one_takes_its_place() -> None:
    job = one_process(steps=1, epochs=100_000)
    interrupt(
        job, lambda _: len(checkpoints(job)) > 1
    )  # none is begun while a slow disk writes the one before
    *_, older, newest = checkpoints(job)
    (job.folder.checkpoints / newest / "weights.safetensors").write_bytes(b"")
    found = prepare(job.folder)
    assert found.checkpoint == older
    assert any(newest in warning for warning in found.warnings)


def test_a_short_training_writes_no_checkpoint_and_no_state() -> None:
    job = one_process()
    job.run_here(threading.Event())
    assert not job.folder.checkpoints.exists()
    assert [path.name for path in job.cluster.path.iterdir()] == ["spec.json", "state.lock"]


def test_a_training_that_fails_is_kept_if_it_has_a_checkpoint() -> None:
    for steps, kept in ((0, False), (1, True)):
        job = one_process(steps)
        job.run_here(threading.Event())
        job.archive.unlink()
        job.folder.end("failed", "the loss became nan")
        assert (job.folder.can_resume, job.folder.rows.exists()) == (kept, kept)


def test_a_job_is_not_resumed_while_its_last_process_still_writes_its_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edl.master.resume.WAIT_SECONDS", 0.0)
    job = one_process()
    interrupt(job)
    store = FileStateStore(job.cluster.state)
    with pytest.raises(ClusterError, match="a process of the job's last run has not ended"):
        prepare(job.folder)
    store.close()
    prepare(job.folder)


def test_sigterm_ends_a_training_process_after_a_checkpoint() -> None:
    job = one_process(epochs=1_000_000)
    with TrainingProcess.start("lightgbm", 1) as process:
        told = False

        def observe(event: ProcessEvent) -> None:
            nonlocal told
            if isinstance(event, EpochEnd) and not told:
                told = True
                process._process.send_signal(signal.SIGTERM)

        with pytest.raises(JobInterruptedError):
            process.run(job.folder.program, job.folder.path, observe)
        process._process.wait(10)
    assert len(checkpoints(job)) == 1
