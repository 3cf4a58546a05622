"""Queries as sqlglot reads them, as a second opinion to the database; and what a SELECT selects, found by its words."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from edl.errors import Span
from sqlflow_edl.syntax.dialects import Dialect, sqlglot_name
from sqlflow_edl.syntax.lexer import Token, code_tokens, name_value

if TYPE_CHECKING:
    from sqlglot import exp

_JOINS_QUERIES = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS"))
_CHANGES_ROWS = frozenset(("GROUP", "DISTINCT", "PIVOT", "UNPIVOT"))
WITH_EXCLUDE = {"duckdb": "EXCLUDE", "snowflake": "EXCLUDE", "bigquery": "EXCEPT", "clickhouse": "EXCEPT"}
WITH_REPLACE = ("duckdb", "bigquery", "clickhouse", "snowflake")  # SELECT * REPLACE (…)
_SHOWN = 120  # characters of sqlglot's message


@lru_cache(maxsize=256)
def objection(sql: str, dialect: Dialect) -> str | None:
    """Return the reason, in one line, that `sql` is not one query of the dialect, or None if it is."""
    import sqlglot

    try:
        statements = trees(sql, dialect)
    except ValueError as error:
        return str(error)
    is_query = len(statements) == 1 and isinstance(statements[0], sqlglot.exp.Query)
    return None if is_query else "not a query"


def trees(sql: str, dialect: Dialect) -> list[exp.Expr]:
    """Parse `sql` with sqlglot and return its statements. Raises ValueError with a reason of one line."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    logger = logging.getLogger("sqlglot")  # it logs fallbacks, which the caller gets as a warning
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        parsed = sqlglot.parse(sql, read=sqlglot_name(dialect))
    except (SqlglotError, RecursionError, ValueError, IndexError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(lines[0].removesuffix(".")[:_SHOWN]) from None
    finally:
        logger.setLevel(level)
    return [tree for tree in parsed if tree is not None]


def place_of_error(sql: str, dialect: Dialect) -> Span | None:
    """Return the place of the first word that sqlglot does not understand, or None if it names none."""
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    try:
        sqlglot.parse(sql, read=sqlglot_name(dialect))
    except ParseError as error:
        details = error.errors[0] if error.errors else {}
        line, column, word = details.get("line"), details.get("col"), details.get("highlight") or ""
        if line is None or column is None:
            return None
        before = sum(len(line_text) for line_text in sql.splitlines(keepends=True)[: line - 1])
        return Span(before + column - len(word), before + column)
    except (SqlglotError, RecursionError, ValueError, IndexError):
        return None
    return None


# Items of a SELECT, and corrections of them ------------------------------------------------------------------


class ItemList(NamedTuple):
    """Items of a SELECT, without FROM. tokens: of the whole query. spans: of the items, in order."""

    tokens: list[Token]
    spans: list[Span]


def items(select: str, dialect: Dialect) -> ItemList | None:
    """Return the items of a single SELECT with a FROM, or None of another query."""
    tokens = list(code_tokens(select, 0, dialect))
    outer = [*_outer(tokens)]
    start = next((at for at, token in enumerate(outer) if token.word == "SELECT"), None)
    if start is None or any(token.word in _JOINS_QUERIES for token in outer):
        return None
    last = next((at for at in range(start + 1, len(outer)) if outer[at].word == "FROM"), None)
    if last is None or last == start + 1:
        return None
    spans, first = [], outer[start + 1].start
    for at in range(start + 1, last):
        if outer[at].text == "," and outer[at].kind == "symbol":
            spans.append(Span(first, outer[at - 1].end))
            first = outer[at + 1].start
    return ItemList(tokens, [*spans, Span(first, outer[last - 1].end)])


def _outer(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens outside parentheses, and the first and last one of each."""
    depth = 0
    for token in tokens:
        depth -= token.nesting < 0
        if depth == 0:
            yield token
        depth += token.nesting > 0


def end_of_items(select: str, dialect: Dialect) -> int | None:
    """Return the place for one more item, or None if the rows of the query are not the rows of its tables."""
    item_list = items(select, dialect)
    if item_list is None or any(token.word in _CHANGES_ROWS for token in item_list.tokens):
        return None
    return item_list.spans[-1].end


class ReplacedItem(NamedTuple):
    """Query with another expression for one of its columns, and the item `expression AS column`."""

    select: str
    item: str


def with_expression(select: str, column: str, expression: str, dialect: Dialect) -> ReplacedItem | None:
    """Return the query with an expression in place of a column, which keeps its name, or None if it has no place.

    column: as it is written. Of an item `… AS column`, the expression computes with what precedes AS.
    """
    item_list = items(select, dialect)
    if item_list is None:
        return None
    name = name_value(column).casefold()
    for span in item_list.spans:
        item = select[span.start : span.end]
        named = re.fullmatch(rf"(.+?)\s+AS\s+{re.escape(column)}", item, re.IGNORECASE | re.DOTALL)
        if named is not None:
            whole_name = rf"(?<![\w.]){re.escape(column)}(?!\w)"
            expression = re.sub(whole_name, named[1].replace("\\", r"\\"), expression)
        if named is not None or name_value(item).casefold() == name:
            instead = f"{expression} AS {column}"
            return ReplacedItem(f"{select[: span.start]}{instead}{select[span.end :]}", instead)
    for span in item_list.spans:
        if select[span.start : span.end] == "*" and dialect.name in WITH_REPLACE:
            instead = f"{expression} AS {column}"
            return ReplacedItem(f"{select[: span.end]} REPLACE ({instead}){select[span.end :]}", instead)
    return None


def without_item(select: str, column: str, dialect: Dialect) -> str | None:
    """Return the query without one of its columns, or None if it has no other or cannot be written.

    column: as it is written.
    """
    item_list = items(select, dialect)
    if item_list is None:
        return None
    spans, name = item_list.spans, name_value(column).casefold()
    for at, span in enumerate(spans):
        if name_value(select[span.start : span.end]).casefold() == name and len(spans) > 1:
            start, end = (spans[at - 1].end, span.end) if at else (span.start, spans[1].start)
            return select[:start] + select[end:]
    star = next((span for span in spans if select[span.start : span.end] == "*"), None)
    if star is None or dialect.name not in WITH_EXCLUDE:
        return None
    return f"{select[: star.end]} {WITH_EXCLUDE[dialect.name]} ({column}){select[star.end :]}"
