"""What a selected column becomes when COLUMN does not mention it: a feature by its type and statistics, and why."""

from __future__ import annotations

from edl import spec
from edl.errors import Span, SQLFlowError
from sqlflow_edl.analysis.categories import date_part, text_category
from sqlflow_edl.analysis.drafts import Draft, Statistics
from sqlflow_edl.analysis.numeric import numeric, standardized
from sqlflow_edl.analysis.schema import ColumnType, Schema

LARGEST_VOCABULARY = 10_000
DERIVED_PARTS: tuple[spec.Part, ...] = ("month", "day", "weekday", "hour")
FEW_ROWS = 20  # below, a column of all different texts may still be a category


def derive(
    column: str, schema: Schema, errors: list[SQLFlowError], notes: list[str], select: Span | None
) -> list[Draft]:
    """The draft of an unmentioned column; none, with a note, when its type cannot be a feature."""
    kind = schema.type(column)
    if kind is ColumnType.NUMBER:
        return [standardized(column, why="a number, standardised")]
    if kind is ColumnType.BOOLEAN:
        return [numeric(column, why="a boolean, as 0 and 1")]
    if kind is ColumnType.TEXT:
        return [text_category(column, select, why="a text, as a category", largest=LARGEST_VOCABULARY)]
    if kind.temporal:
        return calendar(column, schema, notes)
    errors.append(schema.unusable(column, select))
    return []


def calendar(column: str, schema: Schema, notes: list[str], span: Span | None = None) -> list[Draft]:
    """A date or time as its parts: the time itself, for the trend, and what recurs, as categories.

    The year is in the time itself, and minutes hardly ever matter: both are there when they are asked for. span: of
    the column's name in COLUMN; what is named is kept even if it never differs, but for its parts.
    """
    kind = schema.type(column).words
    recurring = [part for part in DERIVED_PARTS if part in schema.parts(column)]
    notes.append(f"{column}, {kind}, becomes {', '.join(['the time itself', *recurring])}")
    return [
        standardized(column, span, why="" if span else f"{kind}, standardised"),
        *(date_part(column, part, span, why=f"{kind}, its {part}") for part in recurring),
    ]


def left_out(draft: Draft, statistics: Statistics, schema: Schema) -> tuple[str, str] | None:
    """What of a derived feature is not worth having, and why; None when it is."""
    column = draft.columns[0]
    found = statistics[column]
    named = draft.span is not None
    if draft.part and found.parts[draft.part] <= 1 and (named or not found.constant):
        return f"the {draft.part} of {column}", "it is the same in every training row"
    if found.nulls == found.rows:
        return column, "it is NULL in every training row"
    if found.constant:
        return column, "it is the same in every training row"
    if (
        schema.type(column) is ColumnType.TEXT
        and found.rows >= FEW_ROWS
        and found.distinct >= found.rows - found.nulls
    ):
        return column, "its text is different in every row; name it in COLUMN to use it all the same"
    return None
