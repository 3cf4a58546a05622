"""COLUMN functions that give numbers: one of each row, or all numbers of a cell."""

from __future__ import annotations

from dataclasses import replace

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.columns.binning import DEFAULT_BINS
from sqlflow_edl.analysis.columns.categories import category_ids, one_hot
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.drafts import Bound, Draft, Statistics, require_statistics
from sqlflow_edl.analysis.schema import ColumnType
from sqlflow_edl.analysis.statistics.fitting import Want

FREQUENCIES = 16  # of PERIODIC(x)


def numeric(column: str, span: Span | None = None, why: str = "") -> Draft:
    return Draft((column,), Want.MOMENTS, lambda s: spec.Numeric(column, s[column].mean), span, why=why)


def draft_standardized(column: str, span: Span | None = None, why: str = "", limit: float = 0.0) -> Draft:
    def fit(statistics: Statistics) -> spec.Standardize:
        numbers = statistics[column]
        return spec.Standardize(column, numbers.mean, numbers.std, limit)

    return Draft((column,), Want.MOMENTS, fit, span, why=why)


def trend_of(column: str, span: Span | None, why: str) -> Draft:
    """Scale a time to 0 at the first and 1 at the last of the training rows, and clip it outside."""

    def fit(statistics: Statistics) -> spec.PiecewiseLinear | spec.Standardize:
        column_statistics = statistics[column]
        if column_statistics.min < column_statistics.max:
            return spec.PiecewiseLinear(
                column, (column_statistics.min, column_statistics.max), column_statistics.nulls > 0
            )
        return spec.Standardize(column, column_statistics.mean, column_statistics.std)

    return Draft((column,), Want.MOMENTS, fit, span, why=why)


def draft_bins(column: str, span: Span | None = None, *, bins: int = DEFAULT_BINS, why: str = "") -> Draft:
    """Encode a number piecewise linearly, in bins by the quantiles of the training rows."""

    def fit(statistics: Statistics) -> spec.PiecewiseLinear:
        column_statistics = statistics[column]
        cuts = column_statistics.boundaries(bins)
        if len(cuts) < 2:
            raise SemanticError(
                f"{column} is {'the same' if len(cuts) else 'NULL'} in every training row, and bins need two values",
                span=span,
                hint="leave it out",
            )
        return spec.PiecewiseLinear(column, cuts, column_statistics.nulls > 0)

    return Draft((column,), Want.MOMENTS | Want.QUANTILES, fit, span, why=why)


def in_bins_too(column: str, bins: int, why: str) -> Draft:
    """Encode a number in bins in addition to the number itself, unless there is only one bin."""

    def applies(statistics: Statistics) -> bool:
        column_statistics = statistics[column]
        return column_statistics.min < column_statistics.max and (
            column_statistics.nulls > 0 or len(column_statistics.boundaries(2)) > 2
        )

    return replace(draft_bins(column, bins=bins, why=why), applies=applies)


def vector(cells: Cells, span: Span | None = None, *, scaled: bool = False, why: str = "") -> Draft:
    """Use the numbers of a cell, unchanged or standardised."""

    def fit(statistics: Statistics) -> spec.Vector:
        mean, std = require_statistics(statistics, cells, span).vector
        if not mean:
            raise SemanticError(
                f"{cells.column} holds no number in the training rows", span=span, hint="leave it out"
            )
        return spec.Vector(cells.column, mean, std if scaled else (), cells.delimiter)

    return Draft((cells.column,), Want.NONE, fit, span, why=why, lists=(cells,))


def numbers(bound: Bound) -> Draft:
    """Use a number, or as many as `shape` says; for ids, a vector with 1 at each id."""
    if bound.cells.items == "ids":
        return one_hot(category_ids(bound.cells, _size(bound), bound.span), bound.span)
    shape = bound["shape"]
    several = bound.cells.has_several or bound["delimiter"] or (shape or 1) > 1
    return dense(bound) if several else numeric(bound.numeric_column(), bound.span)


def dense(bound: Bound) -> Draft:
    """Use the numbers of a cell, or the number of a numeric column."""
    column = bound.cells.column
    size = _size(bound)
    kind = bound.schema.type(column)
    if kind in (ColumnType.NUMBER, ColumnType.BOOLEAN):
        if size > 1:
            raise bound.fail(f"{column} is {kind.words}, not {size:,} numbers in a cell")
        return numeric(column, bound.span)
    if ColumnType.TEXT not in (kind, items := bound.schema.items(column)) and items is not ColumnType.NUMBER:
        raise bound.fail(
            f"{bound.function.name} needs numbers, lists of them or texts, {column} is {kind.words}"
        )
    delimiter = bound["delimiter"] or bound.cells.delimiter
    return vector(Cells(column, "numbers", delimiter, size=size), bound.span)


def _size(bound: Bound) -> int:
    """Return the number of elements in each cell; 0 means as many as the data has."""
    shape: int = bound["shape"] or 0
    inner = bound.cells.size
    if shape and inner and shape != inner:
        raise bound.fail(
            f"{bound.cells.column} has {inner:,} numbers in the inner function and {shape:,} in the outer one"
        )
    return shape or inner


def standardize(bound: Bound) -> Draft:
    if bound.cells.items == "numbers":
        return vector(bound.cells, bound.span, scaled=True)
    return draft_standardized(bound.numeric_column(times=True), bound.span)


def normalize(bound: Bound) -> Draft:
    column = bound.numeric_column(times=True)

    def fit(statistics: Statistics) -> spec.Normalize:
        numbers = statistics[column]
        return spec.Normalize(column, numbers.min, numbers.max, numbers.mean)

    return Draft((column,), Want.MOMENTS, fit, bound.span)


def log(bound: Bound) -> Draft:
    column = bound.numeric_column()

    def fit(statistics: Statistics) -> spec.Log:
        if statistics[column].min <= -1:
            raise SemanticError(
                f"{column} goes down to {statistics[column].min:g}; log(1 + x) needs x above -1",
                span=bound.span,
                hint=f"write STANDARDIZE({expressions.argument(column)}), or shift it in the SELECT",
            )
        return spec.Log(column, statistics[column].mean)

    return Draft((column,), Want.MOMENTS, fit, bound.span)


def piecewise_linear(bound: Bound) -> Draft:
    return draft_bins(bound.numeric_column(times=True), bound.span, bins=bound["bins"] or DEFAULT_BINS)


def periodic(bound: Bound) -> Draft:
    column = bound.numeric_column(times=True)
    frequencies: int = bound["frequencies"] or FREQUENCIES

    def fit(statistics: Statistics) -> spec.Periodic:
        return spec.Periodic(column, statistics[column].mean, statistics[column].std, frequencies)

    return Draft((column,), Want.MOMENTS, fit, bound.span)


def calendar_year(column: str, span: Span | None) -> Draft:
    def fit(statistics: Statistics) -> spec.Year:
        return spec.Year(column, *statistics[column].years)

    return Draft((column,), Want.CALENDAR, fit, span, part="year")


def year(bound: Bound) -> Draft:
    return calendar_year(bound.temporal_column("year"), bound.span)
