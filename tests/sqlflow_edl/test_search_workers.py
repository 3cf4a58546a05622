"""Searches with trials as tasks of a master: several workers, and workers that are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.events import JobEvent, TrialEnd
from edl.jobs.job_folder import JobFolder
from edl.jobs.trials import Trial
from edl.models.archive import Archive, read_archive
from sqlflow_edl.analysis.search import portfolio
from sqlflow_edl.backends.find import find
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.searches import short, small
from tests.sessions import open_session
from tests.sqlflow_edl.test_search import HOUSES

SEARCH = (
    "SELECT x, y, city, price FROM houses LABEL price WITH auto.models = lightgbm, auto.folds = 2 INTO prices"
)
SPACE = (
    "SELECT x, y, city, price FROM houses TO TRAIN BoostedTreesRegressor "
    "WITH num_leaves = RANGE(4, 64, log), learning_rate = RANGE(0.05, 0.5), model.framework = lightgbm, "
    "train.num_boost_round = 25, train.time_limit = 300, auto.trials = 12, auto.halving = {halving} "
    "LABEL price INTO prices"
)


class Killing(Silent):
    """Observer that kills a worker when the first trial has ended."""

    def __init__(self) -> None:
        self.killed = ""
        self.trials: list[TrialEnd] = []

    def progress(self, event: JobEvent) -> None:
        if not isinstance(event, TrialEnd):
            return
        self.trials.append(event)
        if not self.killed:
            self.killed, pid = next(running(job_folder.jobs()[-1]))
            os.kill(pid, signal.SIGKILL)


def running(job: JobFolder) -> Iterator[tuple[str, int]]:
    """Yield name and process id of each running worker."""
    for row in find(job.id).details().instances:
        if row.name.startswith("worker-") and row.state == "running":
            yield row.name, int(row.place.removeprefix("pid "))


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"duckdb:///{tmp_path}/houses.duckdb"
    with Session(url, create=True) as session:
        fill(session, "houses", HOUSES)
    return url


def searched(url: str, folder: Path, text: str = SEARCH, **options: object) -> tuple[Result, Archive]:
    with short(), Session(url, **options) as session:  # type: ignore[arg-type]
        [result] = session.run(text)
        session.registry.load(result.model, folder / "model.zip")
        return result, read_archive(folder / "model.zip")


def without_seconds(trials: tuple[Trial, ...]) -> list[tuple[object, ...]]:
    return [
        (each.number, each.name, each.value, each.figures, each.weight, each.screened, each.error)
        for each in trials
    ]


@pytest.mark.soak
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SEARCH, id="list"),
        pytest.param(SPACE.format(halving="false"), id="chosen"),
        pytest.param(SPACE.format(halving="true"), id="halving"),
    ],
)
def test_a_killed_worker_changes_neither_the_trials_nor_the_choice(
    database: str, tmp_path: Path, text: str
) -> None:
    alone, by_itself = searched(database, tmp_path, text)
    observer = Killing()
    result, archive = searched(database, tmp_path, text, workers=2, observer=observer)
    assert observer.killed
    screened = sum(each.screened is not None for each in result.trials)
    promoted = sum(each.screened is not None and each.value is not None for each in result.trials)
    assert (screened, promoted) == ((12, 4) if "true" in text else (0, 0))
    assert len(observer.trials) == len(result.trials) + promoted
    assert without_seconds(result.trials) == without_seconds(alone.trials)
    assert result.figures == alone.figures
    assert [member.weight for member in archive.spec.members] == [
        member.weight for member in by_itself.spec.members
    ]
    log = "".join(path.read_text() for path in job_folder.jobs()[-1].logs.rglob("*.log"))
    assert observer.killed in log


@pytest.mark.soak
def test_workers_begin_no_trial_after_a_perfect_one(database: str, tmp_path: Path) -> None:
    text = "SELECT x, big, big AS known FROM houses LABEL big WITH auto.models = lightgbm, auto.folds = 1, "
    result, archive = searched(database, tmp_path, f"{text} auto.metric = auc INTO m", workers=1)
    assert "no candidate can improve on auc 1 of trial 1" in result.ending
    assert len(result.trials) == len(archive.trials) == 1


@pytest.mark.soak
def test_a_detached_search_stores_its_model_when_it_ends(database: str, tmp_path: Path) -> None:
    with short(trials=2), Session(database) as session:
        [statement] = session.program(SEARCH)
        session.leave(statement)
    job = job_folder.jobs()[-1]
    find(job.id).follow(Silent())
    with open_session(database) as session:
        session.registry.load("prices", tmp_path / "model.zip")
    archive = read_archive(tmp_path / "model.zip")
    assert len(archive.trials) == 2
    assert sum(trial.weight for trial in archive.trials) == pytest.approx(1)


class Interrupting(Silent):
    """Observer that is interrupted when the first trial has ended."""

    interrupted = False

    def progress(self, event: JobEvent) -> None:
        if isinstance(event, TrialEnd) and not self.interrupted:
            self.interrupted = True
            raise KeyboardInterrupt


@pytest.mark.soak
def test_an_interrupt_ends_a_search_with_workers_with_the_trials_that_have_ended(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = small()[0]
    endless = replace(
        first, attributes={**first.attributes, "train.num_boost_round": 10**6, "train.early_stopping": 0}
    )
    monkeypatch.setattr(portfolio, "PORTFOLIO", (first, *[endless] * 4))
    with Session(database, workers=2, observer=Interrupting()) as session:
        [result] = session.run("SELECT x, y, price FROM houses LABEL price WITH auto.folds = 1 INTO early")
    assert "interrupted" in result.ending
    assert [trial.weight for trial in result.trials if trial.value is not None] == [1.0]
    assert all(trial.error == "stopped at the time limit" for trial in result.trials if trial.value is None)
