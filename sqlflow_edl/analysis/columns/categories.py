"""COLUMN functions that give ids: one of each row, or one of each item in a cell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.columns import inputs
from sqlflow_edl.analysis.columns.cells import Cells, Items
from sqlflow_edl.analysis.columns.drafts import Bound, Draft, Statistics, require_statistics
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.schema import ColumnType
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want

LARGEST_VOCABULARY = 10_000
FEW_WORDS = 16
CHARACTERS, RUNS = 3, 4096  # of NGRAMS(x)
CROSSED_BUCKETS = 10  # of a fractional number in a CROSS
BUCKETS = 1 << 15  # of more values than a pass counts


def of_values(
    cells: Cells, want: Want, fit: Callable[[ColumnStatistics], spec.ItemCategory], span: Span | None = None
) -> Draft:
    """Return a category of each row's value, or of each item if the cells are lists.

    fit, want: of the values or items.
    """

    def fitted(statistics: Statistics) -> Fitted:
        category = fit(require_statistics(statistics, cells, span))
        return spec.ListOf(category, cells.delimiter, cells.separator) if cells.has_several else category

    lists = (cells,) if cells.has_several else ()
    want = Want.NONE if cells.has_several else want
    return Draft((cells.column,), want, fitted, span, is_category=True, lists=lists)


def vocabulary(
    cells: Cells, span: Span | None = None, *, max_size: int | None = None, min_count: int = 1
) -> Draft:
    column = cells.column

    def fit(column_statistics: ColumnStatistics) -> spec.Vocabulary:
        if column_statistics.counts is None:
            raise SemanticError(
                f"{column} has more than {column_statistics.distinct:,} different values, too many for a vocabulary",
                span=span,
                hint=f"write CATEGORY_HASH({expressions.argument(column)}, 100000), "
                "or keep the frequent ones with max_size=",
            )
        values = column_statistics.counts.vocabulary(max_size=max_size, min_count=min_count)
        if not values:
            often = "" if min_count == 1 else f" that occurs {min_count:,} times"
            raise SemanticError(
                f"{column} has no value{often} in the training rows", span=span, hint="leave it out"
            )
        return spec.Vocabulary(column, values)

    return of_values(cells, Want.COUNTS, fit, span)


def frequent_values(
    column: str, statistics: Statistics, span: Span, *, max_size: int
) -> spec.categories.Plain:
    """Return the category of a column's values: the most frequent ones, or hashes of too many to count."""
    counts = statistics[column].counts
    if counts is None:
        return spec.HashBucket(column, BUCKETS)
    values = counts.vocabulary(max_size=max_size)
    if not values:
        raise SemanticError(f"{column} has no value in the training rows", span=span, hint="leave it out")
    return spec.Vocabulary(column, values)


def hash_buckets(cells: Cells, size: int | None, span: Span | None) -> Draft:
    """Hash into three buckets per distinct value by default: with one, two values in five would share a bucket."""

    def fit(column_statistics: ColumnStatistics) -> spec.HashBucket:
        return spec.HashBucket(cells.column, size or max(10, 3 * column_statistics.distinct))

    return of_values(cells, Want.COUNTS, fit, span)


def words(cells: Cells, span: Span | None = None, *, frequent: bool = False) -> Draft:
    """Use a vocabulary while the values, or items, are few, and hash them when they are many.

    frequent: of more than FEW_WORDS values, those that occur once count as unseen: one row teaches little about a
    value, and all of them together what to expect of a value that training did not have.
    """
    known_words, repeated_words = vocabulary(cells, span), vocabulary(cells, span, min_count=2)

    def fit(statistics: Statistics) -> Fitted:
        item_statistics = require_statistics(statistics, cells, span)
        distinct = item_statistics.distinct
        if distinct <= LARGEST_VOCABULARY:
            repeats = item_statistics.counts is not None and item_statistics.counts.counts[:1] > (1,)
            rare = frequent and distinct > FEW_WORDS and repeats
            return (repeated_words if rare else known_words).fit(statistics)
        return hash_buckets(cells, min(1_000_000, 3 * distinct), span).fit(statistics)

    return replace(known_words, fit=fit)


