"""What jobs made when nobody was there is stored once, whatever dies, and no job stops a session; on each database."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import connect
from edl.data.results import ResultFolder
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventLog
from edl.jobs.outcome import Outcome
from edl.models.pending import Intent, write_intent
from edl.models.registry.records import ModelRecord
from sqlflow_edl.cli.jobs import attach
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.databases import DIALECTS, Databases
from tests.sessions import open_session

RECORD = ModelRecord("DNNRegressor", "torch", 100, {}, "SELECT …")


class Heard(Silent):
    """Keeps the notes of a session."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def stored(url: str) -> str:
    """The URL as jobs keep it, without a password."""
    with connect(url) as source:
        return source.url


def left(url: str, *, archive: bool = True, store: str = "") -> job_folder.JobFolder:
    """A job that has trained a model. Its client and supervisor are gone."""
    job = job_folder.create("train")
    write_intent(job.path, Intent("train", stored(url), "m", RECORD, store))
    with EventLog(ClusterFolder(job.path).events) as events:
        events.write(Outcome("train", 100, 1.0, archive=job.archive.name))
    if archive:
        job.archive.write_bytes(b"weights")
    job.finish(1, "another process")
    return job


def notes(url: str) -> list[str]:
    """What the next session tells."""
    heard = Heard()
    with open_session(url, observer=heard):
        return heard.notes


def test_opening_a_session_alone_stores_nothing(url: str) -> None:
    job = job_folder.create("predict")
    ResultFolder(job.results).stage(0, 0, [pa.record_batch({"id": [1]})])
    with EventLog(ClusterFolder(job.path).events) as events:
        events.write(Outcome("predict", 1, 1.0, tasks=1))
    write_intent(job.path, Intent("predict", stored(url), "k"))
    job.finish(1, "another process")
    heard = Heard()
    with Session(url, observer=heard) as session:
        assert heard.notes == []
        assert job.status().state == "finished"
        session.maintain()
        assert heard.notes == [f"job {job.id} had finished: wrote 1 rows to k"]


def test_rows_that_a_job_left_are_added_or_written(url: str) -> None:
    for target, append, words in (("k", False, "wrote"), ("k", True, "added"), ("k", True, "added")):
        job = job_folder.create("predict")
        ResultFolder(job.results).stage(0, 0, [pa.record_batch({"id": [1, 2], "guess": [0.5, 1.5]})])
        with EventLog(ClusterFolder(job.path).events) as events:
            events.write(Outcome("predict", 2, 1.0, tasks=1))
        write_intent(job.path, Intent("predict", stored(url), target, append=append))
        job.finish(1, "another process")
        assert notes(url) == [f"job {job.id} had finished: {words} 2 rows to k"]
        words = "; added its rows to k" if append else "; stored k"
        assert words in attach._describe_end(job, Outcome("predict", 2, 1.0, tasks=1))
    with connect(url) as source:
        assert source.stream("SELECT * FROM k").read_all().num_rows == 6


def versions(url: str) -> list[str]:
    with open_session(url) as session:
        return [found.reference for found in session.registry.list()]


def test_a_model_is_stored_once_though_the_session_dies_before_it_says_so(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: job_folder.JobFolder, state: job_folder.State, error: str = "") -> None:
        raise KeyboardInterrupt

    job = left(url)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(job_folder.JobFolder, "end", die)
        notes(url)
    assert job.status().state == "finished"
    assert notes(url) == [f"job {job.id} had finished: stored the model m@1"]
    assert versions(url) == ["m@1"]
    assert notes(url) == []


def test_a_model_is_stored_where_its_own_session_kept_models(url: str, tmp_path: Path) -> None:
    store = f"file://{tmp_path}/store"
    job = left(url, store=store)
    assert notes(url) == [f"job {job.id} had finished: stored the model m@1"]
    assert versions(url) == []
    with open_session(url, model_store=store) as session:
        assert [found.reference for found in session.registry.list()] == ["m@1"]


def test_a_job_of_another_source_is_left_where_it_is(url: str, databases: Databases) -> None:
    job = left(url)
    for dialect in DIALECTS:
        with open_session(databases.url(dialect), create=True) as other:
            assert other.registry.list() == []
    assert job.status().is_unclaimed


