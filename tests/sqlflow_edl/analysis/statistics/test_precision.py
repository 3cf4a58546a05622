"""Centres of labels that float32 rounds."""

from __future__ import annotations

import numpy as np
import pytest

from sqlflow_edl.analysis.statistics.precision import FLOAT64, is_coarse, round_mean


@pytest.mark.parametrize(
    ("least", "most", "std"),
    [
        (1_700_000_000, 1_700_000_064, 20.0),  # seconds of a minute
        (30_000_000, 30_000_006, 2.0),
        (-1e12, -1e12 + 5, 2.0),
        (1e39, 1.001e39, 2e35),
    ],
)
def test_numbers_are_coarse_if_their_deviation_is_few_steps_of_float32(
    least: float, most: float, std: float
) -> None:
    assert is_coarse(least, most, std)
    middle = round_mean((least + most) / 2, std)
    exact, rounded = (
        np.array([least, most]) - middle,
        (np.array([least, most]) - middle).astype(np.float32),
    )
    assert np.abs(exact - rounded).max() < 1e-6 * std


@pytest.mark.parametrize(
    ("least", "most", "std"),
    [(0, 1, 0.5), (150, 210, 8.0), (0, 2e6, 50_000.0), (1990, 2025, 10.0), (-3, 3, 1.0), (7, 7, 0.0)],
)
def test_ordinary_labels_are_not_coarse(least: float, most: float, std: float) -> None:
    assert not is_coarse(least, most, std)


def test_nanoseconds_of_a_minute_are_not_coarse_in_float64_but_their_units_are() -> None:
    assert not is_coarse(1.7e18, 1.7e18 + 6e10, 2e10, FLOAT64)
    assert is_coarse(1.7e18, 1.7e18 + 6000, 2e3, FLOAT64)


def test_the_centre_of_whole_numbers_is_whole() -> None:
    assert round_mean(1_700_000_031.7, 20.0) == 1_700_000_032.0
    assert round_mean(30_000_003.2, 2.0) == 30_000_004.0
    assert round_mean(1234.5678, 0.001) == 1234.5673828125  # a multiple of 1 / 1024
