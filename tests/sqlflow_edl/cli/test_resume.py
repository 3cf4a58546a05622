"""`sqlflow resume ID`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

from edl.cli.main import main as edl
from edl.errors import SourceError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, RunSpec
from edl.jobs.job_folder import JobFolder
from edl.jobs.snapshot import read_snapshot
from edl.models.archive import read_archive
from edl.models.pending import Intent, write_intent
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.edl.end_to_end.test_resume import kill_processes
from tests.edl.master.test_resume import job_with_master

PROGRAM = Path(__file__).with_name("train.sql")
SECONDS = 60.0
ARCHIVE = Path("tests/fixtures/museum/job.zip")


def died(tmp_path: Path) -> JobFolder:
    """A training with a master that has died."""
    job = job_with_master()
    ClusterFolder(job.path).write_run_spec(RunSpec("torch", folder=str(tmp_path)))
    job.end("died")
    return job


def test_a_job_that_has_succeeded_is_not_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    job.end("done")
    assert main(["resume", job.id]) == exit_codes.FAILED
    assert f"job {job.id} cannot be resumed: it has succeeded" in capsys.readouterr().err


def test_a_job_of_another_command_is_not_resumed_by_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = died(tmp_path)
    assert main(["resume", job.id]) == exit_codes.FAILED
    assert f"edl train --resume {job.path}" in capsys.readouterr().err


def test_a_job_without_its_database_is_not_resumed_and_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = died(tmp_path)
    write_intent(job.path, Intent("train", "duckdb:///gone.duckdb", "m"))
    assert main(["resume", job.id]) == exit_codes.FAILED
    assert f"there is no database file {tmp_path / 'gone.duckdb'}" in capsys.readouterr().err
    assert job.status().state == "died"


def test_what_jobs_keep_is_removed_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = died(tmp_path)
    assert main(["job", job.id]) == exit_codes.OK
    assert f"`edl train --resume {job.id}` continues it, until" in capsys.readouterr().out
    assert main(["jobs", "--clean"]) == exit_codes.OK
    assert "removed the rows and checkpoints of 1 job\n" in capsys.readouterr().err
    assert not job.can_resume


def run(folder: Path) -> subprocess.Popen[bytes]:
    """Run the program on a database of the folder, by its relative path."""
    duckdb.connect(str(folder / "my.duckdb")).close()
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "run", str(PROGRAM)]
    source = ["--source", "duckdb:///my.duckdb", "--workers", "1", "--quiet"]
    return subprocess.Popen([*command, *source], cwd=folder)


def weights(folder: Path) -> dict[str, np.ndarray]:
    archive = folder / "m.zip"
    with Session(f"duckdb:///{folder}/my.duckdb") as session:
        session.registry.load("m", archive)
    return dict(read_archive(archive).weights())


def newest_checkpoint(job: JobFolder) -> int:
    snapshot = read_snapshot(ClusterFolder(job.path).snapshot)
    return int(snapshot.checkpoint[:12]) if snapshot is not None and snapshot.checkpoint else 0


@pytest.mark.soak
def test_a_statement_is_resumed_from_another_folder_after_its_processes_and_client_are_killed_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    broken.mkdir()
    whole.mkdir()
    with run(broken) as client:
        deadline = time.monotonic() + SECONDS
        while not (jobs := job_folder.jobs()) or newest_checkpoint(jobs[0]) < 1000:
            assert time.monotonic() < deadline
            assert client.poll() is None
            time.sleep(0.05)
        kill_processes(jobs[0], client.pid)
    [job] = job_folder.jobs()
    assert main(["jobs", "--format", "csv"]) == exit_codes.OK
    assert ",died," in capsys.readouterr().out
    assert main(["resume", job.id[-6:]]) == exit_codes.OK
    said = capsys.readouterr().err
    assert f"job {job.id}: training resumes from step" in said
    assert "; stored m" in said
    assert job.status().state == "done"
    assert run(whole).wait() == exit_codes.OK
    expected, found = weights(whole), weights(broken)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


class Locking(Silent):
    """Makes the database refuse changes when the model is trained."""

    session: Session

    def __init__(self) -> None:
        self.notes: list[str] = []

    def doing(self, what: str) -> None:
        if what == "storing the model":
            refuse_changes(self.session, refused=True)

    def note(self, text: str) -> None:
        self.notes.append(text)


def refuse_changes(session: Session, *, refused: bool) -> None:
    session.source.connection.execute(f"PRAGMA query_only = {refused:d}")  # type: ignore[attr-defined]


TRANSFORM = "SELECT * FROM iris TO TRAIN Transform COLUMN BUCKETIZE(km, 4) INTO t"


def test_a_model_that_its_database_refused_at_the_end_is_stored_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    observer = Locking()
    with Session(f"sqlite:{tmp_path}/my.sqlite", create=True, observer=observer) as session:
        list(session.run("CREATE TABLE iris AS SELECT 1 AS km UNION ALL SELECT 2"))
        observer.session = session
        with pytest.raises(SourceError):
            list(session.run(TRANSFORM))
        [job] = job_folder.jobs()
        assert job.archive.exists()
        assert observer.notes[-1] == f"the model is in {job.archive}; `sqlflow resume {job.id}` stores it"
        refuse_changes(session, refused=False)
        assert session.registry.list() == []
        assert main(["job", job.id]) == exit_codes.OK
        assert f"`sqlflow resume {job.id}` stores it" in capsys.readouterr().out
        assert main(["resume", job.id]) == exit_codes.OK
        assert capsys.readouterr().err == f"job {job.id} had finished: stored the model t@1\n"
        assert [found.reference for found in session.registry.list()] == ["t@1"]
    assert (job.status().state, job.archive.exists()) == ("done", False)
    assert main(["resume", job.id]) == exit_codes.FAILED
    assert "it has succeeded" in capsys.readouterr().err


def test_an_account_that_may_not_store_models_is_told_before_the_training(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with Session(f"sqlite:{tmp_path}/my.sqlite", create=True, model_store=str(store)) as session:
        list(session.run("CREATE TABLE iris AS SELECT 1 AS km UNION ALL SELECT 2"))
        session.registry.check_save("t")
        (store / "models").rmdir()
        (store / "models").write_text("a file, into which nobody may write models")
        with pytest.raises(SourceError, match="cannot be written to") as caught:
            list(session.run(TRANSFORM))
        assert caught.value.span is not None
        assert job_folder.jobs() == []


def test_a_model_is_fetched_as_a_file_if_its_database_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = died(tmp_path)
    shutil.copyfile(ARCHIVE, job.archive)
    write_intent(job.path, Intent("train", "duckdb:///gone.duckdb", "m"))
    assert main(["resume", job.id]) == exit_codes.FAILED
    assert f"`edl fetch {job.id} --output FILE.zip` writes its model to a file" in capsys.readouterr().err
    assert edl(["fetch", job.id, "--output", str(tmp_path / "m.zip")]) == exit_codes.OK
    assert (tmp_path / "m.zip").read_bytes() == ARCHIVE.read_bytes()
    assert job.archive.exists()
