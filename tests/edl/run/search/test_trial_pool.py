"""The time of trials."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.jobs.outcome import Outcome
from edl.program import read_spec
from edl.run.search import trial_pool, trial_runner
from edl.run.search.trial_pool import TrialPool, needed_seconds, trial_seconds
from edl.run.search.trial_runner import LATE
from edl.run.training_client import TrainingProcess
from edl.run.training_protocol import TrialRun
from edl.spec import Rows
from tests.edl.run.search.conftest import LONG, PLAIN, ROWS, run, searching


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that trainings were given, in their order."""
    found: list[float] = []
    train = TrainingProcess.run

    def noted(self: TrainingProcess, *arguments: Any, trial: TrialRun) -> Outcome:
        if not trial.explained:
            found.append(trial.time_limit)
        return train(self, *arguments, trial=trial)

    monkeypatch.setattr(TrainingProcess, "run", noted)
    return found


def test_while_others_wait_a_trial_has_half_of_the_time_and_its_folds_share_that(
    tmp_path: Path, limits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrialPool, "remaining_seconds", 100.0)
    program = searching(
        tmp_path / "program", PLAIN[:2], rows=Rows(True, ROWS, 60, 60), folds=2, time_limit=9.0
    )
    run(program)
    assert limits == pytest.approx([25.0, 50.0, 50.0, 100.0], rel=0.3)


def test_a_trial_that_does_not_end_in_its_time_is_cancelled_once_there_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_runner, "GRACE", -1.0)
    outcome = run(searching(tmp_path / "program", [PLAIN[1], LONG], time_limit=1e6))
    assert [trial.error for trial in outcome.trials] == ["", "stopped at the time limit"]


def test_a_trial_that_does_not_answer_is_ended_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_runner, "GRACE", -1.0)
    deaf = {"append": "\nimport threading as _threading\n_threading.Event().wait()\n"}
    outcome = run(searching(tmp_path / "program", [PLAIN[1], deaf, PLAIN[0]], time_limit=1e6))
    assert [trial.error for trial in outcome.trials][:2] == ["", LATE]


@pytest.mark.parametrize(("threads", "started"), [(1, 0), (2, 1)])
def test_a_process_that_was_prepared_with_as_many_threads_runs_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, started: int
) -> None:
    prepared = TrainingProcess.start("lightgbm", threads)
    starts: list[str] = []
    start = TrainingProcess.start

    def noted(framework: str, threads: int | None = None) -> TrainingProcess:
        starts.append(framework)
        return start(framework, threads)

    monkeypatch.setattr(TrainingProcess, "start", noted)
    run(searching(tmp_path / "program", PLAIN[:1]), prepared=prepared)
    assert starts == ["lightgbm"] * started


def test_a_trial_needs_what_the_slowest_one_of_its_model_took(tmp_path: Path) -> None:
    program = searching(tmp_path / "program", PLAIN[:2])
    search = read_spec(program).search
    assert search is not None
    assert needed_seconds(search, {}, 1) == 0
    assert needed_seconds(search, {0: 3.5}, 1) == 3.5
    other = msgspec.structs.replace(search.candidates[1].spec, framework="xgboost")
    candidates = (search.candidates[0], msgspec.structs.replace(search.candidates[1], spec=other))
    mixed = msgspec.structs.replace(search, candidates=candidates)
    assert needed_seconds(mixed, {}, 1) == 0
    assert needed_seconds(mixed, {0: 1.5}, 1) == 1.5
    assert needed_seconds(mixed, {0: 12.0}, 1) == trial_pool.UNKNOWN_SECONDS
    assert trial_seconds(10, 0, last=False) == 5
    assert trial_seconds(10, 6, last=False) == 7.5
    assert trial_seconds(10, 9, last=False) == 8
    assert trial_seconds(10, 0, last=True) == 8


def test_a_trial_that_has_not_the_time_it_needs_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_pool, "needed_seconds", lambda search, ended, number: 1e9 * len(ended))
    outcome = run(searching(tmp_path / "program", [PLAIN[0], PLAIN[1]], time_limit=1e6))
    assert [trial.number for trial in outcome.trials] == [1]
    assert outcome.stopped == "the time limit of 1e+06 s"


def test_an_interrupt_of_the_process_that_searches_ends_its_trials(tmp_path: Path) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(searching(tmp_path / "program", [LONG]), cancelled=Interrupted())
    assert not [each.name for each in threading.enumerate() if each.name.startswith("edl-slot")]