def category_ids(
    cells: Cells, size: int, span: Span | None, function: str = "SPARSE", *, is_fractional: bool = False
) -> Draft:
    """Use whole numbers as ids in [0, size); size 0 means as many as the data needs.

    is_fractional: the column's type holds fractional numbers, which are no category.
    """
    column = cells.column

    def fit(column_statistics: ColumnStatistics) -> spec.CategoryId:
        fitting = size or max(1, int(column_statistics.max) + 1)
        if not column_statistics.integers or column_statistics.min < 0 or column_statistics.max >= fitting:
            name = expressions.argument(column)
            holds = f"{column_statistics.min:g} to {column_statistics.max:g}" + (
                "" if column_statistics.integers else ", not all whole"
            )
            hint = f"write VOCABULARIZE({name}) or CATEGORY_HASH({name}, 1000)"
            if is_fractional:
                hint = f"write BUCKETIZE({name}, 10)"
            if column_statistics.integers and column_statistics.min >= 0:
                hint = f"write {function}({name}, {int(column_statistics.max) + 1})"
            raise SemanticError(
                f"{function}({column}, {fitting}) needs whole numbers from 0 to {fitting - 1}; the data holds {holds}",
                span=span,
                hint=hint,
            )
        return spec.CategoryId(column, fitting)

    return of_values(cells, Want.MOMENTS, fit, span)


def date_part(column: str, part: spec.Part, span: Span | None, why: str = "") -> Draft:
    def fit(_: Statistics) -> spec.DatePart:
        return spec.DatePart(column, part)

    return Draft((column,), Want.CALENDAR, fit, span, is_category=True, why=why, part=part)


def one_hot(inner: Draft, span: Span | None) -> Draft:
    return replace(
        inner, fit=lambda statistics: inputs.one_hot(inner.fit(statistics)), span=span, is_category=False
    )


# Builders, one for each function of the language ---------------------------------------------------------


def part(part: spec.Part) -> Callable[[Bound], Draft]:
    return lambda bound: date_part(bound.temporal_column(part), part, bound.span)


def bucket(bound: Bound) -> Draft:
    column = bound.numeric_column()
    boundaries: tuple[float, ...] = bound["boundaries"]
    if any(low >= high for low, high in itertools.pairwise(boundaries)):
        raise bound.fail("boundaries must rise strictly", hint=f"sorted: {sorted(set(boundaries))}")
    return Draft(
        (column,), Want.NONE, lambda _: spec.Bucket(column, boundaries), bound.span, is_category=True
    )


def bucketize(bound: Bound) -> Draft:
    column = bound.column
    count, boundaries = bound["num_buckets"], bound["boundaries"]
    if (count is None) == (boundaries is None):
        raise bound.fail("BUCKETIZE needs either a number of buckets or their boundaries")
    if boundaries is not None:
        return bucket(bound)
    if bound.schema.type(column) is ColumnType.TEXT:
        return hash_buckets(Cells(column), count, bound.span)
    return _quantile_buckets(bound.numeric_column(times=True), count, bound.span)


def _quantile_buckets(column: str, count: int, span: Span | None) -> Draft:
    """Use `count` buckets with about as many rows each."""

    def fit(statistics: Statistics) -> spec.Bucket:
        cuts = statistics[column].quantiles([i / count for i in range(1, count)])
        return spec.Bucket(column, tuple(sorted(set(cuts))))  # equal quantiles: fewer, wider buckets

    return Draft((column,), Want.QUANTILES, fit, span, is_category=True)


def category_id(bound: Bound) -> Draft:
    """Return the id of a number, or the ids in a text such as 1,5,3, which SQLFlow splits by itself."""
    size: int = bound["size"]
    is_text = bound.schema.type(bound.cells.column) is ColumnType.TEXT
    cells = _cells(bound, "ids", delimiter="," if is_text else "")
    if cells.has_several:
        return category_ids(cells, size, bound.span, bound.function.name)
    column = bound.numeric_column()
    is_fractional = column not in bound.schema.names or not bound.schema.is_integer(column)
    return category_ids(Cells(column), size, bound.span, bound.function.name, is_fractional=is_fractional)


def seq_category_id(bound: Bound) -> Draft:
    cells = _cells(bound, "ids", delimiter=",")
    return category_ids(cells, bound["size"], bound.span, bound.function.name)


def sparse(bound: Bound) -> Draft:
    """Return the ids of a cell, with their weights if it has them."""
    cells = _cells(bound, "ids", delimiter=",")
    separator: str = bound["kv_delimiter"] or ""
    size: int = bound["shape"] or 0
    if separator and ColumnType.TEXT not in (
        bound.schema.type(cells.column),
        bound.schema.items(cells.column),
    ):
        raise bound.fail(f"ids with weights are read from texts, and {cells.column} holds none")
    return category_ids(replace(cells, separator=separator, size=size), size, bound.span)


def category_hash(bound: Bound) -> Draft:
    return hash_buckets(_words(bound), bound["size"], bound.span)


