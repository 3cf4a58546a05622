"""Steps that lead over times without rows: nights, weekends."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.forecasting.grid import grid
from edl.forecasting.steps import find_open, infer, move_times, number_steps, ticks
from edl.spec.forecast import Step

MONDAY = datetime(2024, 1, 1)
WORKDAYS = Step(1, "day", 7, (0, 1, 4, 5, 6))
OFFICE = Step(3600, "second", 24, tuple(range(9, 18)))


def days(count: int, weekdays: str = "0123456", start: datetime = MONDAY) -> list[date]:
    every = (start + timedelta(number) for number in range(count))
    return [day.date() for day in every if str(day.weekday()) in weekdays]


def hours(count: int, opened: range, weekdays: str = "0123456") -> list[datetime]:
    every = (MONDAY + timedelta(hours=number) for number in range(count))
    return [time for time in every if time.hour in opened and str(time.weekday()) in weekdays]


def step_of(times: list[Any]) -> Step:
    array, same = pa.array(times), np.ones(len(times) - 1, dtype=bool)
    step = infer(array, same, "t")
    return find_open(step, ticks(step, array, "t"), same)


@pytest.mark.parametrize(
    ("times", "text", "words", "season"),
    [
        (days(60, "01234"), "1 day in 0-1,4-6 of 7", "1 day, Monday to Friday", 5),
        (days(60, "012345"), "1 day in 0-2,4-6 of 7", "1 day, Monday to Saturday", 6),
        (days(60, "0246"), "1 day in 1,3-4,6 of 7", "1 day, Monday, Wednesday, Friday, Sunday", 4),
        (hours(24 * 9, range(9, 18)), "3600 second in 9-17 of 24", "1 hour, 09:00 to 17:00", 9),
        (
            hours(24 * 40, range(9, 12), "01234"),
            "3600 second in 9-11,33-35,105-107,129-131,153-155 of 168",
            "1 hour, 15 of 168 in a week",
            3,
        ),
    ],
)
def test_times_that_never_have_rows_are_left_out(
    times: list[Any], text: str, words: str, season: int
) -> None:
    step = step_of(times)
    assert (str(step), step.words, step.season) == (text, words, season)
    assert Step.parse(text) == step


@pytest.mark.parametrize(
    "times",
    [
        days(60),
        days(20, "01234"),
        [day for number, day in enumerate(days(60)) if number % 5],
        list(np.random.default_rng(1).permutation(days(28))[:18]),
    ],
    ids=["all days", "less than three weeks", "gaps at other places", "few rows at random"],
)
def test_gaps_that_do_not_return_stay_gaps(times: list[date]) -> None:
    assert not step_of(sorted(times)).period


def test_open_times_are_numbered_one_after_another() -> None:
    times = pa.array(days(14, "01234"))
    assert np.diff(number_steps(WORKDAYS, ticks(WORKDAYS, times, "t"))).tolist() == [1] * 9


@pytest.mark.parametrize(
    ("time", "step", "later"),
    [
        (
            date(2024, 1, 5),
            WORKDAYS,
            [date(2024, 1, 8), date(2024, 1, 9), date(2024, 1, 12), date(2024, 1, 15)],
        ),
        (
            datetime(2024, 1, 5, 17, 30),
            OFFICE,
            [datetime(2024, 1, 6, hour, 30) for hour in (9, 10, 13, 14)],
        ),
    ],
)
def test_the_next_steps_are_open(time: Any, step: Step, later: list[Any]) -> None:
    times = pa.chunked_array([pa.array([time] * 4)])
    assert move_times(times, np.array([1, 2, 5, 6]), step).to_pylist() == later


def table(times: list[date]) -> pa.Table:
    return pa.table({"t": times, "y": np.arange(len(times), dtype=np.float64)})


def test_the_series_of_open_times_has_no_gaps() -> None:
    series = grid(table(days(60, "01234")), "y", "t", [])
    assert (series.step, series.missing, len(series.values)) == (WORKDAYS, 0, len(days(60, "01234")))


@pytest.mark.parametrize(
    ("times", "step", "message"),
    [
        (
            days(30, "012345"),
            WORKDAYS,
            "t = 2024-01-06 is no time of the model's steps of 1 day, Monday to Friday",
        ),
        (days(60, "0"), Step(1, "day"), "t has steps of 7 days, and the model learned steps of 1 day"),
        ([date(2024, month, 1) for month in (1, 4, 7, 10)], Step(1, "month"), "t has steps of 3 months, and"),
    ],
)
def test_rows_at_other_times_than_the_model_learned_are_an_error(
    times: list[date], step: Step, message: str
) -> None:
    with pytest.raises(SemanticError, match=message):
        grid(table(times), "y", "t", [], step)
