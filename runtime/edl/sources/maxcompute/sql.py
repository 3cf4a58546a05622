"""Text of MaxCompute's SQL: kinds of statements, names, and literals."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from edl.errors import SourceError
from edl.sources.words import not_a_query, not_one_statement

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


def tokens(sql: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a statement without white space and comments; `lastgroup` is text, name or other."""
    return (token for token in _TOKEN.finditer(sql) if token.lastgroup != "skip")


def first_word(sql: str) -> str:
    """Return the first word in capitals; empty if the text holds no statement."""
    return next((token[0] for token in tokens(sql) if token[0] != ";"), "").upper()


_STATEMENTS = frozenset(
    re.findall(
        r"\w+",
        "ADD ALTER ANALYZE CLONE COUNT CREATE DELETE DESC DESCRIBE DROP EXPLAIN EXPORT GRANT IMPORT INSERT LIST LOAD"
        " MERGE MSCK OPTIMIZE PURGE READ RESTORE REVOKE SET SHOW TRUNCATE TUNNEL UNDO UNLOAD UPDATE USE",
    )
)


def is_query(sql: str) -> bool:
    """Return True if the statement begins like one that has rows."""
    return first_word(sql) in _QUERIES


def one_query(sql: str) -> str:
    """Return the query in a form allowed in parentheses, on lines of its own.

    Raises SourceError unless it is one query.
    """
    one_statement(sql)
    if first_word(sql) in _STATEMENTS:  # the service reports unknown words
        raise not_a_query()
    depth = 0
    for token in tokens(sql):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth < 0:
            raise SourceError("a parenthesis is closed that was not opened")
        if token[0] == "?":
            raise SourceError("a query has no parameters here", hint="write the value in the place of ?")
    last = [token for token in tokens(sql) if token[0] != ";"][-1]
    return sql[: last.end()]


def one_statement(sql: str) -> None:
    """Raise SourceError if the text holds no statement, or several."""
    count, inside = 0, False
    for token in tokens(sql):
        if token[0] == ";":
            inside = False
        elif not inside:
            inside = True
            count += 1
    if count != 1:
        raise not_one_statement(f"{count} statements" if count else "no statement")


def bound(sql: str, parameters: Sequence[object]) -> str:
    """Replace the statement's question marks by the values."""
    values = iter(parameters)
    parts, at = [], 0
    for token in _TOKEN.finditer(sql):
        if token[0] == "?" and parameters:
            parts += [sql[at : token.start()], literal(next(values))]
            at = token.end()
    return "".join([*parts, sql[at:]])


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


def quoted(*parts: str) -> str:
    return ".".join(f"`{part}`" for part in parts)


def partition(values: Mapping[str, str]) -> str:
    """Return a partition of these values as SQL and the tunnel write it. The values must not contain quotes."""
    return ",".join(f"{column}='{value}'" for column, value in values.items())
