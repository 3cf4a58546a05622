"""Derivation of features for selected columns that COLUMN does not mention, by their type and statistics.

A text is a category. If all texts of a column are lists with one delimiter, it is the category of each item, with its
weight if all items have one, or, with the same number of numbers in each cell, a vector; so is a column of lists. The
first pass over the rows finds the delimiter; a second one then examines the items.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from edl import spec
from edl.errors import Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.data import is_id, is_named_as_id
from sqlflow_edl.analysis.checks.text_expressions import describe_doubt, read_column
from sqlflow_edl.analysis.checks.text_readings import NumberReading, decimal_mark, read_texts
from sqlflow_edl.analysis.columns.categories import date_part, words
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.drafts import Draft, Statistics
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.columns.missing import draft_indicator
from sqlflow_edl.analysis.columns.numeric import (
    draft_bins,
    draft_standardized,
    in_bins_too,
    numeric,
    trend_of,
    vector,
)
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want

FEWEST_GROUPS = 17  # distinct numbers that bins tell apart by themselves
ROWS_OF_GROUP = 200  # rows for each distinct number of a category
LIMIT = 3.0  # deviations near which a number beside its bins ends
LEAST_DISORDER = 0.01  # share of the label's variance for which numbers in no order are a category
FEWEST_TEXTS = 1000  # distinct texts that may be free text
SENTENCE = 24  # characters of the longest text from which on they are sentences rather than codes
ROWS_OF_NAME = 6  # the same, where the label differs by number in no order, without the most frequent number
ROWS_OF_ID = 2  # the same, of a column that is named as an id
DERIVED_PARTS: tuple[spec.Part, ...] = ("month", "day", "weekday", "hour")


def derive(
    column: str, schema: Schema, notes: list[str], select: Span | None, *, bins: int, trees: bool = False
) -> list[Draft]:
    """Return the drafts of an unmentioned column, none if its type cannot be a feature.

    bins: of a number beside the number itself; whole numbers that repeat often are then categories as well. 0: none.
    trees: the model is one of trees, which learn from rare texts what to expect of unseen ones. For all models, whole
    numbers by which the label differs in no order are categories.
    """
    kind, encoded = schema.type(column), bins > 0
    if kind is ColumnType.NUMBER:
        number = draft_standardized(column, why="a number, standardised", limit=LIMIT if encoded else 0.0)
        values = differing_values(number, "one number or NULL, by its presence")
        parts = [in_bins_too(column, bins, why="a number, in bins too")] if encoded else []
        groups = [ids_too(column, encoded=encoded)] if schema.is_integer(column) else []
        return [*values, *parts, *groups]
    if kind is ColumnType.BOOLEAN:
        boolean = numeric(column, why="a boolean, as 0 and 1")
        return differing_values(boolean, "one boolean or NULL, by its presence")
    if kind is ColumnType.TEXT:
        return [text(column, select, why="a text, as a category", frequent=encoded or trees)]
    if schema.items(column) in (ColumnType.TEXT, ColumnType.NUMBER):
        return [lists(column, schema, select, why="lists, of their items")]
    if kind.is_temporal:
        return calendar(column, schema, notes, encoded=encoded)
    return []


def differing_values(values: Draft, why: str) -> list[Draft]:
    """Return drafts of a column's values, and of their presence in place of them if only that differs between rows.

    why: of the presence.
    """
    [column] = values.columns
    return [
        replace(values, applies=lambda statistics: not statistics[column].is_value_or_null),
        draft_indicator(column, why=why, applies=lambda statistics: statistics[column].is_value_or_null),
    ]


@functools.lru_cache(maxsize=10_000)  # the candidates of a search derive from the same columns
def ids_too(column: str, *, encoded: bool) -> Draft:
    """Derive a category of whole numbers, in addition to the number, if they seem to be names.

    The label differs by them in no order; or, encoded, each occurs often enough to be learned all the same.
    """

    def applies(statistics: Statistics) -> bool:
        column_statistics = statistics[column]
        present = column_statistics.rows - column_statistics.nulls
        named = is_named_as_id(column)
        if (
            column_statistics.disorder >= LEAST_DISORDER
            and column_statistics.counts
            and column_statistics.distinct > 1
        ):
            others = present - column_statistics.counts.counts[0]  # a number such as 0 may stand for none
            if others >= (ROWS_OF_ID if named else ROWS_OF_NAME) * (column_statistics.distinct - 1):
                return True
        least = ROWS_OF_ID if named else ROWS_OF_GROUP
        return (
            encoded
            and column_statistics.distinct > FEWEST_GROUPS
            and present >= least * column_statistics.distinct
        )

    drafted = words(Cells(column), frequent=True)
    return replace(drafted, why="a whole number that repeats, as a category too", applies=applies)


def text(
    column: str, span: Span | None, *, why: str = "", is_category: bool = False, frequent: bool = False
) -> Draft:
    """Derive a text feature by the common form of all texts.

    is_category: a vector is not allowed. frequent: see `words`.
    """

    def fit(statistics: Statistics) -> Fitted:
        column_statistics = statistics[column]
        # Of numbers, a comma separates no items.
        are_numbers = bool(why) and isinstance(read_texts(column_statistics.counts), NumberReading)
        delimiter = "" if are_numbers else column_statistics.delimiter
        cells = Cells(column, "words", delimiter) if delimiter else Cells(column)
        return _by_items(cells, span, statistics, is_category, frequent)

    return Draft((column,), Want.COUNTS | Want.TEXT, fit, span, is_category=is_category, why=why)


def numbers_in_text(
    column: str, category: Sequence[Draft], numbers: Mapping[str, Sequence[Draft]]
) -> list[Draft]:
    """Return drafts of a column of texts: the numbers in them if almost all have one, else the category.

    numbers: decimal mark -> drafts over the column of these numbers.
    """

    def when(draft: Draft, applies: Callable[[str], bool]) -> Draft:
        applies_already = draft.applies
        return replace(
            draft,
            applies=lambda all_statistics: (
                applies(decimal_mark(all_statistics[column].counts)) and applies_already(all_statistics)
            ),
        )

    drafts = [when(draft, lambda mark: not mark) for draft in category]
    for decimal, those in numbers.items():
        drafts += (when(draft, functools.partial(operator.eq, decimal)) for draft in those)
    return drafts


def lists(
    column: str, schema: Schema, span: Span | None, *, why: str = "", is_category: bool = False
) -> Draft:
    """Derive the feature of a column of lists by their items: a vector if they are fractional numbers."""
    cells = Cells(column, "words")
    if schema.items(column) is ColumnType.NUMBER and not schema.is_integer(column):
        if is_category:
            raise schema.unusable(column, span)
        return vector(_numeric_cells(cells), span, scaled=True, why=why)

    def fit(statistics: Statistics) -> Fitted:
        return _by_items(cells, span, statistics, is_category)

    return Draft((column,), Want.NONE, fit, span, is_category=is_category, why=why, lists=_readings(cells))


def _by_items(
    cells: Cells, span: Span | None, statistics: Statistics, is_category: bool, frequent: bool = False
) -> Fitted:
    if not cells.has_several:
        return words(cells, span, frequent=frequent).fit(statistics)
    lists = statistics[cells.column].lists
    numbers, weighted = lists[_numeric_cells(cells)], lists[_add_weights(cells)]
    mean, std = numbers.vector
    if not is_category and len(mean) > 1 and numbers.error is None:
        return spec.Vector(cells.column, mean, std, cells.delimiter)
    has_weights = weighted.distinct > 0 and weighted.error is None
    return words(_add_weights(cells) if has_weights else cells, span).fit(statistics)


def _readings(cells: Cells) -> tuple[Cells, ...]:
    """Return the possible readings of the items."""
    return cells, _numeric_cells(cells), _add_weights(cells)


def _numeric_cells(cells: Cells) -> Cells:
    return replace(cells, items="numbers")


def _add_weights(cells: Cells) -> Cells:
    return replace(cells, separator=":")


def list_readings(wants: Mapping[str, Want], statistics: Statistics) -> Iterator[Cells]:
    """Yield the possible readings of the texts that turned out to be lists."""
    for column, want in wants.items():
        if Want.TEXT in want and (delimiter := statistics[column].delimiter):
            yield from _readings(Cells(column, "words", delimiter))


def as_lists(draft: Draft, fitted: Fitted) -> Iterator[str]:
    """Yield a note for each text that is read as several values without a written delimiter."""
    column = spec.category_of(fitted)
    is_concat = column.made_of == "categories"
    parts = [part for part in spec.parts_of(column) if spec.is_category(part)] if is_concat else [column]
    for part, part_fitted in zip(
        draft.parts if is_concat and draft.is_concat else (draft,), parts, strict=True
    ):
        if Want.TEXT in part.wants and part_fitted.delimiter:
            weights = " with weights" if part_fitted.weights else ""
            what = f"categories{weights}" if part_fitted.has_lists else "numbers"
            [source] = spec.sources(part_fitted)
            yield (
                f"{source} (text) looks like lists of {what} between {part_fitted.delimiter!r} "
                "and is read as such"
            )


def calendar(
    column: str, schema: Schema, notes: list[str], span: Span | None = None, *, encoded: bool = False
) -> list[Draft]:
    """Split a date or time into the time itself, for the trend, and its recurring parts, as categories.

    The year is in the time itself, and minutes hardly ever matter: both are available on request. span: of the
    column's name in COLUMN; a named column is kept even if it is constant, except for its parts. encoded: the time is
    encoded in bins. Either way a time before or after all training rows counts as their first or last time: a trend
    says nothing about times that no row has shown.
    """
    kind = schema.type(column).words
    recurring = [part for part in DERIVED_PARTS if part in schema.parts(column)]
    notes.append(
        f"{column} ({kind.removeprefix('a ')}) becomes {1 + len(recurring)} features: {', '.join(['time', *recurring])}"
    )
    time = (
        draft_bins(column, why=f"{kind}, in bins")
        if encoded
        else trend_of(
            column, span, why="" if span else f"{kind}, from the first to the last of the training rows"
        )
    )
    if span:
        return [time, *(date_part(column, part, span, why=f"{kind}, its {part}") for part in recurring)]
    parts = (date_part(column, part, None, why=f"{kind}, its {part}") for part in recurring)
    values = differing_values(time, f"{kind} or NULL, by its presence")
    return [*values, *(replace(draft, applies=values[0].applies) for draft in parts)]


def _is_free_text(column_statistics: ColumnStatistics) -> bool:
    """Return True for a text of many values that mostly occur once: a remark, a title, a full address."""
    present = column_statistics.rows - column_statistics.nulls
    return (
        not column_statistics.delimiter
        and column_statistics.distinct >= FEWEST_TEXTS
        and 2 * column_statistics.distinct > present
    )


def left_out(draft: Draft, statistics: Statistics, schema: Schema) -> tuple[str, str] | None:
    """Return which part of a derived feature is left out and why, or None if it is kept."""
    column = draft.columns[0]
    column_statistics = statistics[column]
    named = draft.span is not None
    if draft.part and column_statistics.parts[draft.part] <= 1 and (named or not column_statistics.constant):
        return f"the {draft.part} of {column}", "it is the same in every training row"
    if column_statistics.nulls == column_statistics.rows:
        return column, "it is NULL in every training row"
    if column_statistics.constant:
        return column, "it is the same in every training row"
    if is_id(column, column_statistics):
        rows = "every row that has one" if column_statistics.nulls else "every row"
        if schema.type(column) is not ColumnType.TEXT:
            return (
                column,
                f"its number is different in {rows}, as an id is; name it in COLUMN to use it anyway",
            )
        use = _use_of_texts(column, column_statistics, schema.dialect) or "name it in COLUMN to use it anyway"
        return column, f"its text is different in {rows}; {use}"
    if Want.TEXT in draft.wants and _is_free_text(column_statistics):
        function = f"HASH({expressions.argument(column)})"
        use = (
            _use_of_texts(column, column_statistics, schema.dialect)
            or f"write {function} in COLUMN to use it anyway"
        )
        return column, f"most of its texts occur once; {use}"
    return None


def _use_of_texts(column: str, statistics: ColumnStatistics, dialect: str) -> str:
    """Return how to use sentences, or texts that are numbers or dates; empty for others."""
    if statistics.longest >= SENTENCE:
        return f"write NGRAMS({expressions.argument(column)}, 3, 4096) in COLUMN to use its words"
    reading = read_texts(statistics.counts)
    expression = read_column(column, reading, dialect) if reading else None
    if reading is None or expression is None:
        return ""
    what = "numbers" if isinstance(reading, NumberReading) else "dates"
    selected = f"{expression} AS {expressions.name(column, dialect)}"
    return f"the texts are {what}: select {selected}{describe_doubt(reading)}"
