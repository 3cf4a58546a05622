"""What hints write in a query, in the SQL of its dialect, or in COLUMN, so that it may be copied as it stands."""

from __future__ import annotations

from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import quoted_name

_SECONDS = {
    "mysql": "UNIX_TIMESTAMP",
    "maxcompute": "UNIX_TIMESTAMP",
    "hive": "UNIX_TIMESTAMP",
    "sqlite": "unixepoch",
}
_INTEGERS = {"mysql": "SIGNED"}
_TIMESTAMPS = {"mysql": "DATETIME", "maxcompute": "DATETIME"}


def name(column: str, dialect: str) -> str:
    """The column's name, quoted where it has to be."""
    if _is_plain(column):
        return column
    quote = '"' if dialect_named(dialect).double_quotes_name else "`"
    return quote + column.replace(quote, quote * 2) + quote


def argument(column: str) -> str:
    """The column's name in COLUMN, quoted where it has to be in a query; backticks do in every dialect."""
    return column if _is_plain(column) else quoted_name(column)


def _is_plain(column: str) -> bool:
    from sqlglot import exp

    # MySQL's words are most of those that are reserved anywhere.
    return exp.to_identifier(column).sql("mysql") == column


def seconds(column: str, dialect: str) -> str:
    """A date or time as a number."""
    return f"{_SECONDS.get(dialect, 'epoch')}({name(column, dialect)})"


def rounded(column: str, dialect: str) -> str:
    """A number as a whole number."""
    written = name(column, dialect)
    return f"CAST(ROUND({written}) AS {_INTEGERS.get(dialect, 'BIGINT')}) AS {written}"


def timestamp(column: str, dialect: str) -> str | None:
    """A date or text as a timestamp; None where only a table's declaration makes one."""
    if dialect == "sqlite":
        return None
    written = name(column, dialect)
    return f"CAST({written} AS {_TIMESTAMPS.get(dialect, 'TIMESTAMP')}) AS {written}"
