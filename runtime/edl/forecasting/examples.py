"""Examples of a forecast: for a time to forecast, what was known at its origin, some steps before.

A model of all series and all steps is learned from them (a direct global model; Montero-Manso and Hyndman, 2021). The
label is a number of the series' own unit; what the model sees is relative to the level and the scale at the origin, so
that it also applies to values that no training row has.

    step          steps from the origin to the time
    level         mean of the last season before the origin, or the last value without a season
    scale         standard deviation of the last two seasons, of 8 values at least
    lag_1 …       last values, lag_1 at the origin
    season_1 …    values at the same place of the last three seasons; season_mean, their mean
    season_near   mean of season_1 and the two values before it
    mean          mean of the last four seasons
    trend         level less the level of a season before

All but the step are relative: (value - level) / scale; trend / scale. Unknown values are NaN.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from edl.errors import SemanticError
from edl.forecasting.ets import auto_ets
from edl.forecasting.grid import Floats, Grid, grid, name_of
from edl.forecasting.holidays import holiday_columns
from edl.forecasting.steps import Ints, move_times
from edl.spec.forecast import (
    AUTO_ETS,
    HOLIDAY,
    HOLIDAY_COUNTS,
    LEVEL,
    NAIVE,
    NAIVE_ERROR,
    PREFIX,
    SCALE,
    STEP,
    Forecast,
    Step,
)

Mode = Literal["train", "refit", "predict", "evaluate", "explain"]
MOST_EXAMPLES = 300_000  # of a training; origins are left out evenly beyond it
MOST_VALUES = 12_000_000  # of the lags of all examples
ORIGIN = f"{PREFIX}origin"  # column of the places of origins, which AutoETS needs
MOST_WINDOWS = 100  # of the backtest that AutoETS forecasts
SEASONS = 3  # earlier seasons with values among the features
_FEWEST = 8  # values of a scale


class Examples(NamedTuple):
    """Examples as rows, the training's first. notes: about series and times that are left out."""

    rows: pa.Table
    training: int
    notes: tuple[str, ...] = ()


