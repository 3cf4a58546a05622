"""Trend, season and residual of series."""

from __future__ import annotations

import numpy as np
import pytest

from edl.spec import Forecast
from sqlflow_edl.extensions.bigquery_ml.forecast_parts import decompose, name_season


def test_a_line_with_a_week_is_told_apart() -> None:
    week = np.array([3.0, 1.0, 0.0, -1.0, -2.0, -1.0, 0.0])
    line = 10 + 0.5 * np.arange(70)
    trend, season = decompose(line + np.tile(week, 10), 7)
    assert trend == pytest.approx(line)
    assert season == pytest.approx(np.tile(week, 10))


def test_a_season_of_an_even_number_of_steps_is_found_too() -> None:
    values = 5 + np.tile([1.0, -1.0, 2.0, -2.0], 12)
    trend, season = decompose(values, 4)
    assert trend + season == pytest.approx(values)


def test_a_short_series_has_no_season() -> None:
    values = np.array([1.0, 2.0, 4.0])
    trend, season = decompose(values, 7)
    assert (list(trend), list(season)) == ([1.0, 2.0, 4.0], [0.0] * 3)


def test_unknown_values_leave_the_parts_of_their_season() -> None:
    values = 5 + np.tile([1.0, -1.0, 0.0], 12)
    values[10] = np.nan
    trend, season = decompose(values, 3)
    assert np.isfinite(trend).all()
    assert season[:3] == pytest.approx([1.0, -1.0, 0.0], abs=0.1)


@pytest.mark.parametrize(
    ("step", "season", "name"),
    [("1 day", 7, "weekly"), ("3600 second", 24, "daily"), ("1 month", 12, "yearly"), ("900 second", 96, "daily"),
     ("1 day", 30, "monthly"), ("7 day", 13, "quarterly"), ("1 day in 0-1,4-6 of 7", 5, "weekly"), ("1", 12, "yearly")],
)  # fmt: skip
def test_a_season_is_named_by_its_length(step: str, season: int, name: str) -> None:
    assert name_season(Forecast("day", (), 1, season, step, 1)) == name
