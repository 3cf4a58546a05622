"""Forecast of time series, and the names of the columns that its examples have beside the query's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec

PREFIX = "forecast."
STEP, LEVEL, SCALE = f"{PREFIX}step", f"{PREFIX}level", f"{PREFIX}scale"
LAG = f"{PREFIX}lag_"  # and its number
NAIVE, NAIVE_ERROR = f"{PREFIX}seasonal_naive", f"{PREFIX}seasonal_naive_error"
HOLIDAY, HOLIDAYS = f"{PREFIX}holiday", f"{PREFIX}holidays"  # see `edl.forecasting.holidays`
HOLIDAY_COUNTS = (HOLIDAYS, f"{HOLIDAYS}_before", f"{HOLIDAYS}_after")
SHIFTS = "shifts"  # weight that calibrates the quantiles
AUTO_ETS = f"{PREFIX}auto_ets"
BESIDE = (NAIVE, NAIVE_ERROR, SCALE, AUTO_ETS)  # the value in the labels of examples
# Prefixes of the names of metrics of other forecasts.
BASELINES = ("seasonal_naive_", "auto_ets_")

# Of TiDE: numbers of each step from the decoder, and units of the temporal decoder.
DECODED, TEMPORAL_UNITS = (8, 32)

DAY = 86_400  # seconds
_SEASONS = {(1, "month"): 12, (3, "month"): 4, (1, "day"): 7, (7, "day"): 52}


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = 3  # weekday of the day 0, a Thursday


@dataclass(frozen=True, slots=True)
class Step:
    """Time between two rows of a series: `count` times a month, day or second, or of numbers (an empty unit).

    With a `period`, a step leads to the next time that is open: of so many steps in turn, a day or a week, only the
    `open` ones have rows, such as the days from Monday to Friday or the hours from 9 to 17. Steps are numbered from
    1970 on, so that 0 of 7 days is a Thursday.
    """

    count: int
    unit: str
    period: int = 0
    open: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the step of a text such as `1 day`, or `1 day in 0-1,4-6 of 7`."""
        text, _, opened = text.partition(" in ")
        count, _, unit = text.partition(" ")
        ranges, _, period = opened.partition(" of ")
        ends = [numbers.split("-") for numbers in ranges.split(",") if numbers]
        slots = tuple(slot for end in ends for slot in range(int(end[0]), int(end[-1]) + 1))
        return cls(int(count), unit, int(period or 0), slots)

    def __str__(self) -> str:
        text = f"{self.count} {self.unit}".rstrip()
        return f"{text} in {_list_ranges(self.open, str)} of {self.period}" if self.period else text

    @property
    def season(self) -> int:
        """Usual number of steps of a season: of a year, a week or a day; 1 for none."""
        if self.unit == "second" and self.count < DAY and DAY % self.count == 0:
            a_day = DAY // self.count
            of_days = {
                sum(slot // a_day == day for slot in self.open) for day in range(self.period // a_day)
            } - {0}
            return (of_days.pop() if len(of_days) == 1 else len(self.open)) if self.period else a_day
        return len(self.open) or _SEASONS.get((self.count, self.unit), 1)

    @property
    def seconds(self) -> int:
        """Length in seconds, of a month and of open steps on average; 0 for numbers."""
        length = self.count * {"second": 1, "day": DAY, "month": 365 * DAY // 12}.get(self.unit, 0)
        return length * self.period // len(self.open) if self.period else length

    @property
    def words(self) -> str:
        """Step for people: `1 day`, `30 minutes`, `3 months`, `1 day, Monday to Friday`."""
        count, unit = self.count, self.unit
        if not unit:
            return f"{count:,}"
        if unit == "second":
            for size, name in ((DAY, "day"), (3600, "hour"), (60, "minute")):
                if count % size == 0:
                    count, unit = count // size, name
                    break
        return f"{count:,} {unit}{'' if count == 1 else 's'}{self._open_words}"

    @property
    def _open_words(self) -> str:
        """When rows are, for people, after a comma; empty if they are always."""
        if not self.period:
            return ""
        if self.unit == "day":
            days = sorted((slot + _EPOCH) % len(_WEEKDAYS) for slot in self.open)
            return f", {_list_ranges(days, lambda day: _WEEKDAYS[day], ' to ')}"
        if self.period * self.count > DAY:
            return f", {len(self.open):,} of {self.period:,} in a week"
        return f", {_list_ranges(self.open, self._clock, ' to ')}"

    def _clock(self, slot: int) -> str:
        minutes = slot * self.count // 60
        return f"{minutes // 60:02}:{minutes % 60:02}"


def _list_ranges(numbers: Sequence[int], name: Callable[[int], str], to: str = "-") -> str:
    """Return numbers as ranges of consecutive ones: `0-4,6`."""
    begins = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    ranges = (
        name(begin) if begin == end else f"{name(begin)}{to}{name(end)}"
        for begin, end in zip(begins, ends, strict=True)
    )
    return (", " if to != "-" else ",").join(ranges)


class Forecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Series that are forecast, each by its values of the columns `series`; without any there is one.

    `step` is the time between two rows of a series, such as `1 day` or `3 month`, or `1` for numbers; `season` is the
    number of steps after which a pattern repeats, 1 for none. `horizon` is the number of steps that are forecast, and
    `lags` the number of last values that the model sees. The backtest has the last `windows` times `horizon` steps.
    With `refit` the model is trained once more after it, on all rows, in as many rounds. The scale of values is the
    scale of their differences from the `centre`, if there is one. The model sees the public holidays of `holidays`, a
    country or a part of it. `non_negative`: no forecast and no quantile is below 0. `gap`: the least distance of a
    quantile from the forecast, in units of the scale of the series; models of earlier versions have none.
    """

    time: str
    series: tuple[str, ...]
    horizon: int
    season: int
    step: str
    lags: int
    windows: int = 1
    refit: bool = True
    centre: float | msgspec.UnsetType = msgspec.UNSET
    holidays: str | msgspec.UnsetType = msgspec.UNSET
    non_negative: bool | msgspec.UnsetType = msgspec.UNSET
    gap: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def centre_or_zero(self) -> float:
        """Centre, or 0 without one."""
        return 0.0 if self.centre is msgspec.UNSET else self.centre

    @property
    def order_columns(self) -> tuple[str, ...]:
        """Columns of the query that order the rows."""
        return (self.time, *self.series)
