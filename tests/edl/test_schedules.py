"""Learning rates by step."""

from __future__ import annotations

import numpy as np
import pytest

from edl import schedules

STEPS = np.arange(12)


def test_a_constant_rate_stays() -> None:
    assert schedules.constant(STEPS, 0.1).tolist() == [0.1] * 12


def test_a_linear_rate_falls_evenly_and_stays_at_its_end() -> None:
    found = schedules.linear(STEPS, 1.0, over=10, end=0.5)
    np.testing.assert_allclose(found, [1 - 0.05 * min(step, 10) for step in STEPS])


def test_a_cosine_is_half_way_down_in_the_middle() -> None:
    found = schedules.cosine(STEPS, 2.0, over=10, end=0.1)
    np.testing.assert_allclose(found[[0, 5, 10, 11]], [2.0, 1.1, 0.2, 0.2])
    assert (np.diff(found[:11]) < 0).all()


def test_waves_of_cosines_are_each_twice_as_long_as_the_one_before() -> None:
    found = schedules.coslog(np.arange(1499), 0.5, over=1499, cycles=4)
    falls = [99, 299, 699]  # 100, 200 and 400 of 1,500 parts: the ends of the first three waves
    np.testing.assert_allclose(found[falls], 0, atol=1e-12)
    assert found.max() == pytest.approx(0.5, rel=1e-4)
    rises = np.diff(found) > 0
    assert int((np.diff(rises.astype(int)) == -1).sum()) == 4  # maxima
    assert 0 < found[0] < 0.002
    assert 0 < found[-1] < 0.002


def test_an_exponential_rate_falls_by_its_factor_in_so_many_steps() -> None:
    found = schedules.exponential(STEPS, 1.0, factor=0.25, every=4)
    np.testing.assert_allclose(found[[0, 2, 4, 8]], [1, 0.5, 0.25, 0.0625])


def test_a_rate_by_steps_falls_at_once() -> None:
    found = schedules.step(STEPS, 1.0, factor=0.5, every=5)
    np.testing.assert_allclose(found, [1] * 5 + [0.5] * 5 + [0.25] * 2)


@pytest.mark.parametrize("warmup", [1, 4])
def test_a_warm_up_rises_evenly_and_the_rest_counts_from_there(warmup: int) -> None:
    found = schedules.cosine(STEPS, 1.0, over=6, warmup=warmup)
    np.testing.assert_allclose(found[:warmup], [(step + 1) / (warmup + 1) for step in range(warmup)])
    np.testing.assert_allclose(found[warmup:], schedules.cosine(STEPS, 1.0, over=6)[: 12 - warmup])


def test_a_part_of_the_steps_has_the_rates_of_the_whole() -> None:
    whole = schedules.cosine(STEPS, 1.0, over=6, warmup=3)
    assert schedules.cosine(STEPS[5:9], 1.0, over=6, warmup=3).tolist() == whole[5:9].tolist()


def test_a_schedule_of_a_jobspec_is_the_one_that_its_program_calls() -> None:
    params = {"decay_rate": 0.5, "decay_steps": 5, "warmup_steps": 2}
    found = schedules.get_schedule("step", params, 0.1)(STEPS)
    assert found.tolist() == schedules.step(STEPS, 0.1, factor=0.5, every=5, warmup=2).tolist()
