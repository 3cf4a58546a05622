"""The SQL that looks into SQLite. The user's own query stands in a view, byte for byte, while it is looked at."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from edl.data.names import quoted, shown
from edl.sources.sqlite.types import Column, declared, observed, scan

VIEW = 'temp."sqlflow_edl_query"'
_VIEW_COLUMNS = """SELECT name, type FROM pragma_table_info('sqlflow_edl_query', 'temp') ORDER BY cid"""
_NUMBERED = re.compile(r"(.+):\d+", re.DOTALL)

# What cannot be a name without quotes.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "add all alter and as autoincrement between case check collate commit constraint create default deferrable"
        " delete distinct drop else escape except exists foreign from group having in index insert intersect into"
        " is isnull join limit not nothing notnull null on or order primary references returning select set table"
        " then to transaction union unique update using values when where",
    )
)


@contextmanager
def as_view(connection: sqlite3.Connection, query: str) -> Iterator[list[Column]]:
    """A view of the query, for a while; its columns, without kinds, each with a name of its own.

    sqlite3.Error: the text is not one query, or names what is not there.
    """
    connection.execute(f"DROP VIEW IF EXISTS {VIEW}")
    connection.execute(f"CREATE VIEW {VIEW} AS\n{query}")
    try:
        found = connection.execute(_VIEW_COLUMNS).fetchall()
        yield [Column(name, declared(kind or "")) for name, kind in found]
    finally:
        with suppress(sqlite3.Error):
            connection.execute(f"DROP VIEW IF EXISTS {VIEW}")


def declared_types(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Names of the view's columns, and the types with which they were declared."""
    return [(name, kind or "") for name, kind in connection.execute(_VIEW_COLUMNS)]


def with_kinds(connection: sqlite3.Connection, columns: Sequence[Column]) -> list[Column]:
    """The columns of the view, with the kinds that their values have."""
    (row,) = connection.execute(scan(columns, VIEW)).fetchall()
    return observed(columns, row)


def example(connection: sqlite3.Connection, column: Column) -> object:
    """A value of a mixed column that is no number."""
    name = quoted(column.name)
    query = (
        f"SELECT {name} FROM {VIEW} WHERE typeof({name}) IN ('text', 'blob') ORDER BY typeof({name}) LIMIT 1"
    )
    found = connection.execute(query).fetchall()
    return found[0][0] if found else None


def true_names(connection: sqlite3.Connection, query: str, columns: Sequence[Column]) -> list[str]:
    """The names that the query gives its columns: a view numbers those that are there twice, `a` and `a:1`.

    Only running the query tells them from columns that have such names.
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
    """What is attached, in the order in which a name is looked for, and its file; nothing for one in memory."""
    found = {name: file for _, name, file in connection.execute("PRAGMA database_list")}
    return {"temp": "", **found}


def versions(connection: sqlite3.Connection) -> tuple[int, ...]:
    """Numbers that change when another connection writes to a database that is attached to this one."""
    names = [name for name in databases(connection) if name != "temp"]
    return tuple(connection.execute(f"PRAGMA {quoted(name)}.data_version").fetchone()[0] for name in names)


def tables(connection: sqlite3.Connection) -> list[str]:
    """The names of tables and views as a query has to write them."""
    names = []
    for database in databases(connection):
        query = (
            f"SELECT name FROM {quoted(database)}.sqlite_master WHERE type IN ('table', 'view')"
            r" AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'sqlflow\_edl\_%' ESCAPE '\' ORDER BY name"
        )
        parts = () if database in ("temp", "main") else (database,)
        names += [shown((*parts, name), RESERVED) for (name,) in connection.execute(query)]
    return names


def columns_of(connection: sqlite3.Connection, names: Collection[str]) -> list[str]:
    """The names of the columns of those names that are tables or views, once each."""
    query = "SELECT name FROM pragma_table_info(?)"
    found = [column for name in sorted(names) for (column,) in connection.execute(query, (name,))]
    return list(dict.fromkeys(found))


def functions(connection: sqlite3.Connection) -> list[str]:
    query = r"SELECT DISTINCT name FROM pragma_function_list WHERE name GLOB '[a-z]*'"
    return [name for (name,) in connection.execute(query)]
