"""Expressions for hints, in the dialect of the query or of COLUMN, so that users can copy them unchanged."""

from __future__ import annotations

import re

from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import quoted_name

_SECONDS = {
    "mysql": "UNIX_TIMESTAMP",
    "maxcompute": "UNIX_TIMESTAMP",
    "hive": "UNIX_TIMESTAMP",
    "sqlite": "unixepoch",
    "clickhouse": "toUnixTimestamp",
}
# Words that DuckDB or PostgreSQL reserve as names of columns, beside the words that MySQL reserves.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        "analyse anti any array asof asymmetric at authorization cast collation concurrently deferrable do end freeze "
        "full glob ilike initially isnull lambda notnull offset only overlaps pivot pivot_longer pivot_wider placing "
        "positional qualify returning semi similar some summarize symmetric tablesample unpack unpivot user variadic "
        "verbose",
    )
)
_WITHOUT_NAN = ("mysql",)  # and without infinities
_FINITE = {"duckdb": "isfinite({0})", "clickhouse": "isFinite({0})", "trino": "is_finite({0})"}
_INTEGERS = {"mysql": "SIGNED"}
_TIMESTAMPS = {"mysql": "DATETIME", "maxcompute": "DATETIME"}


class WrittenName(str):
    """Expression of COLUMN as it is written, in the place of a column's name."""

    __slots__ = ()


def name(column: str, dialect: str) -> str:
    """Return the column's name, quoted if necessary."""
    return column if _is_plain(column) else quote(column, dialect)


def quote(column: str, dialect: str) -> str:
    """Return the column's name in quotes."""
    mark = '"' if dialect_named(dialect).double_quotes_name else "`"
    return mark + column.replace(mark, mark * 2) + mark


def argument(column: str) -> str:
    """Return the column's name in COLUMN, quoted if a query needs it; backticks are valid in every dialect."""
    return column if isinstance(column, WrittenName) or _is_plain(column) else quoted_name(column)


def model(reference: str) -> str:
    """Return the model's name in a clause, without its version, each part quoted if a clause needs it."""
    return ".".join(map(argument, reference.partition("@")[0].split(".")))


def _is_plain(column: str) -> bool:
    from sqlglot import exp

    # MySQL's list has most of the words that are reserved in any dialect.
    return exp.to_identifier(column).sql("mysql") == column and column.casefold() not in _RESERVED


def seconds(column: str, dialect: str) -> str:
    """Return an expression of a date or time as a number."""
    column_name = name(column, dialect)
    if dialect == "postgres":
        return f"EXTRACT(epoch FROM {column_name})"
    return f"{_SECONDS.get(dialect, 'epoch')}({column_name})"


def has_value(column: str, dialect: str, *, has_nan: bool) -> str:
    """Return the condition of a value that is not NULL and, of a type that has them, neither NaN nor infinite."""
    column_name = name(column, dialect)
    if not has_nan or dialect in _WITHOUT_NAN:
        return f"{column_name} IS NOT NULL"
    return _FINITE.get(dialect, "{0} - {0} = 0").format(
        column_name
    )  # NaN or NULL of NULL, NaN and infinities


def round_expression(column: str, dialect: str) -> str:
    """Return an expression that rounds a number to an integer."""
    column_name = name(column, dialect)
    return f"CAST(ROUND({column_name}) AS {_INTEGERS.get(dialect, 'BIGINT')}) AS {column_name}"


def timestamp(column: str, dialect: str) -> str | None:
    """Return a cast of a date or text to a timestamp, or None if only a table's declaration makes one."""
    if dialect == "sqlite":
        return None
    column_name = name(column, dialect)
    return f"CAST({column_name} AS {_TIMESTAMPS.get(dialect, 'TIMESTAMP')}) AS {column_name}"
