"""Trainings of the chosen models on all rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl.jobs.trials import Trial
from edl.models.archive import read_archive
from edl.program import load, unload
from edl.run.search import refitting, trial_runner
from edl.run.search.judge import Judge
from edl.run.search.refitting import MOST, USUAL, RefitReserve, refits
from edl.run.search.trial_runner import refit_folder_of
from edl.spec import Rows
from tests.edl.run.conftest import new_job
from tests.edl.run.search.conftest import PLAIN, ROWS, dies, loads, run, searching, waves

WITH_TEST = Rows(True, ROWS, 60, 40)


@pytest.mark.soak
def test_the_chosen_models_learn_from_all_rows_at_the_end(tmp_path: Path) -> None:
    job = new_job(waves())
    program = searching(tmp_path / "program", PLAIN[:2], rows=WITH_TEST, test=20, refit=True, max_members=1)
    outcome = run(program, job)
    [chosen] = [trial for trial in outcome.trials if trial.weight]
    assert chosen.refit == round(chosen.epochs * 2**0.5)
    refit = read_archive(refit_folder_of(job, chosen.number - 1).archive)
    assert (refit.spec.rows.training, refit.spec.rows.validation) == (ROWS, 0)
    assert refit.spec.training.epochs == chosen.refit
    archive = read_archive(job.archive)
    assert archive.weights()["booster"].tobytes() == refit.weights()["booster"].tobytes()
    rows = archive.spec.rows  # those that its figures and its curve are of
    assert (rows.training, rows.validation) == (60, 40)
    assert len(archive.curve) == 10


@pytest.mark.soak
def test_the_figures_belong_to_the_models_before_the_refit(tmp_path: Path) -> None:
    found = [
        run(searching(tmp_path / f"{refit}", PLAIN[:2], rows=WITH_TEST, test=20, refit=refit))
        for refit in (False, True)
    ]
    assert found[0].figures == found[1].figures
    assert found[0].measured_on == "test"


@pytest.mark.soak
def test_a_refit_model_of_an_ensemble_replaces_the_models_of_its_folds(tmp_path: Path) -> None:
    job = new_job(waves())
    run(searching(tmp_path / "program", PLAIN[:2], rows=Rows(True, ROWS, 80, 40), folds=3, refit=True), job)
    members = read_archive(job.archive).spec.members
    assert [member.folds for member in members] == [1] * len(members)


def test_of_a_search_without_refits_no_trial_misses_one(tmp_path: Path) -> None:
    outcome = run(searching(tmp_path / "program", PLAIN[:2]))
    assert [trial.refit for trial in outcome.trials] == [None, None]


@pytest.mark.soak
def test_a_refit_that_fails_leaves_the_model_of_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_runner, "ATTEMPTS", 1)
    job = new_job(waves())
    died = dies(tmp_path / "died", *range(2, 20))
    outcome = run(searching(tmp_path / "program", [died], refit=True), job)
    assert [trial.refit for trial in outcome.trials] == [0]
    assert read_archive(job.archive).spec.rows.training == 60


@pytest.mark.soak
def test_a_refit_begins_again_if_its_process_dies(tmp_path: Path) -> None:
    outcome = run(searching(tmp_path / "program", [dies(tmp_path / "died", 2)], refit=True))
    assert [trial.refit for trial in outcome.trials] == [14]
    assert outcome.importances is not None
    assert loads(tmp_path / "died") == 3 + 1, "the trial, the refit twice, and the importances"


@pytest.mark.soak
def test_a_refit_that_has_not_the_time_it_needs_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refitting, "_growth", lambda rows: 1e9)
    outcome = run(searching(tmp_path / "program", PLAIN[:1], refit=True, time_limit=1e6))
    assert [trial.refit for trial in outcome.trials] == [0]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    program = load(searching(tmp_path / "program", PLAIN, refit=True, time_limit=100.0, max_members=2))
    try:
        return Judge(program, new_job(waves()))
    finally:
        unload(program.module)


def trials(*seconds: float) -> dict[int, Trial]:
    return {
        number: Trial(number + 1, "", "", value=number, epochs=10, epoch_seconds=each / 10)
        for number, each in enumerate(seconds)
    }


def test_the_first_refits_are_those_that_weigh_most_for_their_time(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "trials", lambda: trials(10.0, 1.0, 2.0))
    found = refits(judge, {0: 0.6, 1: 0.1, 2: 0.3})
    assert [(each.number, each.epochs, round(each.seconds, 6)) for each in found] == [
        (2, 14, 5.6),
        (1, 14, 2.8),
        (0, 14, 28.0),
    ]


@pytest.mark.parametrize(
    ("ended", "kept"),
    [((), USUAL * 100), ((3.0,), 4.2), ((3.0, 1.0, 20.0), 5.6), ((60.0, 60.0), MOST * 100)],
)
def test_a_search_keeps_time_for_the_refits_of_its_present_ensemble(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, ended: tuple[float, ...], kept: float
) -> None:
    truth = judge.measure.labels.astype(np.float64)
    noise = np.linspace(-1, 1, len(truth))[:, None]
    scores = truth + noise, truth - noise, np.zeros_like(truth) + 9  # the first two are best together
    monkeypatch.setattr(judge, "trials", lambda: trials(*ended))
    monkeypatch.setattr(judge, "scores", lambda number: scores[number])
    reserve = RefitReserve(judge, slots=2, seconds=100.0)
    assert reserve.estimate() == pytest.approx(kept)
    assert reserve.estimate() == pytest.approx(kept)
