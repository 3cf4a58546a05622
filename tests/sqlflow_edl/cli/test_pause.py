"""`sqlflow pause ID`, and paused jobs in the other commands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edl.checkpoints.factory import VARIABLE
from edl.jobs import job_folder
from edl.jobs.cluster_folder import MASTER, SCRIPT_MASTER, ClusterFolder, RunSpec
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobPausedError
from edl.spec import Cluster
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.edl.cluster.local.conftest import Stage
from tests.edl.master.test_resume import job_with_master
from tests.sqlflow_edl.cli.test_scale import describe, supervised


def refusal(job: JobFolder, capsys: pytest.CaptureFixture[str], command: str = "pause") -> str:
    assert main([command, job.id]) == exit_codes.FAILED
    return capsys.readouterr().err


def paused(tmp_path: Any) -> JobFolder:
    """A training with a master that is paused."""
    job = job_with_master()
    ClusterFolder(job.path).write_run_spec(RunSpec("torch", folder=str(tmp_path)))
    job.end("paused")
    return job


def test_the_processes_of_a_running_job_leave_and_it_is_paused_for_all_who_look(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.spec = msgspec.structs.replace(stage.spec, master=MASTER)
    stage.job.update(kind="train")
    describe(stage.job, "train", Cluster(workers=2, strategy="allreduce"))
    running = stage.start()
    workers = [stage.enter(), stage.enter()]
    job = stage.job
    assert main(["pause", job.id]) == exit_codes.OK
    assert capsys.readouterr().err == (
        f"job {job.id} is paused; when it is resumed, there is no checkpoint: training starts from the beginning\n"
        f"`edl train --resume {job.id}` continues it\n"
    )
    for worker in workers:
        worker.wait()
    with pytest.raises(JobPausedError):
        running.follow(lambda event: None)
    assert job.status().state == "paused"
    assert main(["attach", job.id]) == exit_codes.FAILED
    assert capsys.readouterr().err == f"job {job.id} is paused; `edl train --resume {job.id}` continues it\n"


@pytest.mark.parametrize(
    ("job", "said", "hint"),
    [
        (
            lambda: job_folder.create("train"),
            "it runs in one process, which has no master",
            "--workers 1",
        ),
        (
            lambda: job_folder.create("predict"),
            "it is not a training, but of the kind predict",
            "sqlflow cancel",
        ),
        (lambda: supervised(master=SCRIPT_MASTER), "it runs a script of `edl run`", "sqlflow cancel"),
        (
            lambda: supervised(Cluster(2, 2, "async"), environment={VARIABLE: "master"}),
            "its checkpoints are in the memory of its parameter servers",
            "EDL_CHECKPOINTS",
        ),
    ],
)
def test_a_job_that_could_not_be_resumed_is_not_paused(
    job: Any, said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = job()
    told = refusal(found, capsys)
    assert f"job {found.id} cannot be paused: {said}" in told
    assert hint in told
    assert found.status().is_alive


def test_a_job_that_has_ended_or_is_paused_is_not_paused(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_folder.create("train")
    job.end("done")
    assert "does not run: its state is done" in refusal(job, capsys)
    told = refusal(found := paused(tmp_path), capsys)
    assert "is paused already" in told
    assert f"`edl train --resume {found.id}` continues it" in told


def test_a_paused_job_is_kept_until_it_is_resumed_or_cancelled(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    job = paused(tmp_path)
    assert main(["jobs", "--clean", "--format", "csv"]) == exit_codes.OK
    said = capsys.readouterr()
    assert ",paused," in said.out
    assert "removed the rows and checkpoints of 0 jobs" in said.err
    job_folder.sweep()
    assert job.can_resume
    assert not job_folder.is_over(job.id)
    assert main(["job", job.id]) == exit_codes.OK
    assert f"`edl train --resume {job.id}` continues it\n" in capsys.readouterr().out.replace("  ", "")
    assert f"edl train --resume {job.path}" in refusal(job, capsys, "resume")
    assert main(["cancel", job.id]) == exit_codes.OK
    assert (job.status().state, job.rows.exists(), job.can_resume) == ("cancelled", False, False)
