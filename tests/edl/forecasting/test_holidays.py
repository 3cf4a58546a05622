"""Public holidays as columns of series: of days, of hours, of weeks and of months."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import JobError, SemanticError
from edl.forecasting.holidays import holiday_columns, read_holidays
from edl.spec.forecast import HOLIDAY, HOLIDAYS, Step


def columns(times: list[Any], step: str, place: str = "DE") -> dict[str, list[float]]:
    pytest.importorskip("holidays")
    found = holiday_columns(place, pa.array(times), Step.parse(step), "day")
    return {name: values.tolist() for name, values in found.items()}


def test_days_know_the_holidays_at_them_before_them_and_after_them() -> None:
    days = [dt.date(2024, 12, 24) + dt.timedelta(number) for number in range(4)]
    found = columns(days, "1 day")
    assert found[HOLIDAYS] == [0, 1, 1, 0]
    assert found[f"{HOLIDAYS}_before"] == [0, 0, 1, 1]
    assert found[f"{HOLIDAYS}_after"] == [1, 1, 0, 0]


def test_a_holiday_is_told_from_others_by_its_usual_place_in_the_year() -> None:
    easter = [dt.date(2023, 4, 7), dt.date(2024, 3, 29), dt.date(2025, 4, 18)]  # Good Friday
    first, *others = columns([*easter, dt.date(2024, 12, 25), dt.date(2024, 12, 24)], "1 day")[HOLIDAY]
    assert others[:2] == [first, first]
    assert 85 < first < 115
    assert 359 <= others[2] <= 360
    assert np.isnan(others[3])


def test_hours_are_those_of_a_holiday() -> None:
    hours = [dt.datetime(2024, 12, 24, 23), dt.datetime(2024, 12, 25, 0), dt.datetime(2024, 12, 25, 23)]
    found = columns(hours, "3600 second")
    assert (found[HOLIDAYS], found[f"{HOLIDAYS}_after"]) == ([0, 1, 1], [1, 1, 1])


@pytest.mark.parametrize(
    ("times", "step", "counts"),
    [
        ([dt.date(2024, 12, 16), dt.date(2024, 12, 23), dt.date(2024, 12, 30)], "7 day", [0, 2, 1]),
        ([dt.date(2024, 4, 30), dt.date(2024, 5, 31), dt.date(2024, 6, 30)], "1 month", [1, 3, 0]),
    ],
)
def test_longer_steps_count_their_holidays(times: list[Any], step: str, counts: list[int]) -> None:
    found = columns(times, step)
    assert found[HOLIDAYS] == counts
    assert [np.isnan(which) for which in found[HOLIDAY]] == [count == 0 for count in counts]


def test_a_part_of_a_country_has_its_own_holidays() -> None:
    epiphany = [dt.date(2025, 1, 6)]
    assert columns(epiphany, "1 day")[HOLIDAYS] == [0]
    assert columns(epiphany, "1 day", "DE-BY")[HOLIDAYS] == [1]


def test_days_beyond_the_calendar_are_no_holidays() -> None:
    assert columns([dt.date(1900, 12, 25), dt.date(2199, 12, 25)], "1 day")[HOLIDAYS] == [0, 0]


@pytest.mark.parametrize(
    ("place", "hint"), [("XX", "two letters"), ("DE-ZZ", "DE-BY"), ("DEU-BAYERN", "two letters")]
)
def test_an_unknown_place_is_an_error(place: str, hint: str) -> None:
    pytest.importorskip("holidays")
    with pytest.raises(SemanticError, match=f"there is no calendar of holidays for {place}") as caught:
        read_holidays(place)
    assert hint in (caught.value.hint or "")


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read_holidays.cache_clear()
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(JobError, match="need the package holidays, which is not installed") as caught:
        read_holidays("DE")
    assert "holidays" in (caught.value.hint or "")
