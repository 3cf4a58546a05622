"""Searches in real training processes: the ensemble that is stored, and searches that end early or fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from edl.cluster.local.client import SupervisedJob
from edl.errors import JobError
from edl.jobs.cluster_folder import ClusterFolder, RunSpec, with_surroundings
from edl.jobs.events import ProcessEvent, Progress, TrialEnd
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobInterruptedError, Outcome
from edl.jobs.trials import RECORD
from edl.master.resume import prepare
from edl.models.archive import Archive, read_archive
from edl.run.search import selection, trial_pool, trial_runner
from edl.run.search.trial import SCORES
from edl.run.search.trial_runner import folder_of, screening_folder_of
from edl.run.training_client import TrainingProcess
from edl.spec import ENSEMBLE, Rows
from tests.edl.run.conftest import new_job
from tests.edl.run.search.conftest import LONG, PLAIN, dies, loads, run, searching, waves

TEST = 20
PARTS = Rows(True, 120, 50, 50)  # and test rows behind them


@dataclass(frozen=True)
class Searched:
    job: JobFolder
    outcome: Outcome
    archive: Archive
    events: list[ProcessEvent]

    def scores(self, number: int, fold: int) -> np.ndarray:
        return np.load(folder_of(self.job, number, fold).path / SCORES)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    """A search among three candidates in two folds, with test rows."""
    folder = tmp_path_factory.mktemp("search")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        job = new_job(waves())
        events: list[ProcessEvent] = []
        program = searching(folder / "program", PLAIN, rows=PARTS, test=TEST, folds=2)
        outcome = run(program, job, threads=2, observer=events.append)
        yield Searched(job, outcome, read_archive(job.archive), events)


def rmse(labels: np.ndarray, scores: np.ndarray) -> float:
    return float(np.sqrt(np.mean((labels - scores[:, 0]) ** 2)))


@pytest.mark.soak
def test_every_candidate_is_a_trial_with_its_figures_and_its_statement(searched: Searched) -> None:
    trials = searched.outcome.trials
    assert [trial.number for trial in trials] == [1, 2, 3]
    assert [trial.name for trial in trials] == ["Trees 0", "Trees 1", "Trees 2"]
    assert [trial.statement for trial in trials] == ["SELECT 0", "SELECT 1", "SELECT 2"]
    assert all(trial.figures["rmse"] == trial.value and not trial.error for trial in trials)
    assert searched.archive.trials == trials


@pytest.mark.soak
def test_a_trial_is_measured_on_the_validation_rows_of_all_its_folds(searched: Searched) -> None:
    labels = waves()["y"].to_numpy()
    for number, trial in enumerate(searched.outcome.trials):
        earlier, later = searched.scores(number, 1)[:50], searched.scores(number, 0)[:50]
        assert trial.value == pytest.approx(rmse(labels[:100], np.concatenate([earlier, later])), rel=1e-7)


def test_the_ensemble_is_better_than_its_members_and_its_shares_are_one_in_sum(searched: Searched) -> None:
    weights = {trial.number: trial.weight for trial in searched.outcome.trials if trial.weight}
    assert sum(weights.values()) == pytest.approx(1)
    members = searched.archive.spec.members
    assert sorted(member.weight for member in members) == sorted(weights.values())
    assert [member.folds for member in members] == [2] * len(members)
    assert searched.archive.spec.framework == ENSEMBLE
    assert searched.archive.spec.search is None
    assert not searched.archive.spec.edited


def test_the_figures_are_of_the_test_rows_which_chose_nothing(searched: Searched) -> None:
    labels = waves()["y"].to_numpy()[100:]
    mean = sum(
        trial.weight * (searched.scores(number, 0)[50:] + searched.scores(number, 1)[50:]) / 2
        for number, trial in enumerate(searched.outcome.trials)
    )
    assert searched.outcome.measured_on == "test"
    assert searched.outcome.figures["rmse"] == pytest.approx(rmse(labels, mean), rel=1e-7)
    assert searched.archive.metrics == searched.outcome.figures


def test_the_importances_of_the_columns_are_measured_on_the_test_rows(searched: Searched) -> None:
    found = searched.archive.importances
    assert found is not None
    assert (found.rows, found.measured_on) == (TEST, "test")
    assert set(found.columns) == set(searched.archive.spec.columns)
    assert next(iter(found.columns)) == "x", "z is noise"
    assert sum(found.shares.values()) == pytest.approx(1)
    assert searched.outcome.importances == found


def test_the_weights_belong_to_the_models_of_each_member_and_fold(searched: Searched) -> None:
    weights = searched.archive.weights()
    members = range(len(searched.archive.spec.members))
    assert {name.rsplit(".", 1)[0] for name in weights} == {
        f"{member}.{fold}" for member in members for fold in (0, 1)
    }
    trials = searched.outcome.trials
    best = max(range(3), key=lambda number: (trials[number].weight, -number))
    own = read_archive(folder_of(searched.job, best, 1).archive).weights()
    for name, values in own.items():
        np.testing.assert_array_equal(weights[f"0.1.{name}"], values)


def test_a_search_tells_of_each_trial_and_of_how_many_have_ended(searched: Searched) -> None:
    ends = [event for event in searched.events if isinstance(event, TrialEnd)]
    assert {(end.number, end.trials, end.metric, end.left) for end in ends} == {
        (number, 3, "rmse", None) for number in (1, 2, 3)
    }
    lowest = np.minimum.accumulate([end.value for end in ends])
    assert [end.best for end in ends] == [True, *(lowest[1:] < lowest[:-1])]
    steps = [event for event in searched.events if isinstance(event, Progress)]
    assert [(step.phase, step.rows, step.total) for step in steps] == [
        ("search", ended, 3) for ended in range(4)
    ]


@pytest.mark.soak
def test_a_search_finds_the_same_ensemble_after_its_process_is_killed_in_a_fold(
    searched: Searched, tmp_path: Path
) -> None:
    killed = [PLAIN[0] | dies(tmp_path / "killed", 2), *PLAIN[1:]]
    job = new_job(waves())
    outcome = run(searching(tmp_path / "program", killed, rows=PARTS, test=TEST, folds=2), job)
    assert outcome.trials[0].weight, "its importances are measured, too"
    assert outcome.importances is not None
    assert loads(tmp_path / "killed") == 3 + 1, "the fold that had ended is not trained again"
    assert outcome.figures == searched.outcome.figures
    assert [(trial.value, trial.weight, trial.error) for trial in outcome.trials] == [
        (trial.value, trial.weight, "") for trial in searched.outcome.trials
    ]
    weights, wanted = read_archive(job.archive).weights(), searched.archive.weights()
    assert weights.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_array_equal(weights[name], values)


def test_a_candidate_that_fails_is_listed_with_its_error_and_ends_nothing(tmp_path: Path) -> None:
    damaged = {"append": "\n\nraise ValueError('no such thing')\n"}
    program = searching(tmp_path / "program", [PLAIN[1], damaged, PLAIN[0], PLAIN[2]])
    (program / "candidates" / "3" / "job.json").unlink()
    ends: list[TrialEnd] = []
    outcome = run(program, observer=lambda event: ends.append(event) if isinstance(event, TrialEnd) else None)
    first, failed, second, missing = outcome.trials
    assert "ValueError: no such thing" in failed.error
    assert missing.error == "there is no program of Trees 3"
    assert (failed.value, failed.figures, failed.weight) == (None, {}, 0.0)
    assert first.weight + second.weight == pytest.approx(1)
    assert outcome.ending == ""
    assert {end.number: end.error for end in ends} == {trial.number: trial.error for trial in outcome.trials}


@pytest.mark.soak
def test_a_candidate_is_given_up_if_its_processes_always_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_runner, "ATTEMPTS", 2)
    outcome = run(searching(tmp_path / "program", [dies(tmp_path / "killed", 1, 2, 3), PLAIN[1]]))
    assert "was killed by SIGKILL" in outcome.trials[0].error
    assert loads(tmp_path / "killed") == 2
    assert outcome.trials[1].weight == 1.0


def test_a_search_of_which_all_candidates_fail_names_the_first_error(tmp_path: Path) -> None:
    damaged = {"append": "\n\nraise ValueError('no such thing')\n"}
    job = new_job(waves())
    with pytest.raises(JobError, match="no candidate of the search could be trained") as caught:
        run(searching(tmp_path / "program", [damaged]), job)
    assert "ValueError: no such thing" in str(caught.value.hint)
    assert not job.archive.exists()


def test_a_search_that_is_cancelled_before_a_trial_ends_leaves_nothing(tmp_path: Path) -> None:
    cancelled, job = threading.Event(), new_job(waves())
    cancelled.set()
    with pytest.raises(JobCancelledError):
        run(searching(tmp_path / "program", [LONG, LONG]), job, cancelled=cancelled)
    assert not job.archive.exists()


def test_a_search_that_is_cancelled_later_keeps_what_it_has_found(tmp_path: Path) -> None:
    cancelled, job = threading.Event(), new_job(waves())

    def cancel(event: ProcessEvent) -> None:
        if isinstance(event, TrialEnd):
            cancelled.set()

    outcome = run(
        searching(tmp_path / "program", [PLAIN[1], LONG, LONG]),
        job,
        observer=cancel,
        cancelled=cancelled,
    )
    assert [trial.number for trial in outcome.trials] == [1]
    assert outcome.ending == "stopped after 1 trial: interrupted"
    assert read_archive(job.archive).lineage.ending == outcome.ending


def interrupted_search() -> JobFolder:
    """A search that is interrupted after its first trial."""
    cancelled, interrupted, job = threading.Event(), threading.Event(), new_job(waves())
    ClusterFolder(job.path).write_run_spec(with_surroundings(RunSpec("ensemble")))

    def interrupt(event: ProcessEvent) -> None:
        if isinstance(event, TrialEnd):
            interrupted.set()
            cancelled.set()

    program = searching(job.program, PLAIN)
    with pytest.raises(JobInterruptedError):
        run(program, job, observer=interrupt, cancelled=cancelled, interrupted=interrupted)
    job.end("interrupted")
    return job


def test_an_interrupted_search_keeps_its_trials_and_the_time_that_was_left() -> None:
    job = interrupted_search()
    assert not job.archive.exists()
    began, ended = float(job.search_began.read_text()), datetime.fromisoformat(job.status().ended)
    found = prepare(job)
    assert found.trials == job.ended_trials >= 1
    assert str(found).startswith(f"the search resumes after {found.trials} finished trial")
    pause = float(job.search_began.read_text()) - began
    assert 0 < pause <= (datetime.now(UTC) - ended).total_seconds()


@pytest.mark.soak
def test_an_interrupted_search_is_resumed_after_its_trials() -> None:
    job = interrupted_search()
    record = folder_of(job, 0, 0).path.parent / RECORD
    before = record.stat().st_mtime_ns
    prepare(job)
    with SupervisedJob.start(job, ClusterFolder(job.path).run_spec()) as running:
        outcome = running.follow(lambda event: None)
    assert [trial.number for trial in outcome.trials] == [1, 2, 3]
    assert record.stat().st_mtime_ns == before


def test_a_search_that_is_out_of_time_keeps_what_it_has_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_pool, "LEAST_SECONDS", 1e6)  # so that there is no time for a second trial
    program = searching(tmp_path / "program", PLAIN, time_limit=1000.0)
    outcome = run(program)
    assert [trial.number for trial in outcome.trials] == [1]
    assert outcome.ending == "stopped after 1 trial: the time limit of 1000 s"


def test_a_search_ends_with_a_trial_on_which_no_other_can_improve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "FEW_ERRORS", 0.9)
    program = searching(tmp_path / "program", [PLAIN[0], LONG, LONG], time_limit=1000.0, refit=True)
    outcome = run(program, threads=2)
    [trial] = outcome.trials
    assert (trial.number, trial.weight, trial.refit) == (1, 1.0, 14)
    said = f"no candidate can improve on rmse {trial.value:.4g} of trial 1, too good to be true of most data"
    assert outcome.stopped == said


def test_a_screening_ends_with_a_trial_on_which_no_other_can_improve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "FEW_ERRORS", 0.9)
    outcome = run(searching(tmp_path / "program", PLAIN, screening=50))
    [trial] = outcome.trials
    assert (trial.number, trial.weight) == (1, 1.0)


def test_a_training_without_an_end_ends_with_the_time_of_its_trial(tmp_path: Path) -> None:
    outcome = run(searching(tmp_path / "program", [LONG], time_limit=1e-9))  # over before it begins
    [trial] = outcome.trials
    assert trial.weight == 1.0
    assert "the time limit of" in trial.ending
    assert outcome.ending == ""


def test_the_best_third_of_a_screening_on_some_rows_is_trained_on_all(tmp_path: Path) -> None:
    job, events = new_job(waves()), list[ProcessEvent]()
    candidates = [{"features": ("z",)}, {}, {"features": ("z",), "epochs": 5}]
    program = searching(tmp_path / "program", candidates, screening=50)
    outcome = run(program, job, threads=2, observer=events.append)
    assert [trial.weight for trial in outcome.trials] == [0, 1, 0]
    first, best, last = outcome.trials
    assert best.value is not None
    for other in (first, last):
        assert (other.value, other.error) == (None, "")
        assert other.ending.endswith("when trained on 50 rows only")
    names = [event.name for event in events if isinstance(event, TrialEnd)]
    assert sorted(names[:3]) == [f"Trees {number}, on 50 rows" for number in range(3)]
    assert names[3:] == ["Trees 1"]
    learned = read_archive(screening_folder_of(job, 1).archive).spec.rows
    assert (learned.training, learned.validation) == (50, 60)
    assert np.load(screening_folder_of(job, 1).path / SCORES).shape == (60, 1)


@pytest.mark.soak
def test_of_a_space_as_many_points_are_tried_as_there_are_trials(tmp_path: Path) -> None:
    program = searching(tmp_path / "program", PLAIN[:2] * 3, trials=3)
    outcome = run(program, threads=2)
    assert [trial.number for trial in outcome.trials] == [1, 2, 3]
    assert outcome.stopped == ""


def test_a_search_needs_validation_rows(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="a search needs validation rows"):
        run(searching(tmp_path / "program", PLAIN[:1], rows=Rows(True, 120, 120, 0)))


def test_a_search_refuses_fewer_rows_than_it_was_compiled_for(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"compiled for 1,000 rows, and its query has 1\d\d"):
        run(searching(tmp_path / "program", PLAIN[:1], rows=Rows(True, 1000, 900, 100)))


def test_an_interrupt_ends_a_search_with_what_it_has_found_and_a_second_one_cancels_it(
    tmp_path: Path,
) -> None:
    program, jobs = (
        searching(tmp_path / "program", [PLAIN[1], LONG, LONG]),
        (new_job(waves()), new_job(waves())),
    )

    def interrupt_once(event: ProcessEvent) -> None:
        if isinstance(event, TrialEnd):
            raise KeyboardInterrupt

    def interrupt_again(event: ProcessEvent) -> None:
        if isinstance(event, TrialEnd) or (isinstance(event, Progress) and event.rows):
            raise KeyboardInterrupt

    with TrainingProcess.start(ENSEMBLE, 1) as process:
        outcome = process.run(program, jobs[0].path, interrupt_once, keeps_best=True)
        assert outcome.ending == "stopped after 1 trial: interrupted"
        assert read_archive(jobs[0].archive).trials == outcome.trials
        with pytest.raises(KeyboardInterrupt):
            process.run(program, jobs[1].path, interrupt_again, keeps_best=True)
        assert process.is_alive


def test_an_error_outside_of_the_trials_ends_the_search(tmp_path: Path) -> None:
    def full(event: object) -> None:
        if isinstance(event, TrialEnd):
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        run(searching(tmp_path / "program", [PLAIN[0], PLAIN[1]]), observer=full)
