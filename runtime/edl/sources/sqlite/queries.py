"""Catalog queries for SQLite. The user's query is in a view, byte for byte, while it is examined."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from edl.data.names import format_name, quote_part
from edl.data.source import RowEstimate
from edl.sources.pinning_cost import PROBE_SECS, SAMPLED_ROWS, row_size
from edl.sources.sqlite.types import SQLiteColumn, declared_kind, observe_kinds, scan

VIEW = 'temp."sqlflow_edl_query"'
_VIEW_COLUMNS = """SELECT name, type FROM pragma_table_info('sqlflow_edl_query', 'temp') ORDER BY cid"""
_READ_SECS = 0.5e-6  # of a value
_STEPS = 10_000  # of SQLite's machine, after which the time is looked at
SCANNED = 400  # a query of SQLite has 2,000 results by default, and there are up to five for each column
_NUMBERED = re.compile(r"(.+):\d+", re.DOTALL)

# Reserved words, which must be quoted as names.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "add all alter and as autoincrement between case check collate commit constraint create default deferrable"
        " delete distinct drop else escape except exists foreign from group having in index insert intersect into"
        " is isnull join limit not nothing notnull null on or order primary references returning select set table"
        " then to transaction union unique update using values when where",
    )
)


def estimate_rows(connection: sqlite3.Connection, query: str) -> RowEstimate | None:
    """Count the rows of the query, and read some for their size; None if that takes too long.

    Raises sqlite3.Error as the query does.
    """
    began = time.monotonic()
    connection.set_progress_handler(lambda: time.monotonic() - began > PROBE_SECS, _STEPS)
    try:
        [(rows,)] = connection.execute(f"SELECT count(*) FROM (\n{query}\n)").fetchall()
        counting = time.monotonic() - began
        sample = connection.execute(f"SELECT * FROM (\n{query}\n) LIMIT {SAMPLED_ROWS}").fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        connection.set_progress_handler(None, 0)
    width = sum(map(row_size, sample)) / max(1, len(sample))
    values = rows * len(sample[0]) if sample else 0
    return RowEstimate(rows, rows * width, counting + values * _READ_SECS, is_counted=True)


@contextmanager
def as_view(connection: sqlite3.Connection, query: str) -> Iterator[list[SQLiteColumn]]:
    """Create a temporary view of the query inside the context. Yield its columns without kinds, with unique names.

    Raises sqlite3.Error if the text is not one query, or names unknown objects.
    """
    connection.execute(f"DROP VIEW IF EXISTS {VIEW}")
    connection.execute(f"CREATE VIEW {VIEW} AS\n{query}")
    try:
        rows = connection.execute(_VIEW_COLUMNS).fetchall()
        yield [SQLiteColumn(name, declared_kind(kind or "")) for name, kind in rows]
    finally:
        with suppress(sqlite3.Error):
            connection.execute(f"DROP VIEW IF EXISTS {VIEW}")


def declared_types(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return names of the view's columns and their declared types."""
    return [(name, kind or "") for name, kind in connection.execute(_VIEW_COLUMNS)]


def with_kinds(connection: sqlite3.Connection, columns: Sequence[SQLiteColumn]) -> list[SQLiteColumn]:
    """Return the columns of the view with the kinds of their values. A scan finds the kinds of SCANNED columns."""
    columns_with_kinds: list[SQLiteColumn] = []
    for first in range(0, len(columns), SCANNED):
        some = columns[first : first + SCANNED]
        (row,) = connection.execute(scan(some, VIEW)).fetchall()
        columns_with_kinds += observe_kinds(some, row)
    return columns_with_kinds


def example(connection: sqlite3.Connection, column: SQLiteColumn) -> object:
    """Return a value of a mixed column that is not a number."""
    name = quote_part(column.name)
    query = (
        f"SELECT {name} FROM {VIEW} WHERE typeof({name}) IN ('text', 'blob') ORDER BY typeof({name}) LIMIT 1"
    )
    rows = connection.execute(query).fetchall()
    return rows[0][0] if rows else None


def true_names(connection: sqlite3.Connection, query: str, columns: Sequence[SQLiteColumn]) -> list[str]:
    """Return the names that the query gives its columns: a view renames duplicates, `a` and `a:1`.

    Only running the query distinguishes them from columns that really have such names.
    """
    names = [column.name for column in columns]
    folded = {name.casefold() for name in names}
    if not any((match := _NUMBERED.fullmatch(name)) and match[1].casefold() in folded for name in names):
        return names
    cursor = connection.execute(query)
    try:
        return [name for name, *_ in cursor.description]
    finally:
        cursor.close()


def databases(connection: sqlite3.Connection) -> dict[str, str]:
    """Return attached databases in the order of name lookup, with their files; empty for one in memory."""
    files = {name: file for _, name, file in connection.execute("PRAGMA database_list")}
    return {"temp": "", **files}


def versions(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Return numbers that change when another connection writes to an attached database."""
    names = [name for name in databases(connection) if name != "temp"]
    return tuple(
        connection.execute(f"PRAGMA {quote_part(name)}.data_version").fetchone()[0] for name in names
    )


def tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of tables and views as a query must write them."""
    names = []
    for database in databases(connection):
        query = (
            f"SELECT name FROM {quote_part(database)}.sqlite_master WHERE type IN ('table', 'view')"
            r" AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'sqlflow\_edl\_%' ESCAPE '\' ORDER BY name"
        )
        parts = () if database in ("temp", "main") else (database,)
        names += [format_name((*parts, name), RESERVED) for (name,) in connection.execute(query)]
    return names


def columns_of(connection: sqlite3.Connection, names: Collection[str]) -> list[str]:
    """Return the distinct columns of those names that are tables or views."""
    query = "SELECT name FROM pragma_table_info(?)"
    columns = [column for name in sorted(names) for (column,) in connection.execute(query, (name,))]
    return list(dict.fromkeys(columns))


def functions(connection: sqlite3.Connection) -> list[str]:
    query = r"SELECT DISTINCT name FROM pragma_function_list WHERE name GLOB '[a-z]*'"
    return [name for (name,) in connection.execute(query)]
