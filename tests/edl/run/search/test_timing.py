"""Time of a search, by a clock that stands until it is moved."""

from __future__ import annotations

import math

import pytest

from edl.run.search.timing import SearchTime


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_what_the_statement_has_taken_before_the_search_is_no_longer_left() -> None:
    clock = Clock()
    search_time = SearchTime(60.0, 15.0, clock)
    assert search_time.given == search_time.seconds_left == 45
    clock.now += 50
    assert search_time.seconds_left == -5


def test_without_a_limit_all_that_comes_after_the_trials_has_its_usual_time() -> None:
    search_time = SearchTime(0.0, 15.0)
    assert search_time.seconds_left == search_time.seconds_before_end == math.inf
    assert search_time.seconds_to_explain == search_time.left_to_explain == 5


def test_importances_take_a_twentieth_of_the_time_and_at_most_five_seconds() -> None:
    assert SearchTime(60.0).seconds_to_explain == 3
    assert SearchTime(300.0).seconds_to_explain == 5


def test_the_trials_leave_time_to_the_importances_and_to_the_storing_of_the_model() -> None:
    search_time = SearchTime(100.0, 0.0, Clock())
    assert search_time.seconds_to_store == 3
    assert search_time.seconds_before_end == 100 - 3 - 5
    search_time.recording = 2.0
    assert search_time.seconds_before_end == 100 - 7 - 5, "a table whose scores take long to read"


def test_of_little_time_most_is_left_to_the_trials() -> None:
    search_time = SearchTime(20.0, 16.0, Clock())
    assert search_time.seconds_before_end == pytest.approx(2.5)


def test_importances_are_left_out_if_the_model_must_be_stored() -> None:
    clock = Clock()
    search_time = SearchTime(100.0, 0.0, clock)
    clock.now += 94.5
    assert search_time.left_to_explain == 2.5
    clock.now += 3
    assert search_time.left_to_explain == 0