def test_a_failed_job_of_a_source_that_this_version_does_not_know_stops_no_session(url: str) -> None:
    job = job_folder.create("train")
    write_intent(job.path, Intent("train", "a scheme://of another version", "m", RECORD))
    job.end("failed", "no reason")
    assert notes(url) == []


def test_a_job_that_cannot_be_stored_or_read_stops_no_session(url: str) -> None:
    unreadable, without, good = left(url), left(url, archive=False), left(url)
    (unreadable.path / "intent.json").write_text("{}", encoding="utf-8")
    told = notes(url)
    assert len(told) == 3
    assert unreadable.id in told[0]
    assert told[1].startswith(f"the result of job {without.id} could not be stored")
    assert without.status().state == "failed"
    assert told[2] == f"job {good.id} had finished: stored the model m@2"


def test_jobs_of_edl_which_have_no_source_stop_no_session(url: str) -> None:
    finished, failed = left(url), job_folder.create("train")
    for job in (finished, failed):
        write_intent(job.path, Intent("train", "", "", file="/home/ana/model.zip"))
    failed.end("failed", "the loss became nan")
    assert notes(url) == []
    assert finished.status().is_unclaimed


def test_a_job_has_died_and_keeps_its_model_if_its_client_died_before_it_stored_anything(url: str) -> None:
    job = left(url)
    (job.path / "intent.json").unlink()
    assert notes(url) == []
    assert job.status().state == "died"
    assert job.has_result


def test_a_training_that_failed_when_nobody_was_there_is_listed_once_with_its_reason(url: str) -> None:
    job = job_folder.create("train")
    write_intent(job.path, Intent("train", stored(url), "m", RECORD))
    job.end("failed", "the loss became nan")
    assert notes(url) == [f"job {job.id} failed: the loss became nan"]
    assert notes(url) == []
    with open_session(url) as session:
        [found] = session.registry.list()
        assert (found.reference, found.state, found.reason) == ("m@1", "failed", "the loss became nan")


def test_a_job_of_the_edl_command_whose_result_is_a_file_concerns_no_session(url: str) -> None:
    for exit_state in ("failed", "done"):
        job = job_folder.create("train")
        write_intent(job.path, Intent("train", "", "", file="model.zip"))
        job.end(exit_state, "no candidate of the search could be trained")
    assert notes(url) == []


def test_a_training_that_was_killed_with_its_process_is_a_failed_version(url: str) -> None:
    text = (
        "import os, sys\n"
        "from sqlflow_edl.session.observer import Silent\n"
        "from sqlflow_edl.session.session import Session\n"
        "class Killing(Silent):\n"
        "    def doing(self, what):\n"
        "        if what == 'storing the model':\n"
        "            os.kill(os.getpid(), 9)\n"
        "with Session(sys.argv[1], create=True, observer=Killing()) as session:\n"
        "    list(session.run('CREATE TABLE rides AS SELECT 1 AS km'))\n"
        "    list(session.run('SELECT * FROM rides TO TRAIN Transform COLUMN BUCKETIZE(km, 4) INTO t'))\n"
    )
    child = subprocess.run([sys.executable, "-c", text, url], check=False)
    assert child.returncode == -signal.SIGKILL
    [job] = job_folder.jobs()
    died = "the job's process ended unexpectedly"
    assert notes(url) == [f"job {job.id} died: {died}; `sqlflow resume {job.id}` stores its model"]
    with open_session(url) as session:
        [found] = session.registry.list()
        assert (found.reference, found.state, found.reason) == ("t@1", "failed", died)
    assert (job.status().state, job.has_result) == ("died", True)


def test_a_session_that_is_open_stores_a_finished_job_before_its_next_statement(url: str) -> None:
    heard = Heard()
    with open_session(url, observer=heard) as session:
        job = left(url)
        list(session.run("SELECT 1 AS x"))
        assert heard.notes == [f"job {job.id} had finished: stored the model m@1"]
        assert [found.reference for found in session.registry.list()] == ["m@1"]
        list(session.run("SELECT 1 AS x"))
    assert len(heard.notes) == 1