class Series:
    """Time series in a table of rows, and the examples that a model learns from. See `edl.spec.Forecast`.

    `known` are the additional columns, beside the columns of `edl.spec.Forecast`, that the model reads of the rows to
    forecast.
    """

    def __init__(
        self,
        label: str,
        *,
        time: str,
        by: Iterable[str] = (),
        horizon: int,
        step: str,
        season: int = 1,
        lags: int = 12,
        windows: int = 1,
        known: Iterable[str] = (),
        centre: float | UnsetType = UNSET,
        holidays: str | UnsetType = UNSET,
    ) -> None:
        self.label = label
        self.known = tuple(known)
        self.spec = Forecast(
            time, tuple(by), horizon, season, step, lags, windows, centre=centre, holidays=holidays
        )

    def examples(
        self, rows: pa.Table, mode: Mode, seed: int | None = None, *, baseline: bool = True
    ) -> Examples:
        """Return the examples of a table.

        seed: of the order of the training examples, which networks need random. baseline: AutoETS forecasts the
        backtest.

        In training they are of all times before the backtest, followed by the backtest's: the last times of each series
        in `windows` of `horizon` ones, each as seen from the time before it. A refit takes all times, and has no
        backtest; evaluation takes the last window; prediction the rows after the last known label of each series. If
        a series has none, and the model needs no `known` columns of them, they are the next `horizon` steps. An
        explanation takes the rows after the last known labels, or the last window if there are none.

        Raises SemanticError if there are none, or rows beyond the horizon.
        """
        series_grid = self._grid(rows, Step.parse(self.spec.step))
        make = {
            "train": self._training,
            "refit": self._refit,
            "evaluate": self._last_window,
            "predict": self._ahead,
            "explain": self._ahead if _has_rows_ahead(series_grid) else self._last_window,
        }
        result = make[mode](series_grid, rows)
        if baseline and mode in ("train", "evaluate"):
            result = _with_baseline(result, series_grid, self.spec)
        result = result._replace(rows=result.rows.drop_columns([ORIGIN]))
        return result if seed is None else _shuffle_examples(result, seed)

    def _grid(self, rows: pa.Table, step: Step) -> Grid:
        """Return the series of the rows, less the centre."""
        series_grid = grid(rows, self.label, self.spec.time, self.spec.series, step)
        return (
            replace(series_grid, values=series_grid.values - self.spec.centre_or_zero)
            if self.spec.centre_or_zero
            else series_grid
        )

    def _training(self, series_grid: Grid, rows: pa.Table) -> Examples:
        spec = self.spec
        ends, notes = _long_enough(series_grid, spec, spec.windows * spec.horizon, 2 + spec.season)
        trained, held_out = (
            _keep_known_pairs(series_grid, *_find_training_pairs(series_grid, spec, ends)),
            _backtest(series_grid, spec, ends, spec.windows),
        )
        count = len(trained[0])
        if not count:
            raise SemanticError(f"{self.label} is NULL in all rows before the backtest")
        origins, steps = map(
            np.concatenate, zip(trained, _keep_known_pairs(series_grid, *held_out), strict=True)
        )
        return Examples(
            self._table(series_grid, rows, origins, steps),
            count,
            (*notes, *_backtest_window_notes(origins[count:])),
        )

    def _refit(self, series_grid: Grid, rows: pa.Table) -> Examples:
        ends, _ = _long_enough(series_grid, self.spec, 0, 2 + self.spec.season)
        origins, steps = _keep_known_pairs(series_grid, *_find_training_pairs(series_grid, self.spec, ends))
        return Examples(self._table(series_grid, rows, origins, steps), len(origins))

    def _last_window(self, series_grid: Grid, rows: pa.Table) -> Examples:
        ends, notes = _long_enough(series_grid, self.spec, self.spec.horizon, 1)
        origins, steps = _keep_known_pairs(series_grid, *_backtest(series_grid, self.spec, ends, 1))
        return Examples(self._table(series_grid, rows, origins, steps), 0, notes)

    def _ahead(self, series_grid: Grid, rows: pa.Table) -> Examples:
        spec = self.spec
        without_rows = series_grid.last <= series_grid.known
        if not self.known and without_rows.any():
            rows = with_next_steps(rows, series_grid, spec, np.flatnonzero(without_rows))
            series_grid = self._grid(rows, series_grid.step)
            without_rows[:] = False
        origins, steps = _future_rows(series_grid, rows, self.label, spec, self.known)
        notes = _describe_ends(series_grid, rows, spec, int(without_rows.sum()))
        return Examples(self._table(series_grid, rows, origins, steps), 0, tuple(notes))

    def _table(self, series_grid: Grid, rows: pa.Table, origins: Ints, steps: Ints) -> pa.Table:
        """Return the rows at so many steps after the origins, with the columns of examples."""
        places = series_grid.rows[origins + steps]
        table = rows.take(pa.array(places))
        columns = _features(series_grid, self.spec, origins, steps)
        if self.spec.holidays:
            times, time = table.column(self.spec.time).combine_chunks(), self.spec.time
            columns |= holiday_columns(self.spec.holidays, times, Step.parse(self.spec.step), time)
        columns |= {AUTO_ETS: np.full(len(origins), np.nan), ORIGIN: origins}
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values))
        return table


def _with_baseline(examples: Examples, series_grid: Grid, spec: Forecast) -> Examples:
    """Return the examples with the forecasts of AutoETS for the backtest, or for some of its windows."""
    held_out = examples.rows.slice(examples.training)
    origins, steps = (held_out.column(name).to_numpy() for name in (ORIGIN, STEP))
    windows, place = np.unique(origins, return_inverse=True)
    chosen = _choose_windows(len(windows))
    forecasts = np.full((len(windows), spec.horizon), np.nan)
    ends = windows[chosen] + 1
    with np.errstate(all="ignore"):  # of candidates that do not fit
        forecasts[chosen] = auto_ets(
            series_grid.values, ends, series_grid.first[series_grid.of[ends - 1]], spec.horizon, spec.season
        )
    values = np.r_[np.full(examples.training, np.nan), forecasts[place, steps - 1] + spec.centre_or_zero]
    position = examples.rows.column_names.index(AUTO_ETS)
    return examples._replace(rows=examples.rows.set_column(position, AUTO_ETS, pa.array(values)))


def _choose_windows(windows: int) -> Ints:
    """Return the positions of the windows that AutoETS forecasts, evenly chosen."""
    return np.unique(np.linspace(0, windows - 1, min(windows, MOST_WINDOWS)).astype(np.int64))


def _backtest_window_notes(origins: Ints) -> tuple[str, ...]:
    """Return a note if AutoETS does not forecast the whole backtest."""
    windows = len(np.unique(origins))
    if windows <= MOST_WINDOWS:
        return ()
    return (f"AutoETS forecasts {MOST_WINDOWS:,} of the {windows:,} windows of the backtest, evenly chosen",)


