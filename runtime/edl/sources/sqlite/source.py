"""SQLite as a data source: one connection in the client's process.

The user's query is put into a temporary view while its columns are examined: SQLite accepts only a single query in a
view, so a text that writes, or that is two statements, fails there. The types of the columns are determined in one
scan, see `edl.sources.sqlite.types`; rows are then read a few thousand at a time and converted to Arrow column by
column.

As with every source, the next statement ends a result that was not read to its end. A source is used by one thread at
a time. Internal transactions lock the database for writing when they begin, so that two writers wait for each other
and never deadlock; SQLite's `PRAGMA busy_timeout` limits the wait.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from edl.data import pinned
from edl.data.arrow_types import BATCH_ROWS, rechunked
from edl.data.names import duplicate
from edl.data.source import Pinned
from edl.data.url import SourceURL, database_file
from edl.errors import SourceError
from edl.sources.common import EmbeddedSource
from edl.sources.row_order import shuffled_rows
from edl.sources.sqlite import queries, types
from edl.sources.sqlite.errors import first_word, not_a_query, opening, translated
from edl.sources.sqlite.results import SQLiteResults
from edl.sources.sqlite.types import Column
from edl.sources.transactions import Transactional

FETCH_ROWS = 2048  # at a time: what fits into a processor's cache as Python objects
LOCK_SECONDS = 20.0

_ERRORS = (sqlite3.Error, sqlite3.Warning)  # Warning: several statements, before Python 3.12
_READS = ("SELECT", "VALUES", "PRAGMA", "EXPLAIN")


class SQLiteSource(Transactional, EmbeddedSource):
    """`edl.data.source.Source` for SQLite."""

    dialect = "sqlite"
    home = '"main".'
    begin = "BEGIN IMMEDIATE"

    def __init__(self, connection: sqlite3.Connection, url: str) -> None:
        self.url = url
        self.connection = connection
        connection.isolation_level = None  # transactions are explicit
        if sys.version_info >= (3, 12):  # an unknown column in double quotes is an error, not a text
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DML, False)
        self._unread: sqlite3.Cursor | None = None
        self._results = SQLiteResults(self)
        self._changes = 0  # statements of this connection that may have changed something
        self._seen: tuple[object, list[Column]] | None = (
            None  # the last query's columns, and the state in which they were determined
        )

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> SQLiteSource:
        path = database_file(url, create=create)
        try:
            # DuckDB shuffles rows as they come, and fetches them from its own threads.
            connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
            connection.execute(
                "PRAGMA schema_version"
            ).fetchall()  # SQLite opens the file at the first statement
        except sqlite3.Error as error:
            raise opening(error, str(path)) from None
        return cls(connection, str(url))

    def interrupt(self) -> None:
        self.connection.interrupt()

    def close(self) -> None:
        self._end_result()
        self.connection.close()

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        """Return names and types of the query's columns.

        Unlike the contract it scans the rows: types depend on all values.
        """
        return types.schema(self._columns(query))

    def column_types(self, table: str) -> list[tuple[str, str]]:
        """Return names and declared types of the table's columns; the type is empty if none was declared."""
        query = f"SELECT * FROM {table}"
        if error := not_a_query(query):
            raise error
        self._end_result()
        with self._errors(query), queries.as_view(self.connection, query):
            return queries.declared_types(self.connection)

    def stream(self, query: str, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        columns = self._columns(query)
        cursor = self._run(query)
        return self._reader(cursor, columns, batch_rows)

    def pin(self, query: str, folder: Path, *, seed: int, shuffle: bool) -> Pinned:
        reader = self.stream(query)
        facts: dict[str, Any] = {"source": self.url, "select": query, "seed": seed, "shuffled": shuffle}
        if not shuffle:
            return pinned.pin_rows(folder, reader, **facts)
        with shuffled_rows(reader, seed, folder) as in_order:
            return pinned.pin_rows(folder, in_order, **facts)

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> pa.RecordBatchReader | None:
        word = first_word(sql)
        if not word:
            raise SourceError("one statement is expected here, this text holds no statement")
        if word not in _READS:
            self._changes += 1
        cursor = self._run(sql, parameters)
        if cursor.description is None:
            return None
        with self._errors(sql):
            rows = cursor.fetchmany(FETCH_ROWS)
            if len(rows) == FETCH_ROWS and not parameters and word in ("SELECT", "VALUES"):
                return self._shown(sql)
            rows += cursor.fetchall()  # of a statement that is not a query, or an internal one
        columns = types.from_values([Column(name, "") for name, *_ in cursor.description], rows)
        schema = types.schema(columns)
        batches = [types.batch(columns, rows, schema)] if rows else []
        return pa.RecordBatchReader.from_batches(schema, batches)

    def tables(self) -> list[str]:
        self._end_result()
        with self._errors(""):
            return queries.tables(self.connection)

    def databases(self) -> list[str]:
        self._end_result()
        with self._errors(""):
            return [name for name in self.attached() if name != "temp"]

    # Writing ---------------------------------------------------------------------------------------------

    def insert(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run an INSERT for each of the rows, which are consumed on demand."""
        self._end_result()
        self._changes += 1
        with self._errors(sql):
            self.connection.executemany(sql, rows)

    def attached(self) -> dict[str, str]:
        """Return the databases in the order of name lookup, and their files."""
        return queries.databases(self.connection)

    # Inside ----------------------------------------------------------------------------------------------

    def _columns(self, query: str) -> list[Column]:
        """Return the columns of a query with their kinds.

        Raises SourceError if a job cannot use the query or one of its columns. The last result is cached until
        something is written: a job asks for the schema before it pins.
        """
        if error := not_a_query(query):
            raise error
        self._end_result()
        with self._errors(query), queries.as_view(self.connection, query) as columns:
            if name := duplicate(queries.true_names(self.connection, query, columns)):
                raise SourceError(
                    f"the query has more than one column named {name}",
                    hint=f"give each its own name: … AS {name}_2",
                )
            state = (query, self._changes, queries.versions(self.connection))
            if self._seen is None or self._seen[0] != state:
                self._seen = (state, queries.with_kinds(self.connection, columns))
            for column in self._seen[1]:
                if column.kind == "mixed":
                    raise types.mixed(column, queries.example(self.connection, column))
            return self._seen[1]

    def _shown(self, query: str) -> pa.RecordBatchReader:
        """Return a long result for display, with any column names and values."""
        self._end_result()
        with queries.as_view(self.connection, query) as columns:
            kinds = queries.with_kinds(self.connection, columns)
        cursor = self._run(query)
        named = [replace(kind, name=name) for kind, (name, *_) in zip(kinds, cursor.description, strict=True)]
        return self._reader(cursor, named, BATCH_ROWS)

    def _run(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        self._end_result()
        with self._errors(sql):
            self._unread = self.connection.execute(sql, tuple(parameters))
        return self._unread

    def _reader(self, cursor: sqlite3.Cursor, columns: list[Column], batch_rows: int) -> pa.RecordBatchReader:
        schema = types.schema(columns)
        batches = rechunked(self._batches(cursor, columns, schema), schema, batch_rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(
        self, cursor: sqlite3.Cursor, columns: list[Column], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        while True:
            if self._unread is not cursor:
                raise SourceError("this result ended when another statement ran on its connection")
            with self._errors(""):
                rows = cursor.fetchmany(FETCH_ROWS)
            if not rows:
                return
            yield types.batch(columns, rows, schema)

    def _end_result(self) -> None:
        if self._unread is not None:
            self._unread.close()
            self._unread = None

    def _roll_back(self) -> None:
        self._end_result()
        self._changes += 1
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    @contextmanager
    def _errors(self, sql: str) -> Iterator[None]:
        """Translate SQLite's errors."""
        try:
            yield
        except _ERRORS as error:
            raise translated(error, self.connection, sql) from None
