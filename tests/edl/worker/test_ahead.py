"""The number of tasks that a worker holds in advance."""

from __future__ import annotations

import pytest

from edl.worker.ahead import FIRST_SECS, LONGEST_SECS, MOST, Ahead


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def ahead(seconds: float, tasks: int = 20, least: int = 0) -> Ahead:
    """After so many tasks that took `seconds` each."""
    clock = Clock()
    held = Ahead("train", least, clock)
    for _ in range(tasks):
        clock.now += seconds
        held.on_done()
    return held


def test_before_the_time_of_a_task_is_known_the_number_is_the_least() -> None:
    assert Ahead("train").count(1) == 0
    assert Ahead("train", 3).count(1) == 3


@pytest.mark.parametrize(
    ("masters", "seconds"), [(1, FIRST_SECS), (2, 2 * FIRST_SECS), (3, LONGEST_SECS), (90, LONGEST_SECS)]
)
def test_the_tasks_last_longer_with_each_lost_master(masters: int, seconds: float) -> None:
    assert ahead(0.5).count(masters) == 2 * seconds


def test_very_short_and_very_long_tasks_have_limits() -> None:
    assert ahead(0.0).count(1) == MOST
    assert ahead(3600.0).count(1) == 1
    assert ahead(3600.0, least=3).count(1) == 3


def test_waiting_is_no_time_of_a_task() -> None:
    clock = Clock()
    held = Ahead("train", clock=clock)
    for _ in range(5):
        clock.now += 100.0
        held.on_wait()
        clock.now += 1.0
        held.on_done()
    assert held.count(1) == FIRST_SECS


def test_the_times_of_another_group_are_forgotten() -> None:
    held = ahead(0.5)
    held.forget()
    assert held.count(1) == 0
