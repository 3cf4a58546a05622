"""Who is far slower than the others of a group."""

from __future__ import annotations

import numpy as np
import pytest

from edl.worker.strategies.allreduce.strategy import LEAST_SECS, WINDOW, StragglerDetector


def compared(seconds: list[float], rows: list[int], times: int = 1) -> list[list[int]]:
    """What `times` comparisons of such members give."""
    laggards = StragglerDetector()
    laggards.begin(len(seconds))
    return [laggards.compare(np.array([seconds, rows], float).T) for _ in range(times)]


def test_who_needs_more_than_three_times_the_median_of_a_row_is_far_slower() -> None:
    assert compared([1.0, 1.0, 3.1], [100, 100, 100]) == [[2]]
    assert compared([1.0, 1.0, 2.9], [100, 100, 100]) == [[]]
    assert compared([1.0, 1.0, 3.1], [100, 100, 200]) == [[]]


def test_of_two_the_slower_one_may_be_far_slower() -> None:
    assert compared([4.0, 1.0], [50, 50]) == [[0]]


def test_nobody_is_judged_by_little_work() -> None:
    short = LEAST_SECS / 3
    assert compared([short / 10, short], [5, 5], times=4) == [[], [], [1], []]
    assert compared([1.0, 9.0, 0.0], [5, 5, 0]) == [[]]


def test_the_time_of_a_step_is_the_slowest_ones() -> None:
    laggards = StragglerDetector()
    laggards.begin(2)
    laggards.compare(np.array([[0.5, 10], [0.2, 10]]) * WINDOW)
    assert laggards.slowest == pytest.approx(0.5)


def test_what_others_hear_is_what_was_computed_since_they_heard_last() -> None:
    laggards = StragglerDetector()
    assert laggards.seconds == 0
    for seconds in (0.1, 0.2, 0.9):
        laggards.record_slice(8, seconds)
    assert laggards.seconds == pytest.approx(0.2)
    assert laggards.take_own_sums() == pytest.approx([1.2, 24])
    assert laggards.take_own_sums() == pytest.approx([0, 0])