def _shuffle_examples(examples: Examples, seed: int) -> Examples:
    order = np.arange(examples.rows.num_rows)
    order[: examples.training] = np.random.default_rng(seed).permutation(examples.training)
    return examples._replace(rows=examples.rows.take(pa.array(order)))


def feature_names(spec: Forecast) -> list[str]:
    """Return the columns of examples that a model sees."""
    names = ["step", *(f"lag_{lag}" for lag in range(1, spec.lags + 1)), "mean", "trend"]
    if spec.season > 1:
        names += [*(f"season_{number}" for number in range(1, SEASONS + 1)), "season_mean", "season_near"]
    return [*(PREFIX + name for name in names), *((*HOLIDAY_COUNTS, HOLIDAY) if spec.holidays else ())]


# Places ------------------------------------------------------------------------------------------------------


def _long_enough(
    series_grid: Grid, spec: Forecast, held_out: int, least: int
) -> tuple[Ints, tuple[str, ...]]:
    """Return the end of the rows before the `held_out` last ones, of each series that is long enough.

    Another series is left out, with a note. least: the values before the end that are needed.
    """
    ends = np.maximum(series_grid.known - held_out, series_grid.first)
    ends = np.where(ends > series_grid.first, series_grid.find_known(ends - 1) + 1, ends)
    kept = ends - series_grid.first >= least
    needed = least + held_out
    if not kept.any():
        longest = int((series_grid.known - series_grid.first).max())
        raise SemanticError(
            f"the longest series has {longest:,} known values, and {needed:,} are needed: {held_out:,} for the "
            f"backtest and {least:,} before them",
            hint="select more rows, or write a smaller forecast.horizon"
            + (" or forecast.season" if least > 1 and spec.season > 1 else ""),
        )
    notes = []
    if short := int((~kept).sum()):
        notes.append(f"{short:,} of {len(kept):,} series have fewer than {needed:,} values and are left out")
    if series_grid.missing:
        notes.append(
            f"{series_grid.missing:,} of {int((series_grid.known - series_grid.first).sum()):,} steps have no value"
        )
    return ends[kept], tuple(notes)


def _backtest(series_grid: Grid, spec: Forecast, ends: Ints, windows: int) -> tuple[Ints, Ints]:
    """Return the origin of each window after the ends of series, with each of its steps.

    A window without a known value before it begins earlier, after the last known one.
    """
    origins = (ends[:, np.newaxis] - 1 + spec.horizon * np.arange(windows)).reshape(-1)
    origins = np.unique(series_grid.find_known(origins))
    return np.repeat(origins, spec.horizon), np.tile(np.arange(1, spec.horizon + 1), len(origins))


