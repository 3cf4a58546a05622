"""Connections of DuckDB that leave memory to others."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import duckdb

from edl.errors import SourceError
from edl.jobs.cores import available_cores

MEMORY_LIMIT = "50%"  # of the machine or the container: DuckDB takes 80 %, and a training runs beside it
LIMIT_VARIABLE = "SQLFLOW_MEMORY_LIMIT"  # of the environment; for the order of rows of servers, too


def open_database(
    path: Path | str = ":memory:", *, temporary: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a database. What does not fit in its memory goes to files, in the folder `temporary` or beside it.

    A database that this process has open already, with a limit of its own, keeps it. Raises duckdb.Error, and
    SourceError for a limit in the environment that is none.
    """
    connection = duckdb.connect(path)
    if _limit(connection) == _usual_limit():
        limit = os.environ.get(LIMIT_VARIABLE) or MEMORY_LIMIT
        try:
            connection.execute("SET memory_limit = ?", (limit,))
        except duckdb.Error:
            connection.close()
            hint = (
                "write bytes or a share of the memory: SQLFLOW_MEMORY_LIMIT=6GB or SQLFLOW_MEMORY_LIMIT=25%"
            )
            raise SourceError(f"{LIMIT_VARIABLE} is {limit!r}, no limit of memory", hint=hint) from None
    if (cores := available_cores()) < (os.cpu_count() or 1):  # DuckDB counts all cores of the machine
        connection.execute(f"SET threads = {cores}")
    if temporary is not None:
        connection.execute("SET temp_directory = ?", (str(temporary),))
    return connection


@cache
def _usual_limit() -> str:
    with duckdb.connect() as connection:
        return _limit(connection)


def _limit(connection: duckdb.DuckDBPyConnection) -> str:
    [(limit,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(limit)
