"""Connections of DuckDB that leave memory to others."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import duckdb

MEMORY_LIMIT = "50%"  # of the machine or the container: DuckDB takes 80 %, and a training runs beside it


def opened(path: Path | str = ":memory:", *, temporary: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open a database. What does not fit in its memory goes to files, in the folder `temporary` or beside it.

    A database that this process has open already, with a limit of its own, keeps it. Raises duckdb.Error.
    """
    connection = duckdb.connect(path)
    if _limit(connection) == _usual_limit():
        connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    if temporary is not None:
        connection.execute("SET temp_directory = ?", (str(temporary),))
    return connection


@cache
def _usual_limit() -> str:
    with duckdb.connect() as connection:
        return _limit(connection)


def _limit(connection: duckdb.DuckDBPyConnection) -> str:
    [(found,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(found)
