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
_SHORTEST = {"second": 60, "day": 1, "month": 1, "": 1}  # steps that lead over times without rows
_FEWEST_PERIODS = 3  # before times without rows are left out
_LEAST_SHARE = 0.75  # of the other times with rows
_CHANCE = 0.01  # that a time is without rows at random


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


def number_steps(step: Step, ticks: Ints) -> Ints:
    """Return the numbers of the steps of times, in units of the step: consecutive for consecutive open ones.

    A time that is not open has the number of the next one that is.
    """
    numbers = ticks // step.count
    if not step.period:
        return numbers
    before = np.searchsorted(np.array(step.open), np.arange(step.period))
    opened: Ints = numbers // step.period * len(step.open) + before[numbers % step.period]
    return opened


def are_open(step: Step, ticks: Ints) -> npt.NDArray[np.bool_]:
    """Return which times are open, in units of the step."""
    if not step.period:
        return np.ones(len(ticks), np.bool_)
    return np.isin(ticks // step.count % step.period, step.open)


def _move(step: Step, ticks: Ints, steps: Ints) -> Ints:
    """Return the times that are so many steps later, in units of the step."""
    if not step.period:
        return ticks + steps * step.count
    turns, place = np.divmod(number_steps(step, ticks) + steps, len(step.open))
    numbers: Ints = turns * step.period + np.array(step.open)[place]
    return numbers * step.count + ticks % step.count


def move_times(times: pa.ChunkedArray, steps: Ints, step: Step) -> pa.Array:
    """Return the times so many steps later."""
    kind = times.type
    if types.is_integer(kind):
        return pc.add(times.cast(pa.int64()), pa.array(steps * step.count)).cast(kind)
    zone = getattr(kind, "tz", None)
    seconds = np.asarray(times.cast(pa.timestamp("s", zone)).cast(pa.int64()).to_numpy(), dtype=np.int64)
    if step.unit == "month":
        later = _months_later(seconds, steps * step.count)
    else:
        size = DAY if step.unit == "day" else 1
        later = _move(step, seconds // size, steps) * size + seconds % size
    return pa.array(later).cast(pa.timestamp("s", zone)).cast(kind)


def _months_later(seconds: Ints, months: Ints) -> Ints:
    """Return times on the same day of a later month; the last day of a month stays the last one."""
    days = seconds // DAY
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    first = month.astype("datetime64[D]").astype(np.int64)
    is_last = days + 1 == (month + 1).astype("datetime64[D]").astype(np.int64)
    later = month + months
    start, end = (month_start.astype("datetime64[D]").astype(np.int64) for month_start in (later, later + 1))
    moved = np.where(is_last, end - 1, np.minimum(start + days - first, end - 1))
    return moved * DAY + seconds % DAY


def find_open(step: Step, ticks: Ints, same: npt.NDArray[np.bool_]) -> Step:
    """Return the step that leads over times without rows if these return each day or each week.

    ticks: of the rows, in units of the step, sorted within each series. At times that are left out no series has a row,
    and so many of the others have rows that this is no chance. If the rows are no such steps apart, the step is the
    longest of which they are: of Mondays, Wednesdays and Fridays, a day.
    """
    common = int(np.gcd.reduce(np.diff(ticks)[same]))
    if common % step.count:
        shorter = find_open(Step(common, step.unit), ticks, same) if common >= _SHORTEST[step.unit] else step
        return shorter if shorter.period else step
    slotted = [_find_slots(step, ticks, same, period) for period in _periods(step)]
    patterns = [pattern for pattern in slotted if pattern]
    if len(patterns) == 2:
        day, week = patterns
        every_day = tuple(slot for slot in range(week.period) if slot % day.period in day.open)
        return day if week.open == every_day else week
    return patterns[0] if patterns else step


def _find_slots(step: Step, ticks: Ints, same: npt.NDArray[np.bool_], period: int) -> Step | None:
    """Return the step with the slots of the period that have rows; None if all have, or too few rows tell."""
    numbers = ticks // step.count
    firsts, lasts = numbers[np.r_[True, ~same]], numbers[np.r_[~same, True]]
    if (lasts - firsts + 1).max() < _FEWEST_PERIODS * period:
        return None
    expected = _count_slots(firsts, lasts, period)
    rows = np.bincount(numbers % period, minlength=period)
    opened = np.flatnonzero(rows)
    share = rows.sum() / expected[opened].sum()
    by_chance = (1 - share) ** expected[rows == 0]
    if len(opened) == period or share < _LEAST_SHARE or by_chance.sum() >= _CHANCE:
        return None
    return Step(step.count, step.unit, period, tuple(opened.tolist()))


def _periods(step: Step) -> list[int]:
    """Return the steps of a day and of a week, of steps that divide them."""
    if step.unit == "day":
        return [7] if step.count == 1 else []
    if step.unit == "second" and step.count < DAY and DAY % step.count == 0:
        return [DAY // step.count, 7 * DAY // step.count]
    return []


def _count_slots(firsts: Ints, lasts: Ints, period: int) -> Ints:
    """Return how often each slot of the period is between the first and the last steps of series."""
    turns, rest = np.divmod(lasts - firsts + 1, period)
    counts = np.full(period, turns.sum())
    changes = np.zeros(2 * period + 1, dtype=np.int64)
    np.add.at(changes, firsts % period, 1)
    np.add.at(changes, firsts % period + rest, -1)
    inside = np.cumsum(changes)[:-1]
    totals: Ints = counts + inside[:period] + inside[period:]
    return totals


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
