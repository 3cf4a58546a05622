"""Features of numbers: their constructors, checks and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from edl.errors import SemanticError, did_you_mean
from edl.features.arrays import Floats, numbers
from edl.features.calendar import TIME_PARTS, parts, years
from edl.features.computed import column as column_of
from edl.features.kinds import (
    RowsOfBatch,
    check,
    check_boundaries,
    check_count,
    check_delimiter,
    check_fields,
    check_finite,
    check_name,
    check_number,
    check_numbers,
    check_source,
    compute_values,
)
from edl.features.lists import Lists
from edl.spec import (
    Feature,
    IsNull,
    Log,
    Normalize,
    Numeric,
    Periodic,
    PiecewiseLinear,
    Raw,
    Standardize,
    Vector,
    Year,
)
from edl.spec.categories import PART_SIZES
from edl.spec.forecast import LAG

_LARGEST = 1e30  # of a feature: sums of such numbers in a network do not overflow float32

# Constructors ----------------------------------------------------------------------------------------------


def numeric(column: str, mean: float = 0.0) -> Numeric:
    """Return the unchanged number; `mean` replaces NULL."""
    return check(Numeric(column, mean))


def standardize(column: str, mean: float, std: float, limit: float = 0.0) -> Standardize:
    """(x - mean) / std, smoothly clipped to `limit` unless that is 0."""
    return check(Standardize(column, mean, std, limit))


def normalize(column: str, min: float, max: float, mean: float) -> Normalize:  # noqa: A002 (the words of the field)
    """(x - min) / (max - min); `mean` replaces NULL."""
    return check(Normalize(column, min, max, mean))


def is_null(column: str) -> IsNull:
    """Return 1 for a number or time that is NULL or not finite, else 0."""
    return check(IsNull(column))


def log(column: str, mean: float) -> Log:
    """Return the logarithm of 1 + x; `mean`, of x, replaces NULL and numbers without a logarithm."""
    return check(Log(column, mean))


def year(column: str, mean: float, std: float) -> Year:
    """(year - mean) / std of a date or timestamp."""
    return check(Year(column, mean, std))


def piecewise_linear(column: str, boundaries: Iterable[float], nulls: bool = False) -> PiecewiseLinear:
    """Return the piecewise-linear encoding of a number in the bins between the ascending `boundaries`."""
    return check(PiecewiseLinear(column, tuple(boundaries), nulls))


def periodic(column: str, mean: float, std: float, frequencies: int) -> Periodic:
    """Return the periodic embedding of (x - mean) / std, by as many learnt `frequencies`."""
    return check(Periodic(column, mean, std, frequencies))


def vector(column: str, mean: Iterable[float], std: Iterable[float] = (), delimiter: str = ",") -> Vector:
    """Return the numbers of a cell, as many as there are means; with `std`, (x - mean) / std of each."""
    return check(Vector(column, tuple(mean), tuple(std), delimiter))


def raw(column: str, part: str = "") -> Raw:
    """Return the number as it is, for trees, or a part of a date: year, month, day, weekday, hour or minute."""
    return check(Raw(column, part))  # type: ignore[arg-type]


def lags(count: int) -> list[Raw]:
    """Return the last `count` values of a series before the origin of an example, the latest first."""
    return [raw(f"{LAG}{lag}") for lag in range(1, count + 1)]


# Checks ----------------------------------------------------------------------------------------------------


@check_fields.register
def _check_numeric(column: Numeric) -> None:
    check_numbers(column, "mean")


@check_fields.register
def _check_standardize(column: Standardize) -> None:
    _check_deviation(column)
    check_number(column, "limit")
    if column.limit < 0:
        raise SemanticError(
            f"limit of column {column.column} must not be negative, it is {column.limit}",
            hint="0 means no limit",
        )


def _check_deviation(column: Standardize | Year | Periodic) -> None:
    check_numbers(column, "mean", "std")
    if column.std < 0:
        raise SemanticError(f"std of column {column.column} must not be negative, it is {column.std}")


@check_fields.register
def _check_year(column: Year) -> None:
    _check_deviation(column)


@check_fields.register
def _check_normalize(column: Normalize) -> None:
    check_numbers(column, "min", "max", "mean")
    if column.min > column.max:
        raise SemanticError(f"min of column {column.column} is {column.min}, above its max {column.max}")


@check_fields.register
def _check_log(column: Log) -> None:
    check_numbers(column, "mean")
    if column.mean <= -1:
        raise SemanticError(
            f"mean of column {column.column} is {column.mean}, which has no log(1 + x)",
            hint="shift the column in the query so that it is not negative",
        )


@check_fields.register
def _check_is_null(column: IsNull) -> None:
    check_source(column)


@check_fields.register
def _check_piecewise_linear(column: PiecewiseLinear) -> None:
    check_boundaries(column)
    if len(column.boundaries) < 2:
        raise SemanticError(
            f"column {column.column} has {len(column.boundaries)} boundaries", hint="a bin lies between two"
        )
    if not isinstance(column.nulls, bool):
        raise SemanticError(f"nulls of column {column.column} must be True or False, not {column.nulls!r}")


@check_fields.register
def _check_periodic(column: Periodic) -> None:
    _check_deviation(column)
    check_count(column.frequencies, f"frequencies of column {column.column}")


@check_fields.register
def _check_vector(column: Vector) -> None:
    check_name(column.column, "vector")
    check_delimiter(column)
    for name, values in (("mean", column.mean), ("std", column.std)):
        for value in values:
            check_finite(value, f"{name} of column {column.column}")
    if not column.mean or len(column.std) not in (0, len(column.mean)):
        raise SemanticError(
            f"column {column.column} has {len(column.mean)} means and {len(column.std)} deviations",
            hint="a vector has a mean for each of its numbers, and a std for each or none",
        )
    if column.std and min(column.std) < 0:
        raise SemanticError(f"std of column {column.column} must not be negative, it is {min(column.std)}")


@check_fields.register
def _check_raw(column: Raw) -> None:
    check_source(column)
    date_parts = ("year", *PART_SIZES)
    if column.part and column.part not in date_parts:
        raise SemanticError(
            f"a date has no part {column.part!r}", hint=did_you_mean(str(column.part), date_parts)
        )
    if column.part:
        check_name(column.column, f"the {column.part}")


# Values ----------------------------------------------------------------------------------------------------


@compute_values.register
def _numeric(feature: Numeric, rows: RowsOfBatch) -> Floats:
    values = _read_numbers(feature, rows)
    return _clip(_fill(values, np.isfinite(values), feature.mean))


@compute_values.register
def _standardize(feature: Standardize, rows: RowsOfBatch) -> Floats:
    scaled = _scale(_read_numbers(feature, rows), feature)
    if feature.limit:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled /= np.sqrt(1 + np.square(scaled / feature.limit))
    return _clip(scaled)


@compute_values.register
def _normalize(feature: Normalize, rows: RowsOfBatch) -> Floats:
    values = _read_numbers(feature, rows)
    filled = _fill(values, np.isfinite(values), feature.mean)
    return _clip(_shift_and_divide(filled, feature.min, feature.max - feature.min))


@compute_values.register
def _log(feature: Log, rows: RowsOfBatch) -> Floats:
    values = _read_numbers(feature, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        filled = _fill(values, np.isfinite(values) & (values > -1), feature.mean)
        np.log1p(filled, out=filled)
    return _clip(filled)


@compute_values.register
def _year(feature: Year, rows: RowsOfBatch) -> Floats:
    return _clip(_scale(years(column_of(rows.batch, feature.column), feature.column)[:, None], feature))


@compute_values.register
def _is_null(feature: IsNull, rows: RowsOfBatch) -> Floats:
    return (~np.isfinite(_read_numbers(feature, rows))).astype(np.float64)


@compute_values.register
def _periodic(feature: Periodic, rows: RowsOfBatch) -> Floats:
    """Return the standardised numbers, which the model embeds."""
    return _clip(_scale(_read_numbers(feature, rows), feature))


@compute_values.register
def _piecewise_linear(feature: PiecewiseLinear, rows: RowsOfBatch) -> Floats:
    """Return the positions of numbers in their bins, which the model encodes."""
    values = _read_numbers(feature, rows)
    missing = -1.0 if feature.nulls else feature.bins / 2
    positions = np.interp(values, feature.boundaries, np.arange(feature.bins + 1))
    return np.where(np.isfinite(values), positions, missing)


@compute_values.register
def _vector(feature: Vector, rows: RowsOfBatch) -> Floats:
    cells = Lists(column_of(rows.batch, feature.column), feature.column, feature.delimiter)
    values = cells.vectors(feature.width)
    mean, std = np.asarray(feature.mean), np.asarray(feature.std)
    filled = _fill(values, np.isfinite(values), mean)
    if len(std):
        with np.errstate(over="ignore", invalid="ignore"):
            filled -= mean
            np.divide(filled, std, out=filled, where=std != 0)
        filled[:, std == 0] = 0.0
    return _clip(filled)


@compute_values.register
def _raw(feature: Raw, rows: RowsOfBatch) -> Floats:
    """Return the numbers of a column, float64; what is not finite is missing."""
    array, column = column_of(rows.batch, feature.column), str(feature.column)
    if feature.part == "year":
        return years(array, column)[:, None]
    if feature.part:
        date_part, is_valid = parts(array, feature.part, column)
        first = 0 if feature.part in TIME_PARTS else 1
        return np.where(is_valid, date_part + first, np.nan)[:, None]
    values = numbers(array, column)[:, None]
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)


def bins_of(features: Sequence[Feature]) -> list[tuple[int, int]]:
    """Return feature and position of each bin of piecewise-linear encodings; with `nulls`, one precedes the first."""
    return [
        (number, first)
        for number, feature in enumerate(features)
        if isinstance(feature, PiecewiseLinear)
        for first in range(-int(feature.nulls), feature.bins)
    ]


def _read_numbers(
    feature: Numeric | Standardize | Normalize | Log | IsNull | Periodic | PiecewiseLinear, rows: RowsOfBatch
) -> Floats:
    """Return the numbers of a column, (n, 1)."""
    return numbers(column_of(rows.batch, feature.column), str(feature.column))[:, None]


def _fill(values: Floats, usable: npt.NDArray[np.bool_], mean: float | Floats) -> Floats:
    return values.copy() if usable.all() else np.where(usable, values, mean)


def _scale(values: Floats, feature: Standardize | Year | Periodic) -> Floats:
    return _shift_and_divide(_fill(values, np.isfinite(values), feature.mean), feature.mean, feature.std)


def _shift_and_divide(values: Floats, by: float, scale: float) -> Floats:
    if scale == 0:
        values.fill(0.0)
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        values -= by
        values /= scale
    return values


def _clip(values: Floats) -> Floats:
    """Clip to ±`_LARGEST`, whatever the rows beside them are."""
    # Written so that it holds also if some are not finite.
    if values.size and not (values.min() >= -_LARGEST and values.max() <= _LARGEST):
        return np.clip(np.nan_to_num(values), -_LARGEST, _LARGEST)
    return values
