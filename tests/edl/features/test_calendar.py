"""Parts of dates and times."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl import features as fc
from edl.errors import SemanticError
from edl.features.calendar import parts, years
from edl.spec import DatePart

INSTANTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
ID = {
    "month": lambda at: at.month - 1,
    "day": lambda at: at.day - 1,
    "weekday": lambda at: at.weekday(),
    "hour": lambda at: at.hour,
    "minute": lambda at: at.minute,
}


def ids(values: Any, part: Any, kind: pa.DataType | None = None) -> list[int]:
    batch = pa.record_batch([pa.array(values, kind)], names=["x"])
    found = fc.Features(fc.one_hot(DatePart("x", part))).transform(batch)["f0"]
    assert found.dtype == np.int64
    return found.tolist()


@pytest.mark.soak
@given(st.lists(INSTANTS, min_size=1))
def test_parts_follow_the_calendar(instants: list[dt.datetime]) -> None:
    for unit in ("s", "us"):
        for part, expected in ID.items():
            assert ids(instants, part, pa.timestamp(unit)) == [expected(at) for at in instants]
    assert years(pa.array(instants), "x").tolist() == [at.year for at in instants]


@pytest.mark.soak
@given(st.lists(INSTANTS.map(lambda at: at.date()), min_size=1))
def test_a_date_is_its_midnight(dates: list[dt.date]) -> None:
    for kind in (pa.date32(), pa.date64()):
        assert ids(dates, "weekday", kind) == [date.weekday() for date in dates]
        assert ids(dates, "hour", kind) == [0] * len(dates)


def test_a_zone_does_not_move_the_parts_of_an_instant() -> None:
    instant = dt.datetime(2024, 2, 29, 23, 30, tzinfo=dt.UTC)
    for zone in ("UTC", "Asia/Tokyo", "America/New_York", "+05:30"):
        column = pa.array([instant], pa.timestamp("us", zone))
        assert [parts(column, part, "x")[0].tolist() for part in ("month", "day", "hour")] == [
            [1],
            [28],
            [23],
        ]  # type: ignore[arg-type]


def test_a_time_of_day_has_hours_and_minutes() -> None:
    for kind in (pa.time32("s"), pa.time64("us")):
        assert ids([dt.time(23, 59), None], "hour", kind) == [23, 24]
        assert ids([dt.time(23, 59), None], "minute", kind) == [59, 60]


@pytest.mark.parametrize("part", sorted(ID))
def test_a_null_has_the_last_id(part: str) -> None:
    last = DatePart("x", part).size  # type: ignore[arg-type]
    assert ids([None, dt.datetime(2024, 1, 1)], part) == [last, 0]
    assert ids([None, None], part) == [last, last]


def test_a_null_year_is_the_mean() -> None:
    values = pa.array([dt.date(2026, 5, 1), None])
    arrays = fc.Features(fc.year("x", mean=2024, std=2)).transform(pa.record_batch([values], names=["x"]))
    assert arrays["dense"].tolist() == [[1.0], [0.0]]


def test_the_ends_of_time_have_valid_ids() -> None:
    ends = pa.array([2**63 - 1, -(2**63) + 1], pa.int64()).cast(pa.timestamp("us"))
    for part in ID:
        found, known = parts(ends, part, "x")  # type: ignore[arg-type]
        assert ((found[known] >= 0) & (found[known] < DatePart("x", part).size)).all()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "part", "message"),
    [
        (["2024-01-01"], "month", "column x is of type string where a date is needed"),
        ([5], "hour", "column x is of type int64 where a time is needed"),
        ([dt.time(3)], "weekday", r"column x is of type time64\[us\] where a date is needed"),
        ([dt.timedelta(3)], "hour", r"column x is of type duration\[us\] where a time is needed"),
    ],
)
def test_what_has_no_such_part_is_named(values: list[object], part: str, message: str) -> None:
    with pytest.raises(SemanticError, match=message) as raised:
        ids(values, part)
    assert "to a timestamp in the query" in (raised.value.hint or "")


def test_an_unknown_part_is_refused_with_the_nearest() -> None:
    with pytest.raises(SemanticError, match="a date has no part 'months'") as raised:
        fc.one_hot(DatePart("x", "months"))  # type: ignore[arg-type]
    assert raised.value.hint == "did you mean month?"
