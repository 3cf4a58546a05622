"""Regular steps of time: days, seconds, calendar months, or numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.data.names import format_name
from edl.errors import SemanticError
from edl.spec.forecast import DAY, Step

Ints = npt.NDArray[np.int64]

_SHORTEST_MONTH = 28  # days


def ticks(step: Step, times: pa.Array, column: str) -> Ints:
    """Return the times as whole numbers of the step's unit."""
    if step.unit == "month":
        return _whole(pc.add(pc.multiply(pc.year(times), 12), pc.month(times)))
    seconds = seconds_or_numbers(times, column)
    return seconds // DAY if step.unit == "day" else seconds


def seconds_or_numbers(times: pa.Array, column: str) -> Ints:
    """Return timestamps and dates as seconds, whole numbers as they are. Raises SemanticError for others."""
    kind = times.type
    if times.null_count:
        raise SemanticError(
            f"{column}, the time, is NULL in {times.null_count:,} of {len(times):,} rows",
            hint=f"leave those rows out of the query: WHERE {format_name((column,))} IS NOT NULL",
        )
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale <= 0):
        return _whole(times)
    if types.is_date(kind):
        return _whole(times.cast(pa.date32()).cast(pa.int32())) * DAY
    if types.is_timestamp(kind):
        try:
            return _whole(times.cast(pa.timestamp("s", kind.tz)))
        except pa.ArrowInvalid:
            raise SemanticError(
                f"{column} has fractions of a second, and the steps of a series are whole seconds or longer",
                hint="round it in the query",
            ) from None
    raise SemanticError(
        f"{column} is of type {kind}, and the time of a series is a date, a timestamp or a whole number",
        hint="cast it in the query",
    )


def infer(times: pa.Array, same: npt.NDArray[np.bool_], column: str) -> Step:
    """Return the step of series: the most frequent time from a row to the next.

    `times` are sorted within each series, `same` (n - 1,) is True where a row and the next are of one series. Raises
    SemanticError if there is no such pair.
    """
    seconds = seconds_or_numbers(times, column)
    between = np.diff(seconds)[same]
    if not len(between):
        raise SemanticError("each series has one row, and a forecast is learned from many")
    if types.is_integer(times.type):
        return Step(_most_frequent(between), "")
    if between.min() >= _SHORTEST_MONTH * DAY and _is_monthly(times):
        return Step(_most_frequent(np.diff(ticks(Step(1, "month"), times, column))[same]), "month")
    count = _most_frequent(between)
    whole_days = count % DAY == 0 and not (seconds % DAY).any()
    return Step(count // DAY, "day") if whole_days else Step(count, "second")


def _is_monthly(times: pa.Array) -> bool:
    """Return True if all times are on the same day of a month, or all on the last one."""
    stamps = times.cast(pa.timestamp("s")) if types.is_date(times.type) else times
    days = _whole(pc.day(stamps))
    if (days == days[0]).all():
        return True
    seconds = _whole(stamps.cast(pa.timestamp("s", getattr(stamps.type, "tz", None))))
    tomorrow = pa.array(seconds + DAY).cast(pa.timestamp("s"))
    return bool((_whole(pc.day(tomorrow)) == 1).all())


def _most_frequent(values: Ints) -> int:
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[counts.argmax()])


def _whole(array: pa.Array) -> Ints:
    return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)