def _find_training_pairs(series_grid: Grid, spec: Forecast, ends: Ints) -> tuple[Ints, Ints]:
    """Return all origins and steps with a time before the backtests, at most about MOST_EXAMPLES.

    They are fewer with many lags.
    """
    firsts = series_grid.first[series_grid.of[ends - 1]] + spec.season
    counts = np.maximum(ends - 1 - firsts, 0)
    most = min(MOST_EXAMPLES, MOST_VALUES // spec.lags)
    stride = -(-int(counts.sum()) * spec.horizon // most) or 1
    while math.gcd(stride, spec.season) > 1:  # origins at all places of a season
        stride += 1
    counts = -(-counts // stride)
    last = np.repeat(ends, counts)
    origins = last - 2 - stride * (np.arange(len(last)) - np.repeat(np.cumsum(counts) - counts, counts))
    steps = np.arange(1, spec.horizon + 1)
    origins, steps, last = (
        matrix.reshape(-1)
        for matrix in np.broadcast_arrays(origins[:, np.newaxis], steps[np.newaxis], last[:, np.newaxis])
    )
    inside = origins + steps < last
    return origins[inside], steps[inside]


def _keep_known_pairs(series_grid: Grid, origins: Ints, steps: Ints) -> tuple[Ints, Ints]:
    """Return the pairs with known labels at the origin and at the time."""
    has_label = ~np.isnan(series_grid.values)
    kept = has_label[origins] & has_label[origins + steps]
    return origins[kept], steps[kept]


def _has_rows_ahead(series_grid: Grid) -> bool:
    return bool((series_grid.last > series_grid.known).any())


def _future_rows(
    series_grid: Grid, rows: pa.Table, label: str, spec: Forecast, columns: Sequence[str]
) -> tuple[Ints, Ints]:
    """Return the origins and steps of all rows after the last known labels, in the order of the rows.

    columns: of them that the model reads.
    """
    if not _has_rows_ahead(series_grid):
        read = ", ".join(columns[:3]) + (" and others" if len(columns) > 3 else "")
        raise SemanticError(
            f"there is nothing to forecast: {label} is known in the last row of each series",
            hint=f"select the rows to forecast, too: later times, with NULL as {label}"
            + (f"; the model reads {read} of them" if columns else ""),
        )
    ahead = np.flatnonzero(
        (np.arange(len(series_grid.values)) >= series_grid.known[series_grid.of]) & (series_grid.rows >= 0)
    )
    ahead = ahead[np.argsort(series_grid.rows[ahead])]
    origins = series_grid.known[series_grid.of[ahead]] - 1
    unknown = np.flatnonzero(
        series_grid.known[series_grid.of[ahead]] == series_grid.first[series_grid.of[ahead]]
    )
    if len(unknown):
        name = name_of(rows, spec.series, int(series_grid.rows[ahead[unknown[0]]]))
        raise SemanticError(
            f"{name} has no known {label}, from which it could be forecast",
            hint="select the rows before the forecast as well, with their labels",
        )
    steps = ahead - origins
    far = np.flatnonzero(steps > spec.horizon)
    if len(far):
        name = name_of(rows, spec.series, int(series_grid.rows[ahead[far[0]]]))
        raise SemanticError(
            f"{name} has a row {int(steps[far].max()):,} steps after its last known {label}, and the model forecasts "
            f"{spec.horizon:,}",
            hint=f"leave later rows out, or train it WITH forecast.horizon = {int(steps.max())}",
        )
    return origins, steps


# Values ------------------------------------------------------------------------------------------------------


def _features(series_grid: Grid, spec: Forecast, origins: Ints, steps: Ints) -> dict[str, Floats | Ints]:
    """Return the columns of examples at `steps` after `origins`, each (n,). series_grid: series less the centre."""
    season, firsts = spec.season, series_grid.first[series_grid.of[origins]]
    standardised = _standardise_series(series_grid)
    centre, unit = standardised.centre[series_grid.of[origins]], standardised.unit[series_grid.of[origins]]
    mean = functools.partial(_Means(standardised.values).mean, firsts=firsts)
    squares = functools.partial(_Means(np.square(standardised.values)).mean, firsts=firsts)

    def value(places: Ints) -> Floats:
        return np.where(places >= firsts, standardised.values[np.maximum(places, 0)], np.nan)

    level, last = mean(origins, season), max(2 * season, _FEWEST)
    deviation = np.sqrt(np.maximum(squares(origins, last) - np.square(mean(origins, last)), 0))
    scale = _scale(deviation * unit, level * unit + centre) / unit
    # Steps at the same place of the last season before the origin.
    earlier = origins + steps - season * -(-steps // season)
    seasons = np.stack([value(earlier - season * number) for number in range(SEASONS)])
    counted = (~np.isnan(seasons)).sum(axis=0)
    season_mean = np.divide(
        np.nansum(seasons, axis=0), counted, out=np.full(len(origins), np.nan), where=counted > 0
    )
    naive = np.where(np.isnan(seasons[0]), level, seasons[0])
    relative = {f"lag_{lag}": value(origins - lag + 1) for lag in range(1, spec.lags + 1)}
    relative["mean"] = mean(origins, 4 * season)
    relative["trend"] = 2 * level - mean(origins - season, season)
    relative |= {f"season_{number}": values for number, values in enumerate(seasons, 1)}
    relative |= {"season_mean": season_mean, "season_near": mean(earlier, 3)}
    columns: dict[str, Floats | Ints] = {
        PREFIX + name: (values - level) / scale for name, values in relative.items()
    }
    kept = {name: columns[name] for name in feature_names(spec) if name in columns}
    errors = _Means(_naive_errors(series_grid, standardised.values, season)).mean(
        origins, len(standardised.values), firsts=firsts
    )
    of_values = {LEVEL: level * unit + centre, NAIVE: naive * unit + centre}
    if spec.centre_or_zero:
        of_values = {name: values + spec.centre_or_zero for name, values in of_values.items()}
    facts = {LEVEL: of_values[LEVEL], SCALE: scale * unit, NAIVE: of_values[NAIVE]}
    return {STEP: steps, **kept, **facts, NAIVE_ERROR: errors * unit}


class _Standardised(NamedTuple):
    """Values less the centre of their series, in units of its largest deviation. centre, unit: of each series."""

    values: Floats
    centre: Floats
    unit: Floats


def _standardise_series(series_grid: Grid) -> _Standardised:
    """Standardise each series: in running sums over all, large series would swallow the digits of small ones."""
    series, has_value = len(series_grid.first), ~np.isnan(series_grid.values)
    of, values = series_grid.of[has_value], series_grid.values[has_value]
    counts = np.bincount(of, minlength=series)
    centre = np.bincount(of, values, series) / np.maximum(counts, 1)
    unit = np.zeros(series)
    np.maximum.at(unit, of, np.abs(values - centre[of]))
    unit[unit == 0] = 1.0
    return _Standardised((series_grid.values - centre[series_grid.of]) / unit[series_grid.of], centre, unit)


class _Means:
    """Means of ranges of values, by their running sum; NaN counts as no value."""

    def __init__(self, values: Floats) -> None:
        self._sums = np.r_[0.0, np.nancumsum(values)]
        self._counts = np.r_[0, np.cumsum(~np.isnan(values))]

    def mean(self, ends: Ints, count: int, *, firsts: Ints) -> Floats:
        """Return the mean of the `count` values up to `ends`, of those from `firsts` on; NaN if there are none."""
        after = np.maximum(ends + 1, firsts)
        start = np.maximum(after - count, firsts)
        counts = self._counts[after] - self._counts[start]
        sums = self._sums[after] - self._sums[start]
        means: Floats = np.divide(sums, counts, out=np.full(len(ends), np.nan), where=counts > 0)
        return means


def _scale(deviation: Floats, level: Floats) -> Floats:
    """Return the standard deviation of the last values; of equal ones the size of their level, or 1."""
    size = np.where(level == 0, 1.0, np.abs(level))
    return np.where(deviation > 1e-6 * size, deviation, size)


def _naive_errors(series_grid: Grid, values: Floats, season: int) -> Floats:
    """Return the absolute error of the seasonal naive forecast of each place, NaN where it is unknown."""
    places = np.arange(len(values))
    earlier = np.maximum(places - season, 0)
    inside = places - season >= series_grid.first[series_grid.of]
    return np.where(inside, np.abs(values - values[earlier]), np.nan)


def _describe_ends(series_grid: Grid, rows: pa.Table, spec: Forecast, without_rows: int) -> Iterator[str]:
    """Yield notes on series that end before others, and on the number of series without rows to forecast."""
    count = len(series_grid.known)
    if without_rows:
        yield f"{without_rows:,} of {count:,} series have no rows to forecast, and no forecast"
    with_values = np.flatnonzero(series_grid.known > series_grid.first)
    of_row = series_grid.rows[series_grid.known[with_values] - 1]
    times = rows.column(spec.time).take(pa.array(of_row))
    last = pc.max(times)
    earlier = np.flatnonzero(pc.less(times, last).to_numpy(zero_copy_only=False))
    if len(earlier):
        first, end = int(earlier[0]), str(last).removesuffix(" 00:00:00")
        name, its_end = (
            name_of(rows, spec.series, int(of_row[first])),
            str(times[first]).removesuffix(" 00:00:00"),
        )
        yield (
            f"{len(earlier):,} of {count:,} series have no value at {end}, the last time of the others: the forecast "
            f"of {name} begins after {its_end}"
        )


def with_next_steps(rows: pa.Table, series_grid: Grid, spec: Forecast, series: Ints) -> pa.Table:
    """Return the rows and, after them, `spec.horizon` more of some series, with its name, their times and NULL."""
    last = rows.take(pa.array(series_grid.rows[series_grid.last[series] - 1]))
    repeated = last.take(pa.array(np.repeat(np.arange(last.num_rows), spec.horizon)))
    steps = np.tile(np.arange(1, spec.horizon + 1), last.num_rows)
    columns = [
        move_times(repeated.column(field.name), steps, series_grid.step)
        if field.name == spec.time
        else repeated.column(field.name)
        if field.name in spec.series
        else pa.nulls(repeated.num_rows, field.type)
        for field in rows.schema
    ]
    return pa.concat_tables([rows, pa.table(columns, schema=rows.schema)])
