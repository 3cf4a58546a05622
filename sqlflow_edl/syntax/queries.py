"""What sqlglot makes of a query: a second opinion, never the last word, which is the database's."""

from __future__ import annotations

import logging
from functools import lru_cache

from sqlflow_edl.syntax.dialects import Dialect, sqlglot_name

_SHOWN = 120  # characters of sqlglot's message


@lru_cache(maxsize=256)
def objection(sql: str, dialect: Dialect) -> str | None:
    """Why sqlglot cannot read `sql` as one query of the dialect, in one line; None when it can."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    logger = logging.getLogger("sqlglot")  # it logs what it falls back from; the caller gets it as a warning
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        statements = sqlglot.parse(sql, read=sqlglot_name(dialect))
    except (SqlglotError, RecursionError, ValueError, IndexError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        return lines[0].removesuffix(".")[:_SHOWN]
    finally:
        logger.setLevel(level)
    is_query = len(statements) == 1 and isinstance(statements[0], sqlglot.exp.Query)
    return None if is_query else "not a query"
