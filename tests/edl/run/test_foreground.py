"""The job folder of a job that somebody waits for."""

from __future__ import annotations

import errno
import os
from contextlib import closing

import pytest

from edl.errors import ClusterError, JobError, SQLFlowError
from edl.jobs import job_folder as jobs
from edl.jobs.cluster_folder import ClusterFolder, RunSpec
from edl.jobs.outcome import JobCancelledError, JobDiedError
from edl.jobs.termination import TerminatedError
from edl.master.state_store import FileStateStore
from edl.run.foreground import job_folder


def test_nothing_is_left_of_a_job_that_is_done_or_failed_here() -> None:
    with job_folder("train") as job:
        (job.logs / "worker-0.log").write_text("done")
    with pytest.raises(ClusterError), job_folder("train"):
        raise ClusterError("its terminal is all the log that there is")
    with pytest.raises(KeyboardInterrupt), job_folder("train") as job:
        (job.logs / "worker-0.log").write_text("left")
        raise KeyboardInterrupt
    assert jobs.jobs() == []


@pytest.mark.parametrize(
    ("ended", "error", "state"),
    [
        ("", JobDiedError("the job's supervisor died"), "died"),
        ("failed", ClusterError("the worker is broken"), "failed"),
        ("cancelled", JobCancelledError(), "cancelled"),
    ],
)
def test_what_instances_have_printed_stays_when_their_job_has_failed(
    ended: jobs.State, error: SQLFlowError, state: str
) -> None:
    with pytest.raises(type(error)), job_folder("train", "a statement") as job:
        (job.logs / "worker-0.log").write_text("Traceback")
        if ended:
            job.end(ended, "as its supervisor says")
        raise error
    assert [(each.status().state, each.status().statement) for each in jobs.jobs()] == [
        (state, "a statement")
    ]
    assert (job.logs / "worker-0.log").read_text() == "Traceback"


@pytest.mark.parametrize(
    "error", [ClusterError("the pipe is broken"), OSError("the bus is broken"), KeyboardInterrupt()]
)
def test_a_result_that_was_not_stored_stays_whatever_the_error(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(error)) as caught, job_folder("train") as job:
        job.archive.write_bytes(b"a model")
        (job.checkpoints / "12").mkdir(parents=True)
        raise error
    assert (job.archive.read_bytes(), job.status().state) == (b"a model", "failed")
    assert job.checkpoints.is_dir()
    said = capsys.readouterr().err + (getattr(caught.value, "hint", "") or "")
    assert f"it is in {job.archive}, and `edl fetch {job.id}` writes it" in said


def resumable_job(job: jobs.JobFolder) -> None:
    """Give the job of this process what it is resumed from."""
    folder = ClusterFolder(job.path)
    folder.write_run_spec(RunSpec("torch"))
    with closing(FileStateStore(folder.state)) as store:
        store.write(b"state")


@pytest.mark.parametrize(
    "error", [JobError("the loss is NaN"), TerminatedError()], ids=["failed", "terminated"]
)
@pytest.mark.parametrize("full", [False, True], ids=["", "the disk is full"])
def test_a_training_in_one_process_stays_with_its_checkpoint_whatever_ends_it(
    error: BaseException, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(type(error)) as caught, job_folder("train") as job:
        resumable_job(job)
        if full:
            monkeypatch.setattr("edl.jobs.job_folder.replace_file", no_room)
        raise error
    assert ClusterFolder(job.path).state.exists()
    assert job.rows.is_dir()
    if isinstance(caught.value, TerminatedError):
        assert caught.value.kept[-1] == job.id
    else:
        assert f"`edl train --resume {job.path}` continues the training" in str(
            getattr(caught.value, "hint", "")
        )
    ended = "interrupted" if isinstance(error, TerminatedError) else "failed"
    assert job.status().state == ("running" if full else ended)
