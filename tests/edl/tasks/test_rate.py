"""Rates over a recent window, on a clock of the test's own."""

from __future__ import annotations

import pytest

from edl.tasks.rate import SAMPLES, RecentRate


def test_a_rate_is_known_as_soon_as_time_has_passed() -> None:
    rate = RecentRate(100.0)
    assert rate.per_second == 0
    rate.add(100.5, 10)
    assert rate.per_second == pytest.approx(20)


def test_what_is_older_than_the_window_does_not_count() -> None:
    rate = RecentRate(0.0)
    count = 0
    for second in range(1, 121):
        count += 100 if second <= 60 else 10
        rate.add(float(second), count)
    assert rate.per_second == pytest.approx(10)


def test_the_window_is_a_fifth_of_a_long_job() -> None:
    """Epochs of ten minutes, half of each for measuring, which adds nothing: the rate is the mean over epochs."""
    rate = RecentRate(0.0)
    count = 0
    rates = []
    for second in range(1, 20 * 600 + 1):
        count += second % 600 < 300
        rate.add(float(second), count)
        rates.append(rate.per_second)
    assert all(0.35 < found < 0.65 for found in rates[10 * 600 :])


def test_time_left_by_the_rate_is_true_when_epochs_get_slower() -> None:
    """Each of 1,000 epochs takes 1 % of a second more than the one before; the time left is never far too small."""
    rate, now = RecentRate(0.0), 0.0
    ends = [0.0]
    for epoch in range(1_000):
        ends.append(ends[-1] + 0.01 * epoch)
    for epoch in range(1, 1_000):
        now = ends[epoch]
        rate.add(now, epoch)
    assert rate.per_second == pytest.approx(1 / (0.01 * 950), rel=0.1)


def test_a_return_to_a_checkpoint_begins_anew() -> None:
    rate = RecentRate(0.0)
    rate.add(10.0, 1000)
    rate.add(11.0, 200)
    assert rate.per_second == 0
    rate.add(12.0, 250)
    assert rate.per_second == pytest.approx(50)


def test_few_samples_are_kept() -> None:
    rate = RecentRate(0.0)
    for tick in range(100_000):
        rate.add(tick * 0.01, tick)
    assert len(rate._samples) <= 2 * SAMPLES
    assert rate.per_second == pytest.approx(100)
