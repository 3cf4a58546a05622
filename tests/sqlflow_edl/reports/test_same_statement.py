"""What a job that begins says of earlier jobs of its statement."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, Process, RunSpec
from edl.jobs.job_folder import Kind
from edl.models.pending import Intent, write_intent
from sqlflow_edl.reports.same_statement import describe_jobs

STATEMENT = "SELECT * FROM t TO TRAIN DNNRegressor LABEL y INTO m"
SOURCE = "duckdb:///samples.db"


def begun(kind: Kind = "train", statement: str = STATEMENT, source: str = SOURCE) -> job_folder.JobFolder:
    job = job_folder.create(kind, statement)
    write_intent(job.path, Intent(kind, source, "m"))
    return job


def notes_of_new_job(statement: str = STATEMENT) -> list[str]:
    return [*describe_jobs(job_folder.create("train", statement), SOURCE)]


def test_a_job_that_runs_is_named_with_its_process() -> None:
    running = begun()
    assert notes_of_new_job() == [f"job {running.id} runs this statement, too, in process {os.getpid()}"]


@pytest.mark.parametrize("kind", ["train", "predict"])
def test_one_that_can_be_followed_is_named_with_the_command(kind: Kind) -> None:
    running = begun(kind)
    ClusterFolder(running.path).write_process("supervisor", Process.of(os.getpid()))
    own = job_folder.create(kind, STATEMENT)
    assert [*describe_jobs(own, SOURCE)] == [
        f"job {running.id} runs this statement, too: `sqlflow attach {running.id}` follows it"
    ]


def test_a_job_that_was_interrupted_is_named_with_the_command_that_continues_it(tmp_path: Path) -> None:
    before = begun()
    ClusterFolder(before.path).write_run_spec(RunSpec("torch", folder=str(tmp_path)))
    before.end("interrupted", "")
    assert notes_of_new_job() == [
        f"job {before.id} of this statement ended early: `sqlflow resume {before.id}` continues that one"
    ]


def test_nothing_is_said_of_jobs_of_others_and_of_those_that_have_ended() -> None:
    begun(statement=STATEMENT + "2")
    begun("predict")
    begun(source="duckdb:///other.db")
    begun().end("done", "")
    (begun().path / "status.json").write_bytes(b"{")
    assert notes_of_new_job() == []


def test_jobs_without_a_statement_have_nothing_in_common() -> None:
    begun(statement="")
    assert notes_of_new_job("") == []
