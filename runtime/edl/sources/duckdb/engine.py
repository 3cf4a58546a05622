"""Connections of DuckDB that leave memory to others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import duckdb

from edl.errors import SourceError
from edl.jobs.cores import available_cores

MEMORY_LIMIT = "50%"  # of the machine or the container: DuckDB takes 80 %, and a training runs beside it
LIMIT_VARIABLE = "SQLFLOW_MEMORY_LIMIT"  # of the environment; for the order of rows of servers, too

_WIDE = 200  # columns
_PROPAGATION = "statistics_propagation"


def open_database(
    path: Path | str = ":memory:", *, temporary: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a database. What does not fit in its memory goes to files, in the folder `temporary` or beside it.

    A database that this process has open already, with a limit of its own, keeps it. A file that this account may not
    write is opened to be read. Raises duckdb.Error, and SourceError for a limit in the environment that is none.
    """
    read_only = is_read_only(path)
    connection = duckdb.connect(path, read_only=read_only)
    if read_only and temporary is None:
        temporary = Path(gettempdir()) / f"duckdb-{os.getpid()}"  # beside the file there is no place
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


def is_read_only(path: Path | str) -> bool:
    """Return True for a database file that this account may not write, or a folder where no log can stand beside it."""
    return isinstance(path, Path) and path.is_file() and not (_may_write(path) and _may_write(path.parent))


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK)


@cache
def _usual_limit() -> str:
    with duckdb.connect() as connection:
        return _limit(connection)


def _limit(connection: duckdb.DuckDBPyConnection) -> str:
    [(limit,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(limit)


@contextmanager
def planning_wide_hashes(connection: duckdb.DuckDBPyConnection, columns: int) -> Iterator[None]:
    """Plan hashes of many columns inside the context without statistics, whose propagation is quadratic in them."""
    if columns < _WIDE:
        yield
        return
    settings = connection.cursor()  # of all connections of the database, also of one that reads a result
    [(before,)] = settings.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    settings.execute("SET disabled_optimizers = ?", (f"{before},{_PROPAGATION}".lstrip(","),))
    try:
        yield
    finally:
        settings.execute("SET disabled_optimizers = ?", (before,))
        settings.close()
