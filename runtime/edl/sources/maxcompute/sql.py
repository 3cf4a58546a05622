"""Text of MaxCompute's SQL: kinds of statements, names, and literals."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Mapping, Sequence

from edl.errors import SourceError
from edl.sources.words import Lexicon

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<text>'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?)
      | (?P<name>`[^`]*`?|[^\W\d]\w*)
      | (?P<other>\d[\w.]*|.)""",
    re.VERBOSE | re.DOTALL,
)
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "(")
_NAME = re.compile(r"[A-Za-z]\w{0,127}", re.ASCII)
_COLUMN = re.compile(r"\w{1,128}")
LEXICON = Lexicon(_TOKEN, "`")
_SETTING = re.compile(r"SET\s+([\w.]+)\s*=\s*(.*?)[\s;]*", re.IGNORECASE | re.DOTALL)


def setting(sql: str) -> tuple[str, str] | None:
    """Return the name and the value of a SET statement, or None of another one."""
    first = next(LEXICON.words(sql), None)
    match = _SETTING.fullmatch(sql, first.start()) if first is not None else None
    return (match[1], match[2]) if match else None


def is_query(sql: str) -> bool:
    """Return True if the statement begins like one that has rows."""
    return LEXICON.first_word(sql) in _QUERIES


def bind_values(sql: str, parameters: Sequence[object]) -> str:
    """Replace the statement's question marks by the values."""
    return LEXICON.bound(sql, parameters, literal)


def literal(value: object) -> str:
    """Return a value as a SQL literal."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"CAST({value} AS BIGINT)"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}BD"
    if isinstance(value, bytes):
        return f"UNHEX('{value.hex()}')"
    if isinstance(value, dt.datetime):
        return f"CAST('{value.isoformat(' ', 'milliseconds')}' AS DATETIME)"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return text(str(value))


def text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0").replace("\n", "\\n")
    return f"'{escaped}'"


def split_name(name: str) -> tuple[str, ...]:
    """Split a dotted name into project, schema and table.

    Raises SourceError if MaxCompute does not allow the name.
    """
    parts = tuple(part.strip("`") for part in name.split("."))
    if len(parts) > 3 or not all(_NAME.fullmatch(part) for part in parts):
        raise SourceError(
            f"{name} cannot name a table of MaxCompute",
            hint="a name begins with a letter and has at most 128 letters, digits and _",
        )
    return parts


def check_column(name: str) -> None:
    """Raise SourceError if MaxCompute does not allow the column name."""
    if not _COLUMN.fullmatch(name):
        raise SourceError(
            f"{name!r} cannot name a column of MaxCompute",
            hint="give it a name of at most 128 letters, digits and _ in the SELECT",
        )


def quote_name(*parts: str) -> str:
    return ".".join(f"`{part}`" for part in parts)


def partition(values: Mapping[str, str]) -> str:
    """Return a partition of these values as SQL and the tunnel write it. The values must not contain quotes."""
    return ",".join(f"{column}='{value}'" for column, value in values.items())
