"""Types of SQLite columns. There every value has its own type, and a declared type is only a preference.

One scan inside SQLite finds the types that a column's values have. The declaration decides the rest: the type of a
column without values, that whole numbers in a column of fractions are fractions, and that 0 and 1 are booleans and
texts are dates. If values violate a BOOLEAN, DATE, TIME or TIMESTAMP declaration, the column keeps the type of its
values. A column with text beside numbers, or bytes beside anything, has no type: a job rejects it; in a result for
display it becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from edl.data.arrow_types import of_database, times_of_day
from edl.data.displayed_rows import text_where_unfit
from edl.data.names import quote_part
from edl.errors import SourceError

# kind -> Arrow type of its columns
ARROW = {
    "null": pa.null(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "blob": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
    "time": pa.time64("us"),
    "mixed": pa.string(),
}
# kinds that SQLite stores as another type -> Arrow type of the stored values
_STORED = {"boolean": pa.int64()} | dict.fromkeys(("date", "timestamp", "instant", "time"), pa.string())

# pattern of a declared type -> intended kind; the first match counts. SQLite itself matches parts
# of the name too, and uses NUM for an expression of unknown type.
_DECLARED = (
    (r"^BOOL", "boolean"),
    (r"^DATE$", "date"),
    (r"^TIME$", "time"),
    (r"^(TIMESTAMP|DATETIME)", "timestamp"),
    (r"INT", "integer"),
    (r"CHAR|CLOB|TEXT", "text"),
    (r"BLOB", "blob"),
    (r"REAL|FLOA|DOUB|DEC|NUMERIC", "real"),
)
_NANOSECONDS = "*." + "[0-9]" * 7 + "*"
_PYTHON = {int: "integer", float: "real", str: "text", bytes: "blob", type(None): "null"}


@dataclass(frozen=True, slots=True)
class SQLiteColumn:
    """Column of a query. `declared_kind` is the table's declaration as a word of `_DECLARED`, empty for an expression.

    `error` is raised where a job reads a mixed column: its values have several types; None for other columns.
    """

    name: str
    declared: str
    kind: str = "null"
    error: SourceError | None = None


def declared_kind(type_name: str) -> str:
    """Return the meaning of a declared type."""
    return next((kind for part, kind in _DECLARED if re.search(part, type_name.upper())), "")


def scan(columns: Sequence[SQLiteColumn], view: str) -> str:
    """Return a query with one row, a description of the contents of the columns; `observe_kinds` reads it."""
    facts = [fact for column in columns for fact in _facts(column)]
    return f"SELECT {', '.join(facts)} FROM {view}"


def observe_kinds(columns: Sequence[SQLiteColumn], row: Sequence[Any]) -> list[SQLiteColumn]:
    """Return the columns with their kinds."""
    facts = iter(row)
    return [_resolve_column(column, [next(facts) for _ in _facts(column)]) for column in columns]


def from_values(columns: Sequence[SQLiteColumn], rows: Sequence[Sequence[Any]]) -> list[SQLiteColumn]:
    """Return the columns with the kinds that all their values have, for a result for display."""
    values = zip(*rows, strict=True) if rows else ((),) * len(columns)
    return [
        SQLiteColumn(column.name, "", _kind({_PYTHON[kind] for kind in set(map(type, cells))}, ""))
        for column, cells in zip(columns, values, strict=True)
    ]


def batch(
    columns: Sequence[SQLiteColumn], rows: Sequence[Sequence[Any]], schema: pa.Schema
) -> pa.RecordBatch:
    """Convert the rows to Arrow. Raises SourceError for a value that is not of its column's kind."""
    values = zip(*rows, strict=True)
    arrays = [_array(column, cells) for column, cells in zip(columns, values, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def displayed_batch(columns: Sequence[SQLiteColumn], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Convert the rows for display: a column is text where a value is not of its kind."""
    values = zip(*rows, strict=True)
    arrays = [
        text_where_unfit(cells, partial(_exact_array, column), _format_value)
        for column, cells in zip(columns, values, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def schema(columns: Sequence[SQLiteColumn]) -> pa.Schema:
    return pa.schema([_field(column) for column in columns])


def _field(column: SQLiteColumn) -> pa.Field:
    """Describe the column; a mixed one by its error, so that a training leaves it out with a note."""
    if column.error is None:
        return pa.field(column.name, ARROW[column.kind])
    _, _, content = column.error.message.partition(" holds both ")
    instead = (column.error.hint or "").removeprefix("write ")
    return of_database(column.name, ARROW[column.kind], f"mixed ({content})", instead)


def mixed_column_error(column: SQLiteColumn, example: object) -> SourceError:
    """Return the error for a column that a job cannot use. `example` is a value that is not a number."""
    if isinstance(example, str) and not example.strip():
        return SourceError(
            f"column {column.name} holds both numbers and empty texts",
            hint=f"write NULLIF({column.name}, {_literal(example)}) AS {column.name}",
        )
    if isinstance(example, str):
        return SourceError(
            f"column {column.name} holds both numbers and text, for example {_literal(example)}",
            hint=f"write {_numbers(column.name)} AS {column.name}, or CAST({column.name} AS TEXT) AS {column.name}",
        )
    return SourceError(
        f"column {column.name} holds both bytes and other values",
        hint=f"write CAST({column.name} AS TEXT) AS {column.name}, or leave it out",
    )


def _numbers(name: str) -> str:
    """Return an expression of the numbers, also as texts; NULL for other texts, of which a cast alone makes 0."""
    is_number = f"{name} GLOB '*[0-9]*' AND {name} NOT GLOB '*[^-+.0-9eE]*'"
    return f"CASE WHEN {is_number} THEN CAST({name} AS REAL) END"


def _facts(column: SQLiteColumn) -> list[str]:
    """Return aggregates: the first and the last type of the column's values, then those that its declared type needs.

    typeof() reads no value, so long texts cost nothing. Ordered by name, the types are blob, integer, null, real,
    text: other types between the first and the last non-null one do not matter.
    """
    name = quote_part(column.name)
    facts = [f"min(typeof({name}))", f"max(typeof({name})) FILTER (WHERE {name} IS NOT NULL)"]
    if column.declared == "boolean":
        facts += [f"min({name})", f"max({name})"]
    elif column.declared == "date":
        facts += [f"min({_is_day(name)})"]
    elif column.declared == "time":
        is_time = f"time({name}) IS NOT NULL AND {name} GLOB '[0-9][0-9]:*' AND substr({name}, 1, 2) < '24'"
        facts += [f"min({name} IS NULL OR ({is_time} AND NOT ({_add_zone(name)}) AND {_not_finer(name)}))"]
    elif column.declared == "timestamp":
        day = f"substr({name}, 1, 10)"
        # SQLite rounds fractions of the last second to a year that it does not have.
        last = f"{name} GLOB '9999-12-31[ T]23:59:59.[0-9]*'"
        is_time = f"{_is_day(day)} AND (julianday({name}) IS NOT NULL OR {last}) AND {_not_finer(name)}"
        zoned = _add_zone(f"substr({name}, 11)")
        facts += [f"min({name} IS NULL OR ({is_time}))", f"min({zoned})", f"max({zoned})"]
    return facts


def _is_day(name: str) -> str:
    """Return a condition that a text is a date.

    SQLite alone accepts 31 days in every month until it has to compute.
    """
    return f"date({name}, '+0 days') IS {name}"


def _add_zone(time: str) -> str:
    return f"{time} GLOB '*[-+Z]*'"


def _not_finer(name: str) -> str:
    """Return a condition that a time is not finer than microseconds."""
    return f"{name} NOT GLOB '{_NANOSECONDS}'"


def _resolve_column(column: SQLiteColumn, facts: Sequence[Any]) -> SQLiteColumn:
    first, last, *details = facts
    types = {first, last} - {None}
    kind = _kind(types, column.declared)
    if column.declared == "boolean" and kind == "integer" and details[0] >= 0 and details[1] <= 1:
        kind = "boolean"
    elif column.declared in ("date", "time") and kind == "text" and details[0]:
        kind = column.declared
    elif column.declared == "timestamp" and kind == "text" and details[0] and details[1] == details[2]:
        kind = "instant" if details[1] else "timestamp"
    return SQLiteColumn(column.name, column.declared, kind)


def _kind(types: Collection[str], declared: str) -> str:
    """Return the kind of a column with values of these types, as returned by typeof()."""
    present = set(types) - {"null"}
    if not present:
        return declared or "null"
    if present <= {"integer", "real"}:
        return "real" if "real" in present or declared == "real" else "integer"
    return present.pop() if len(present) == 1 else "mixed"


def _array(column: SQLiteColumn, values: Sequence[Any]) -> pa.Array:
    arrow = ARROW[column.kind]
    try:
        return _exact_array(column, values)
    except (pa.ArrowException, OverflowError, TypeError):
        if column.kind == "real" and all(isinstance(value, int | float | None) for value in values):
            # Arrow rejects integers that a double cannot hold exactly; SQLite compares and adds them as doubles.
            return pa.array([None if value is None else float(value) for value in values], arrow)
        raise _unfit_error(column, values) from None


def _exact_array(column: SQLiteColumn, values: Sequence[Any]) -> pa.Array:
    """Convert the values of one column. Raises an error of Arrow for an integer that a double cannot hold, too."""
    arrow = ARROW[column.kind]
    if column.kind == "mixed":
        return pa.array(map(_format_value, values), arrow)
    stored = pa.array(values, _STORED.get(column.kind, arrow))
    if column.kind == "time":
        return times_of_day(stored, arrow)
    return stored if stored.type == arrow else stored.cast(arrow)


def _unfit_error(column: SQLiteColumn, values: Sequence[Any]) -> SourceError:
    types = {_PYTHON[kind] for kind in set(map(type, values))}
    if len(types - {"null"}) > 1:
        return mixed_column_error(
            column, next((value for value in values if isinstance(value, str | bytes)), None)
        )
    return SourceError(
        f"column {column.name} holds values that are no {column.kind}",
        hint=f"write CAST({column.name} AS TEXT) AS {column.name}, or as another type",
    )


def _format_value(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)


def _literal(text: str) -> str:
    short = text if len(text) <= 40 else text[:39] + "…"
    return "'" + short.replace("'", "''") + "'"
