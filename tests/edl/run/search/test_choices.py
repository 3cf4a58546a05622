"""Candidates that workers train at each turn of a search, by the records of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edl.jobs.job_folder import JobFolder
from edl.jobs.trials import Trial
from edl.program import Program, load, unload
from edl.run.search.choices import Choices, TrialChoice
from edl.run.search.judge import RECORD, SCREENING_RECORD, Judge
from edl.run.search.schedule import Schedule
from edl.spec import Candidate, Search
from tests.edl.run.conftest import new_job
from tests.edl.run.search.conftest import PLAIN, searching, waves

LAG, POINTS, TRIALS, ORDERED = 2, 24, 9, 4


class Records:
    """A search with trials that have no models, only records."""

    def __init__(self, program: Program, **search: int) -> None:
        draw = np.random.default_rng(3)
        found = program.spec.search
        assert found is not None
        candidates = tuple(
            Candidate(f"{number}", found.candidates[0].spec, (float(draw.uniform()),))
            for number in range(POINTS)
        )
        self.search: Search = msgspec.structs.replace(
            found, candidates=candidates, trials=TRIALS, ordered=ORDERED, **search
        )
        self.job: JobFolder = new_job(waves())
        self.judge = Judge(program, self.job)
        self.judge.search = self.search
        self.choices = Choices(self.judge, lag=LAG)

    def error(self, number: int) -> float:
        return abs(float(self.search.candidates[number].point[0]) - 0.4)

    def end(self, turn: int, number: int, *, screening: bool = False) -> None:
        value = self.error(number)
        trial = (
            Trial(turn + 1, f"{number}", "", screened=value) if screening else Trial(turn + 1, "", "", value)
        )
        path = self.job.search / f"{number:03}" / (SCREENING_RECORD if screening else RECORD)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(trial))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    found = load(searching(Path(tmp_path_factory.mktemp("search")), PLAIN[:1]))
    yield found
    unload(found.module)


def test_the_choices_equal_a_search_in_one_process(program: Program) -> None:
    records = Records(program)
    schedule, errors = Schedule(records.search, lag=LAG), dict[int, float]()
    for turn in range(TRIALS):
        number = schedule.take(errors)
        assert number is not None
        assert records.choices.is_ready(turn)
        assert records.choices.find(turn) == TrialChoice(number, screening=False)
        errors[number] = records.error(number)
        records.end(turn, number)


def test_a_choice_waits_for_trials_before_it_but_for_those_that_may_be_under_way(program: Program) -> None:
    records = Records(program)
    assert records.choices.is_ready(ORDERED - 1)
    for turn in (1, 2, 3):
        records.end(turn, turn)
    assert not records.choices.is_ready(ORDERED)
    records.end(0, 0)
    assert records.choices.is_ready(ORDERED)
    assert records.choices.is_ready(ORDERED + LAG)
    assert not records.choices.is_ready(ORDERED + LAG + 1)


def test_a_turn_without_time_is_not_waited_for(program: Program) -> None:
    records = Records(program)
    for turn in range(ORDERED - 1):
        records.end(turn, turn)
    assert not records.choices.is_ready(ORDERED + LAG)
    records.judge.skip(ORDERED - 1)
    assert records.choices.is_ready(ORDERED + LAG)


def test_the_best_third_of_a_screening_is_trained_on_all_rows_when_all_were_screened(
    program: Program,
) -> None:
    records = Records(program, screening=30)
    assert records.search.turns == TRIALS + 3
    screened = []
    for turn in range(TRIALS):
        assert not records.choices.is_ready(TRIALS)
        found = records.choices.find(turn)
        assert found is not None
        assert found.screening
        screened.append(found.number)
        records.end(turn, found.number, screening=True)
    best = sorted(screened, key=records.error)[:3]
    found_numbers = [records.choices.find(turn) for turn in range(TRIALS, TRIALS + 3)]
    assert found_numbers == [TrialChoice(number, screening=False) for number in best]
    assert records.choices.turn(TRIALS, best[0]) == screened.index(best[0])


def test_of_a_screening_that_ended_early_fewer_are_trained_on_all_rows(program: Program) -> None:
    records = Records(program, screening=30)
    for turn in range(TRIALS):
        records.end(turn, turn, screening=True) if turn < 4 else records.judge.skip(turn)
    assert [records.choices.find(TRIALS + place) is not None for place in range(3)] == [True, True, False]


def test_a_trial_of_a_worker_that_was_lost_before_it_could_report_is_found(program: Program) -> None:
    records = Records(program, screening=30)
    assert records.choices.record(TrialChoice(0, screening=True)) is None
    records.end(0, 0, screening=True)
    found = records.choices.record(TrialChoice(0, screening=True))
    assert found is not None
    assert found.screened == records.error(0)
    assert records.choices.record(TrialChoice(0, screening=False)) is None
