"""What a selected column becomes when COLUMN does not mention it: a feature by its type and statistics, and why."""

from __future__ import annotations

from edl.errors import Span, SQLFlowError
from sqlflow_edl.analysis.functions import Draft, Statistics, numeric, standardized, text_category
from sqlflow_edl.analysis.schema import ColumnType, Schema

LARGEST_VOCABULARY = 10_000
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
    errors.append(schema.unusable(column, select))
    return []


def left_out(draft: Draft, statistics: Statistics, schema: Schema) -> str | None:
    """Why a derived feature is not worth having, None when it is."""
    column = draft.columns[0]
    found = statistics[column]
    if found.nulls == found.rows:
        return f"{column} is left out: it is NULL in every training row"
    if found.constant:
        return f"{column} is left out: it is the same in every training row"
    if (
        schema.type(column) is ColumnType.TEXT
        and found.rows >= FEW_ROWS
        and found.distinct >= found.rows - found.nulls
    ):
        return f"{column} is left out: its text is different in every row; name it in COLUMN to use it all the same"
    return None
