"""Checks of queries with sqlglot, as a second opinion: the database has the last word."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from edl.errors import Span
from sqlflow_edl.syntax.dialects import Dialect, sqlglot_name

if TYPE_CHECKING:
    from sqlglot import exp

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
