"""Public holidays of a country at the steps of series. They are functions of the time, so later times have them, too.

    holidays          days of the step that are holidays; of a shorter step 1 if its day is one
    holidays_before   the same for the step (or the day) before
    holidays_after    the same for the step (or the day) after
    holiday           of a step with a holiday, which one: its mean day of the year; NaN without one

The package `holidays` knows them. It is imported only for models that use it.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections import defaultdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import JobError, SemanticError, did_you_mean
from edl.forecasting.steps import Ints, seconds_or_numbers
from edl.installation import install_extras
from edl.spec.forecast import DAY, HOLIDAY, HOLIDAYS, Step

Floats = npt.NDArray[np.float64]

FIRST_YEAR, LAST_YEAR = 1990, 2060  # beyond them no day is a holiday
_EPOCH = dt.date(1970, 1, 1)


class Holidays(NamedTuple):
    """Holidays of a place. counts: holidays before each day since FIRST_YEAR. which: of each day, NaN without one."""

    counts: Ints
    which: Floats


@functools.cache
def read_holidays(place: str) -> Holidays:
    """Return the holidays of a country, such as DE, or of a part of it, such as DE-BY.

    Raises JobError if the package is not installed, and SemanticError for an unknown place.
    """
    try:
        import holidays
    except ImportError:
        raise JobError(
            "holidays of a country need the package holidays, which is not installed",
            hint=install_extras("holidays"),
        ) from None
    country, _, part = place.upper().partition("-")
    try:
        years = range(FIRST_YEAR, LAST_YEAR + 1)
        by_day = holidays.country_holidays(country, subdiv=part or None, years=years)
    except NotImplementedError:
        places = holidays.list_supported_countries(include_aliases=False)
        names = [f"{country}-{part}" for part in places[country]] if country in places else sorted(places)
        raise SemanticError(
            f"there is no calendar of holidays for {place}",
            hint=did_you_mean(place, names, list_up_to=60) or "a country has two letters, such as de",
        ) from None
    days: dict[str, list[int]] = defaultdict(list)
    for day, name in by_day.items():
        days[name].append(day.timetuple().tm_yday)
    middle = {name: sum(of_name) / len(of_name) for name, of_name in days.items()}
    first, end = _number(dt.date(FIRST_YEAR, 1, 1)), _number(dt.date(LAST_YEAR + 1, 1, 1))
    which = np.full(end - first, np.nan)
    for day, name in by_day.items():
        which[_number(day) - first] = middle[name]
    return Holidays(np.r_[0, np.cumsum(~np.isnan(which))], which)


def holiday_columns(place: str, times: pa.Array, step: Step, column: str) -> dict[str, Floats]:
    """Return the columns of the module's description by their names in examples, each (n,)."""
    calendar = read_holidays(place)
    starts, ends = _days_of_steps(seconds_or_numbers(times, column), step)
    length = ends - starts
    values = {
        HOLIDAYS: _count(calendar, starts, ends),
        f"{HOLIDAYS}_before": _count(calendar, starts - length, starts),
        f"{HOLIDAYS}_after": _count(calendar, ends, ends + length),
    }
    first = np.full(len(starts), np.nan)
    for number in range(int(length.max(initial=0)) - 1, -1, -1):  # the first holiday of the step stays
        inside = np.minimum(starts + number, ends - 1)
        which = calendar.which[np.clip(inside, 0, len(calendar.which) - 1)]
        first = np.where(np.isnan(which), first, which)
    return {**values, HOLIDAY: first}


def _count(calendar: Holidays, starts: Ints, ends: Ints) -> Floats:
    last = len(calendar.counts) - 1
    counted: Floats = (
        calendar.counts[np.clip(ends, 0, last)] - calendar.counts[np.clip(starts, 0, last)]
    ).astype(np.float64)
    return counted


def _days_of_steps(seconds: Ints, step: Step) -> tuple[Ints, Ints]:
    """Return the first day of each step and the day after its last one, as numbers since FIRST_YEAR."""
    first = _number(dt.date(FIRST_YEAR, 1, 1))
    days = seconds // DAY
    if step.unit == "month":
        month = days.astype("datetime64[D]").astype("datetime64[M]")
        start = month.astype("datetime64[D]").astype(np.int64)
        end = (month + step.count).astype("datetime64[D]").astype(np.int64)
        return start - first, end - first
    count = step.count if step.unit == "day" else max(1, step.count // DAY)
    return days - first, days - first + count


def _number(day: dt.date) -> int:
    return (day - _EPOCH).days
