"""Training processes that are kept between trials."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.run.idle_processes import IdleProcesses

pytestmark = pytest.mark.usefixtures("own_processes")


@pytest.fixture
def idle() -> Iterator[IdleProcesses]:
    found = IdleProcesses(most=1, threads=1)
    yield found
    found.close()


def test_a_process_is_kept_for_the_next_trial_of_its_framework(idle: IdleProcesses) -> None:
    first = idle.take("lightgbm")
    idle.put(first)
    assert idle.take("lightgbm") is first
    idle.put(first)


def test_of_too_many_the_one_that_has_been_idle_longest_ends(idle: IdleProcesses) -> None:
    first, second = idle.take("lightgbm"), idle.take("xgboost")
    idle.put(first)
    idle.put(second)
    assert (first.is_alive, second.is_alive) == (False, True)


def test_a_process_that_died_meanwhile_is_replaced(idle: IdleProcesses) -> None:
    first = idle.take("lightgbm")
    first.close()
    idle.put(first)
    second = idle.take("lightgbm")
    assert second is not first
    assert second.is_alive
    idle.put(second)
