"""What a master puts into the data source when its job is over: all of it once, however often it begins."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.retry import AWAY
from edl.data.source import UnreachableError
from edl.jobs.failure import Failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.master import result_store
from edl.master.result_store import SourceResultStore
from edl.models.pending import Intent
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord

RECORD = ModelRecord("DNNRegressor", "torch", 100, {}, "SELECT …")
FAILED = Failed("error", "the loss became nan")
CANCELLED = Failed("cancelled", "the job was cancelled")
PREDICTED = Outcome("predict", 3, 1.0, tasks=2)


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"sqlite:{tmp_path / 's.sqlite'}"
    with connect(place, create=True) as source:
        for task in range(2):
            stage(source, task)
    return place


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "20260101-120000-000000-abcdef")


def stage(source: Source, task: int) -> None:
    rows = [pa.record_batch({"a": [task] * (task + 1)})]
    source.stage("scores", "20260101-120000-000000-abcdef", task, 1, rows)


def test_results_become_a_table_once_though_a_master_died_before_it_told(job: JobFolder, url: str) -> None:
    for _ in range(2):
        end = SourceResultStore(job, Intent("predict", url, "scores")).end(PREDICTED)
        assert isinstance(end, Outcome)
        assert end.stored == "scores: 3 rows"
    with connect(url) as source:
        assert "scores" in source.tables()


def test_results_are_added_to_a_table_once_though_a_master_died_before_it_told(
    job: JobFolder, url: str
) -> None:
    with connect(url) as source:
        source.execute("CREATE TABLE scores (a INTEGER)")
    for _ in range(2):
        end = SourceResultStore(job, Intent("predict", url, "scores", append=True)).end(PREDICTED)
        assert isinstance(end, Outcome)
        assert end.stored == "scores: 3 rows"
    with connect(url) as source:
        assert source.stream("SELECT a FROM scores").read_all()["a"].to_pylist() == [0, 1, 1]


def test_a_model_was_stored_by_its_worker(job: JobFolder, url: str) -> None:
    trained = Outcome("train", 100, 1.0, stored="m@1")
    assert SourceResultStore(job, Intent("train", url, "m", RECORD)).end(trained) == trained


def test_figures_alone_are_stored_nowhere(job: JobFolder, url: str) -> None:
    measured = Outcome("evaluate", 3, 1.0, figures={"loss": 0.5}, tasks=1)
    assert SourceResultStore(job, Intent("evaluate", url, "")).end(measured) == measured


def test_a_training_that_failed_is_a_version_with_its_reason(job: JobFolder, url: str) -> None:
    for _ in range(2):
        assert SourceResultStore(job, Intent("train", url, "m", RECORD)).end(FAILED) == FAILED
    with connect(url) as source:
        [version] = open_registry(source).list()
    assert (version.state, version.reason) == ("failed", FAILED.message)


def test_a_training_that_was_cancelled_is_none(job: JobFolder, url: str) -> None:
    SourceResultStore(job, Intent("train", url, "m", RECORD)).end(CANCELLED)
    with connect(url) as source:
        assert not open_registry(source).list()


@pytest.mark.parametrize("end", [FAILED, CANCELLED])
def test_what_was_staged_is_dropped_when_the_job_did_not_get_there(
    job: JobFolder, url: str, end: Failed
) -> None:
    SourceResultStore(job, Intent("predict", url, "scores")).end(end)
    with connect(url) as source:
        assert "scores" not in source.tables()
        assert source.sweep(lambda job: True) == 0


def test_a_table_that_cannot_be_made_is_how_the_job_ends(job: JobFolder, url: str) -> None:
    with connect(url) as source:
        source.execute("CREATE TABLE scores (mine INTEGER)")
    end = SourceResultStore(job, Intent("predict", url, "scores")).end(PREDICTED)
    assert isinstance(end, Failed)
    assert "scores exists and was not made by sqlflow-edl" in end.message


def test_a_source_that_is_away_for_a_while_is_waited_for(
    job: JobFolder, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def opened(source: str) -> Source:
        if len(waited) < 3:
            raise UnreachableError("cannot open the database")
        return connect(source)

    monkeypatch.setattr(result_store, "connect", opened)
    end = SourceResultStore(job, Intent("predict", url, "scores"), waited.append).end(PREDICTED)
    assert isinstance(end, Outcome)
    assert waited == [*AWAY[:3]]


def test_a_source_that_stays_away_fails_the_job_with_its_words(
    job: JobFolder, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(source: str) -> Source:
        raise UnreachableError("cannot open the database")

    monkeypatch.setattr(result_store, "connect", opened)
    waited: list[float] = []
    end = SourceResultStore(job, Intent("predict", url, "scores"), waited.append).end(PREDICTED)
    assert isinstance(end, Failed)
    assert end.message == "cannot open the database"
    assert waited == [*AWAY]
