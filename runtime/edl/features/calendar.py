"""Calendar parts of dates, times and timestamps: years, months, weekdays, hours.

All parts are in UTC: a timestamp without a zone is unchanged, one with a zone is converted, whatever the zone of the
session that reads it. A date is its midnight; a time of day has hours and minutes, and no date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.features.arrays import Bools, ColumnTypeError, Floats, Ints, plain_array, valid_mask
from edl.spec.categories import PART_SIZES, Part

_PARTS: Mapping[Part, tuple[Callable[[pa.Array], pa.Array], int]] = {  # function, and its first value
    "month": (pc.month, 1),
    "day": (pc.day, 1),
    "weekday": (pc.day_of_week, 0),
    "hour": (pc.hour, 0),
    "minute": (pc.minute, 0),
}
TIME_PARTS: tuple[Part, ...] = ("hour", "minute")
DATE_PARTS: tuple[Part, ...] = ("month", "day", "weekday")


def parts_of(kind: pa.DataType) -> tuple[Part | Literal["year"], ...]:
    """Return the parts that a date, time or timestamp has, coarse to fine."""
    if types.is_time(kind):
        return TIME_PARTS
    return ("year", *DATE_PARTS) if types.is_date(kind) else ("year", *DATE_PARTS, *TIME_PARTS)


def parts(array: pa.Array, part: Part, column: str) -> tuple[Ints, Bools]:
    """Return the part as an id in [0, size), int64 (n,), and a mask of rows with one; elsewhere the id is arbitrary."""
    array = plain_array(array)
    if array.null_count == len(array):  # of any type: databases choose an arbitrary type for NULL
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)
    function, first = _PARTS[part]
    ids = _ints(function(_instants(array, column, part))) - first
    return ids, valid_mask(array) & (ids >= 0) & (ids < PART_SIZES[part])


def years(array: pa.Array, column: str) -> Floats:
    """Return the calendar year as float64 (n,), NaN for NULL."""
    array = plain_array(array)
    result = np.full(len(array), np.nan)
    if array.null_count < len(array):
        is_valid = valid_mask(array)
        result[is_valid] = _ints(pc.year(_instants(array, column, "year")))[is_valid]
    return result


def _instants(array: pa.Array, column: str, part: str) -> pa.Array:
    """Return the array as timestamps without a zone, or as times if times have that part."""
    kind = array.type
    if types.is_date(kind):
        return array.cast(pa.date32()).cast(pa.timestamp("s"))
    if types.is_timestamp(kind):
        return array.cast(pa.int64()).cast(pa.timestamp(kind.unit))
    if types.is_time(kind) and part in TIME_PARTS:
        return array
    expected = "a time" if part in TIME_PARTS else "a date"
    raise ColumnTypeError(column, kind, expected, "a timestamp")


def _ints(array: pa.Array) -> Ints:
    filled = array.fill_null(0) if array.null_count else array
    values: Ints = filled.to_numpy().astype(np.int64, copy=False)
    return values
