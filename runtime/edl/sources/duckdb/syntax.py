"""DuckDB's parser: it reads a statement without running it."""

from __future__ import annotations

from functools import cache

import duckdb

from edl.errors import SourceError
from edl.sources.duckdb.errors import translate_error


def syntax_error(sql: str, connection: duckdb.DuckDBPyConnection | None = None) -> SourceError | None:
    """Return the error of one statement, or None if the parser accepts it.

    connection: to the database. Its extensions may add to the syntax, and a hint may mention its names; the statement
    is parsed on another connection to it.
    """
    with (connection or _empty_database()).cursor() as cursor:
        try:
            cursor.extract_statements(sql)
        except duckdb.ParserException as error:
            return translate_error(error, cursor, sql, list)
        except (duckdb.Error, RuntimeError):  # no error of syntax: PRAGMA is looked up as it is parsed
            return None
    return None


@cache
def _empty_database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()
