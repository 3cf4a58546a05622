"""The job folder of a job that somebody waits for."""

from __future__ import annotations

import pytest

from edl.errors import ClusterError, SQLFlowError
from edl.jobs import job_folder as jobs
from edl.jobs.outcome import JobCancelledError, JobDiedError
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