def vocabularize(bound: Bound) -> Draft:
    max_size, min_count = bound["max_size"], bound["min_count"] or 1
    return vocabulary(_words(bound), bound.span, max_size=max_size, min_count=min_count)


def _words(bound: Bound) -> Cells:
    cells = _cells(bound, "words")
    if not cells.has_several:
        bound.schema.require_category(cells.column, bound.span)
    return cells


def _cells(bound: Bound, items: Items, delimiter: str = "") -> Cells:
    """Return how the column is read: as lists if a delimiter is written or the column has lists."""
    cells, column = bound.cells, bound.cells.column
    kind, inner = bound.schema.type(column), bound.schema.items(column)
    delimiter = bound["delimiter"] or (cells.delimiter if cells.has_several or inner else delimiter)
    if not delimiter:
        return Cells(column)
    if ColumnType.TEXT in (kind, inner) or bound.schema.is_integer(column):
        return Cells(column, items, delimiter, cells.separator)
    what = "whole numbers, or texts of them" if items == "ids" else "values, or texts of them"
    raise bound.fail(f"{bound.function.name} needs lists of {what}; {column} is {kind.words}")


def ngrams(bound: Bound) -> Draft:
    column = bound.column
    if (kind := bound.schema.type(column)) is not ColumnType.TEXT:
        raise bound.fail(f"NGRAMS needs a text, {column} is {kind.words}")
    feature = spec.NGrams(column, bound["n"] or CHARACTERS, bound["size"] or RUNS)
    return Draft((column,), Want.NONE, lambda _: feature, bound.span, is_category=True)


def cross(bound: Bound) -> Draft:
    crossed: tuple[str | Draft, ...] = bound["columns"]
    if len(crossed) < 2:
        raise bound.fail("CROSS needs two columns or more")
    parts = tuple(_in_buckets_if_fractional(bound, part) for part in crossed)
    drafts = tuple(
        part_fitted if isinstance(part_fitted, Draft) else _crossed_column(bound, part_fitted)
        for part_fitted in parts
    )
    size: int = bound["size"]

    def fit(statistics: Statistics) -> spec.Cross:
        fitted_parts = [
            part_fitted if isinstance(part_fitted, str) else part_fitted.fit(statistics)
            for part_fitted in parts
        ]
        for part_fitted, part in zip(fitted_parts, drafts, strict=True):
            if not isinstance(part_fitted, str) and "cross" not in part_fitted.places:
                raise bound.fail("CROSS takes categories of one value in each row", span=part.span)
        return spec.Cross(tuple(fitted_parts), size)  # type: ignore[arg-type]

    columns = tuple(dict.fromkeys(column for draft in drafts for column in draft.columns))
    lists = tuple(cells for draft in drafts for cells in draft.lists)
    return Draft(columns, Want.NONE, fit, bound.span, is_category=True, lists=lists, parts=drafts)


def _in_buckets_if_fractional(bound: Bound, part: str | Draft) -> str | Draft:
    """Return buckets of a column of fractional numbers: hardly any two of its values are equal."""
    if isinstance(part, Draft) or bound.schema.type(part) is not ColumnType.NUMBER:
        return part
    return part if bound.schema.is_integer(part) else _quantile_buckets(part, CROSSED_BUCKETS, bound.span)


def _crossed_column(bound: Bound, column: str) -> Draft:
    bound.schema.require_category(column, bound.span)
    return Draft((column,), Want.NONE, lambda _: spec.HashBucket(column, 1), bound.span)


def require_weights(bound: Bound) -> Draft:
    """Return the category itself, which must have weights: they are applied wherever they are given."""
    inner: Draft = bound["category"]
    if not any(cells.separator for cells in inner.lists):
        raise bound.fail("this category has no weights", hint='write SPARSE(x, 1000, ",", kv_delimiter=":")')
    return inner


def concat(bound: Bound) -> Draft:
    parts: tuple[Draft, ...] = bound["categories"]
    if len(parts) < 2:
        raise bound.fail("CONCAT needs two categories or more")
    if any(part.is_concat for part in parts):
        raise bound.fail("CONCAT cannot contain another CONCAT", hint="write the categories of both in one")

    def fit(statistics: Statistics) -> spec.Concat:
        return spec.Concat(tuple(part.fit(statistics) for part in parts))  # type: ignore[misc]

    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
    lists = tuple(cells for part in parts for cells in part.lists)
    return Draft(
        columns, Want.NONE, fit, bound.span, is_category=True, lists=lists, parts=parts, is_concat=True
    )
