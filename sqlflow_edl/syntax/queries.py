"""What sqlglot makes of a query: a second opinion, never the last word, which is the database's."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlflow_edl.syntax.dialects import Dialect, sqlglot_name

if TYPE_CHECKING:
    from sqlglot import exp

_SHOWN = 120  # characters of sqlglot's message


@lru_cache(maxsize=256)
def objection(sql: str, dialect: Dialect) -> str | None:
    """Why sqlglot cannot read `sql` as one query of the dialect, in one line; None when it can."""
    import sqlglot

    try:
        statements = trees(sql, dialect)
    except ValueError as error:
        return str(error)
    is_query = len(statements) == 1 and isinstance(statements[0], sqlglot.exp.Query)
    return None if is_query else "not a query"


def trees(sql: str, dialect: Dialect) -> list[exp.Expr]:
    """The statements in `sql` as sqlglot reads them. ValueError: it cannot, and says in one line why."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    logger = logging.getLogger("sqlglot")  # it logs what it falls back from; the caller gets it as a warning
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        found = sqlglot.parse(sql, read=sqlglot_name(dialect))
    except (SqlglotError, RecursionError, ValueError, IndexError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(lines[0].removesuffix(".")[:_SHOWN]) from None
    finally:
        logger.setLevel(level)
    return [tree for tree in found if tree is not None]
