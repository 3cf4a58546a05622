"""Forecast of time series: its attributes, the series in the rows, and what its examples are made of."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET

from edl import features as fc
from edl import spec
from edl.errors import SemanticError, SQLFlowError
from edl.forecasting import ExamplesReader, Series
from edl.forecasting.examples import feature_names
from edl.forecasting.grid import Grid, grid
from edl.forecasting.holidays import read_holidays
from edl.spec.forecast import DAY, HOLIDAY_COUNTS, LEVEL, SCALE, STEP, Step
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.text_expressions import date_of_number
from sqlflow_edl.analysis.columns.derive import calendar
from sqlflow_edl.analysis.columns.drafts import Draft
from sqlflow_edl.analysis.columns.inputs import ModelInputs
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics import precision
from sqlflow_edl.analysis.statistics.accumulators import Moments
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    from sqlflow_edl.analysis.train_settings import TrainSettings

TIME, SERIES, HORIZON = "forecast.time", "forecast.series", "forecast.horizon"
QUANTILES, HOLIDAYS, NON_NEGATIVE = "forecast.quantiles", "forecast.holidays", "forecast.non_negative"
LEAST_GAP = 0.01  # of quantiles from the forecast, in units of the scale of a series
MOST_LAGS, MOST_LAGS_OF_NETWORK = 12, 200
TREES = "features"  # input of trees
KNOWN = "known"  # input of a network: features of the time to forecast
LONG = 6  # horizons beside a season, from which on the backtest has two windows
_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)
_CYCLES = {"month": 365 * DAY, "weekday": 7 * DAY, "hour": DAY}  # part of a time -> seconds until it repeats


def read_forecast(
    settings: TrainSettings, schema: Schema, label: str, statement: ast.Statement, errors: list[SQLFlowError]
) -> spec.Forecast | None:
    """Return the series as they are written, with a season, lags and windows of 0 and no step where the rows decide.

    None for other models, and after an error.
    """
    if settings.model is None or settings.model.task != "forecasting":
        return None
    before = len(errors)
    if statement.validate is not None:
        errors.append(
            SemanticError(
                "a forecast is validated by its backtest: the last forecast.horizon rows of each series",
                span=statement.validate.span,
                hint="leave VALIDATE out",
            )
        )
    time = _column(settings, schema, TIME, settings.get(TIME), label, statement, errors)
    if time and schema.type(time) not in _TIMES and not schema.is_integer(time):
        errors.append(
            SemanticError(
                f"{time} is {schema.type(time).words}, and the time of a series is a date, a timestamp or a whole "
                "number",
                span=settings.span(TIME),
                hint=f"cast it in the SELECT: CAST({time} AS DATE) AS {time}",
            )
        )
    names = settings.get(SERIES) or ()
    series = [
        _column(settings, schema, SERIES, name, label, statement, errors)
        for name in (names if isinstance(names, tuple) else (names,))
    ]
    if time and time in series:
        errors.append(
            SemanticError(f"{time} is the time; it cannot name the series too", span=settings.span(SERIES))
        )
    horizon = settings.get(HORIZON)
    if horizon is None:
        errors.append(_missing_error(HORIZON, "14", statement))
    if len(errors) > before:
        return None
    season, lags, windows = (
        int(settings.get(f"forecast.{name}") or 0)  # type: ignore[arg-type]  # whole numbers
        for name in ("season", "lags", "windows")
    )
    refit = settings.get("forecast.refit") is not False
    of_series, steps = tuple(dict.fromkeys(series)), int(horizon)  # type: ignore[arg-type]  # a whole number
    as_written = spec.Forecast(time, of_series, steps, season, "", lags, windows, refit)
    place, non_negative = settings.get(HOLIDAYS), settings.get(NON_NEGATIVE)
    if place is not None and schema.type(time) not in _TIMES:
        errors.append(
            SemanticError(
                f"{time} is {schema.type(time).words}, and holidays are of dates",
                span=settings.span(HOLIDAYS),
                hint=f"leave {HOLIDAYS} out, or cast the time in the SELECT",
            )
        )
        return None
    return msgspec.structs.replace(
        as_written,
        holidays=UNSET if place is None else str(place).upper(),
        non_negative=UNSET if non_negative is None else bool(non_negative),
    )


def drafts(forecast: spec.Forecast, column: str, schema: Schema) -> list[Draft] | None:
    """Return the drafts of an unmentioned column of a forecast; None for one that is as in any model.

    The time itself is no feature, since all times to forecast are later; its parts may be. The columns that name the
    series are none either: a model that knows them memorises each series, and forecast public series worse.
    """
    if column in forecast.series or (column == forecast.time and schema.type(column) not in _TIMES):
        return []
    if column != forecast.time:
        return None
    return [draft for draft in calendar(column, schema, []) if draft.part in _CYCLES]


def _is_worth(part: str, forecast: spec.Forecast, steps: int) -> bool:
    """Return True if a part of the time can be learned: its cycle is longer than a season and was seen twice.

    steps: of the longest series.
    """
    step, cycle = Step.parse(forecast.step).seconds, _CYCLES.get(part, 0)
    return step * forecast.season < cycle and 2 * cycle <= step * steps


def inputs(forecast: spec.Forecast, features_of_inputs: ModelInputs, label: spec.Label) -> ModelInputs:
    """Return the inputs with the columns of examples, the scale apart. The level is less the centre of the label.

    features_of_inputs: of trees one input, with its columns behind the columns of examples; of a network the known
    columns, if any.
    """
    offset = spec.label_offset(label)
    scale = (fc.standardize(LEVEL, offset, 1.0) if offset else fc.raw(LEVEL), fc.raw(SCALE))
    if TREES not in features_of_inputs:
        past = tuple(fc.lags(forecast.lags))
        if forecast.holidays:
            of_time = features_of_inputs.get(KNOWN, ())
            features_of_inputs = {KNOWN: (*of_time, *map(fc.raw, HOLIDAY_COUNTS))}
        return {"past": past, **features_of_inputs, "scale": (*scale, fc.raw(STEP))}
    examples = map(fc.raw, feature_names(forecast))
    return {TREES: (*examples, *features_of_inputs[TREES]), "scale": scale}


class FittedSeries(NamedTuple):
    """Forecast with the steps and the season of its rows, and their examples. longest: steps of the longest series."""

    forecast: spec.Forecast
    examples: ExamplesReader
    longest: int
    notes: tuple[str, ...]

    def keep_drafts(self, drafts: Iterable[Draft]) -> tuple[Draft, ...]:
        """Return the drafts without the parts of the time that cannot be learned."""
        return tuple(
            draft
            for draft in drafts
            if not draft.why or not draft.part or _is_worth(draft.part, self.forecast, self.longest)
        )


def fit_series(
    forecast: spec.Forecast,
    settings: TrainSettings,
    schema: Schema,
    label: str,
    rows: Iterable[pa.RecordBatch],
) -> FittedSeries:
    """Fit the forecast to the rows of its query.

    Raises SemanticError, at the place of an attribute, for rows that are no regular series.
    """
    table = pa.Table.from_batches(list(rows), schema.arrow)
    with set_missing_spans(settings.span(TIME)):
        _check_numbers(forecast.time, table, schema)
        series = grid(table, label, forecast.time, forecast.series)
    longest = int((series.known - series.first).max())
    fitted = _fit_forecast(forecast, series, longest, trees=settings.is_trees)
    if quantiles(settings):
        fitted = msgspec.structs.replace(fitted, gap=LEAST_GAP)
    if forecast.holidays:
        with set_missing_spans(settings.span(HOLIDAYS)):
            read_holidays(forecast.holidays)
    with set_missing_spans(settings.span(HORIZON)):
        reader = ExamplesReader(series_of(fitted, label).examples(table, "train", baseline=False))
    return FittedSeries(fitted, reader, longest, (_note(fitted, series.step), *reader.notes))


def _check_numbers(time: str, rows: pa.Table, schema: Schema) -> None:
    """Raise SemanticError for months or days as numbers, such as 202412: December is followed by January.

    All numbers are months or days of 1900 to 2100, of more than one month, or of more than one year.
    """
    if not schema.is_integer(time) or not rows.num_rows:
        return
    numbers = rows.column(time).drop_null().unique().cast(pa.int64()).to_numpy()
    for digits, form, example in ((6, "%Y%m", "202412 for December 2024"), (8, "%Y%m%d", "20241226")):
        low, high = (year * 10 ** (digits - 4) for year in (1900, 2101))
        turns = numbers // 100  # the year of a month, the month of a day
        if not (low <= numbers.min() and numbers.max() < high and turns.min() < turns.max()):
            continue
        if _are_dates(numbers, form):
            words = "months" if digits == 6 else "days"
            expression = date_of_number(time, digits, schema.dialect)
            raise SemanticError(
                f"{time} has {words} as whole numbers, {example}, which are no steps of equal length",
                hint=f"select {expression} AS {expressions.name(time, schema.dialect)}"
                if expression
                else "select dates in their place",
            )


def _are_dates(numbers: npt.NDArray[np.int64], form: str) -> bool:
    """Return True if all numbers, written down, are dates of the form."""
    try:
        for number in numbers.tolist():
            dt.datetime.strptime(str(number), form)
    except ValueError:
        return False
    return True


def _fit_forecast(as_written: spec.Forecast, series: Grid, longest: int, *, trees: bool) -> spec.Forecast:
    """Return the forecast with what the rows decide. longest: number of steps of the longest series."""
    step, values = series.step, Moments()
    values.add(series.values[~np.isnan(series.values)], integers=False)
    least, most, mean, std = values.ends()
    usual = step.season if longest >= 2 * step.season + as_written.horizon else 1
    season = as_written.season or usual
    network = min(max(2 * season, as_written.horizon), longest // 3, MOST_LAGS_OF_NETWORK)
    return msgspec.structs.replace(
        as_written,
        step=str(step),
        season=season,
        lags=as_written.lags or max(2, min(season, MOST_LAGS) if trees else network),
        windows=as_written.windows or (2 if longest >= season + LONG * as_written.horizon else 1),
        centre=precision.round_mean(mean, std) if precision.is_coarse(least, most, std) else UNSET,
        non_negative=(as_written.non_negative or (as_written.non_negative is UNSET and least >= 0)) or UNSET,
    )


def _note(forecast: spec.Forecast, step: Step) -> str:
    season = f"{forecast.season:,} steps"
    if forecast.season == 1:
        short = f", as {step.season:,} steps are long for these series" if step.season > 1 else ""
        season = f"none{short}; write forecast.season if a pattern repeats"
    return f"{forecast.time} has steps of {step.words}; season: {season}"


def series_of(forecast: spec.Forecast, label: str) -> Series:
    """Return the series of a JobSpec."""
    return Series(
        label,
        time=forecast.time,
        by=forecast.series,
        horizon=forecast.horizon,
        step=forecast.step,
        season=forecast.season,
        lags=forecast.lags,
        windows=forecast.windows,
        centre=forecast.centre,
        holidays=forecast.holidays,
    )


def quantiles(settings: TrainSettings) -> tuple[float, ...]:
    """Return the quantiles that a statement wants, in rising order."""
    setting = settings.get(QUANTILES)
    return (
        tuple(sorted({float(item) for item in setting if isinstance(item, int | float)}))
        if isinstance(setting, tuple)
        else ()
    )


def _column(
    settings: TrainSettings,
    schema: Schema,
    attribute: str,
    name: object,
    label: str,
    statement: ast.Statement,
    errors: list[SQLFlowError],
) -> str:
    """Return the column that an attribute names; add an error and return an empty text if there is none."""
    if name is None:
        errors.append(_missing_error(attribute, _date_of(schema), statement))
        return ""
    taken = f"is the label; {attribute} is another column"
    name_found, error = settings.column(attribute, schema, {label}, taken, None, str(name))
    errors += [error] if error else []
    return name_found


def _missing_error(attribute: str, example: str, statement: ast.Statement) -> SemanticError:
    return SemanticError(
        f"a forecast needs {attribute}",
        span=statement.model.span if statement.model else statement.span,
        hint=f"add WITH {attribute} = {example}",
    )


def _date_of(schema: Schema) -> str:
    """Return a date of the query for an example, or a usual name."""
    return next((name for name in schema.names if schema.type(name) in _TIMES), "order_date")
