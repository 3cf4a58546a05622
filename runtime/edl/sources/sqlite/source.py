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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from edl.data.displayed_rows import DisplayedRows, join_small_batches
from edl.data.names import check_unique, quote_part
from edl.data.source import Pinned, RowEstimate
from edl.data.url import SourceURL, database_file
from edl.errors import SourceError
from edl.sources.cursors import FETCH_ROWS, CursorSource, RowConverter
from edl.sources.sqlite import queries, results, types
from edl.sources.sqlite.errors import LEXICON, check_query, opening_error, translate_error
from edl.sources.sqlite.results import SQLiteResults
from edl.sources.sqlite.syntax import syntax_error
from edl.sources.sqlite.types import SQLiteColumn
from edl.spec import Split

LOCK_SECONDS = 20.0

_READS = ("SELECT", "VALUES", "PRAGMA", "EXPLAIN")


class SQLiteSource(CursorSource[SQLiteColumn]):
    """`edl.data.source.Source` for SQLite. `schema` scans the rows: types depend on all values."""

    dialect = "sqlite"
    temporary_tables = True
    finds_syntax_errors = True
    errors = (sqlite3.Error, sqlite3.Warning)  # Warning: several statements, before Python 3.12
    home = '"main".'
    begin = "BEGIN IMMEDIATE"

    def __init__(self, connection: sqlite3.Connection, url: str) -> None:
        super().__init__(connection, url)
        connection.isolation_level = None  # transactions are explicit
        if sys.version_info >= (3, 12):  # an unknown column in double quotes is an error, not a text
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DML, False)
        self._results = SQLiteResults(self)
        self._changes = 0  # statements of this connection that may have changed something
        # The last query's columns, and the state in which they were determined.
        self._seen: tuple[object, list[SQLiteColumn]] | None = None

    @property
    def has_open_transaction(self) -> bool:
        return bool(self.connection.in_transaction)

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> SQLiteSource:
        path = database_file(url, create=create)
        try:
            # DuckDB shuffles rows as they come, and fetches them from its own threads.
            connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
            # SQLite opens the file at the first statement.
            connection.execute("PRAGMA schema_version").fetchall()
        except sqlite3.Error as error:
            raise opening_error(error, str(path)) from None
        return cls(connection, str(url))

    @classmethod
    def open_beside(cls, connection: sqlite3.Connection) -> SQLiteSource:
        """Open a source over the database of a caller's connection; its settings and transaction stay as they are."""
        try:
            rows = connection.execute("PRAGMA database_list").fetchall()
        except sqlite3.Error as error:
            raise opening_error(error, "the database of the connection") from None
        file = next((file for _, name, file in rows if name == "main"), "")
        if not file:
            raise SourceError(
                "a SQLite database in memory can be read by its own connection alone",
                hint="use a file, or a DuckDB connection",
            )
        return cls.connect(SourceURL("sqlite", file))

    def interrupt(self) -> None:
        self.connection.interrupt()

    def column_types(self, table: str) -> list[tuple[str, str]]:
        """Return names and declared types of the table's columns; the type is empty if none was declared."""
        query = f"SELECT * FROM {table}"
        check_query(query)
        self._end_result()
        with self._errors(query), queries.as_view(self.connection, query):
            return queries.declared_types(self.connection)

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        """Pin the rows. Mixed columns are texts there, and an error where a job reads them."""
        pinned = super().pin(query, folder, seed=seed, shuffle=shuffle, split=split)
        errors = {column.name: column.error for column in self._columns(query) if column.error is not None}
        unfit = {name: (error.message, error.hint or "") for name, error in errors.items()}
        return msgspec.structs.replace(pinned, unfit=unfit or msgspec.UNSET)

    def estimate_rows(self, query: str) -> RowEstimate | None:
        check_query(query)
        self._end_result()
        with self._errors(query):
            return queries.estimate_rows(self.connection, query.rstrip().rstrip(";"))

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> DisplayedRows | None:
        word = LEXICON.first_word(sql)
        if word not in _READS:
            self._changes += 1
        cursor = self._run(sql, parameters, text=_decode_text)
        if cursor.description is None:
            return None
        with self._errors(sql):
            rows = cursor.fetchmany(FETCH_ROWS)
            if len(rows) == FETCH_ROWS and not parameters and word in ("SELECT", "VALUES"):
                return self._show_rows(sql)
            rows += cursor.fetchall()  # of a statement that is not a query, or an internal one
        columns = types.from_values([SQLiteColumn(name, "") for name, *_ in cursor.description], rows)
        schema = types.schema(columns)
        return DisplayedRows(schema, [types.displayed_batch(columns, rows)] if rows else [])

    def syntax_error(self, sql: str) -> SourceError | None:
        return syntax_error(sql)

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
        self._changes += 1
        super().insert(sql, rows)

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        columns = ", ".join(results.declare_column(field) for field in batches.schema)
        table = f"temp.{quote_part(name)}"
        self.execute(f"SAVEPOINT {name}")
        try:
            self.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" * len(batches.schema))
            self.insert(f"INSERT INTO {table} VALUES ({marks})", results.values_of(batches))
        except BaseException:
            self.execute(f"ROLLBACK TO {name}")
            raise
        finally:
            self.execute(f"RELEASE {name}")

    def drop_temporary(self, name: str) -> None:
        self.execute(f"DROP TABLE IF EXISTS temp.{quote_part(name)}")

    def attached(self) -> dict[str, str]:
        """Return the databases in the order of name lookup, and their files."""
        return queries.databases(self.connection)

    # Inside ----------------------------------------------------------------------------------------------

    def _columns(self, query: str) -> list[SQLiteColumn]:
        """Return the columns of a query with their kinds.

        Raises SourceError if a job cannot use the query. The last result is cached until
        something is written: a job asks for the schema before it pins.
        """
        check_query(query)
        self._end_result()
        with self._errors(query), queries.as_view(self.connection, query) as columns:
            check_unique(queries.true_names(self.connection, query, columns))
            state = (query, self._changes, queries.versions(self.connection))
            if self._seen is None or self._seen[0] != state:
                self._seen = (
                    state,
                    [self._describe_query(column) for column in queries.with_kinds(self.connection, columns)],
                )
            return self._seen[1]

    def _describe_query(self, column: SQLiteColumn) -> SQLiteColumn:
        """Return the column; a mixed one with the error of reading it."""
        if column.kind != "mixed":
            return column
        return replace(
            column, error=types.mixed_column_error(column, queries.example(self.connection, column))
        )

    def _show_rows(self, query: str) -> DisplayedRows:
        """Return a long result for display, with any column names and values."""
        self._end_result()
        with queries.as_view(self.connection, query) as columns:
            kinds = queries.with_kinds(self.connection, columns)
        cursor = self._run(query, text=_decode_text)
        named = [replace(kind, name=name) for kind, (name, *_) in zip(kinds, cursor.description, strict=True)]
        batches = self._batches(cursor, lambda rows: types.displayed_batch(named, rows))
        schema = types.schema(named)
        return DisplayedRows(schema, join_small_batches(batches, schema))

    def _run(self, sql: str, parameters: Sequence[object] = (), text: Callable[[bytes], str] = str) -> Any:
        """Run one statement. `text` makes texts of bytes; `str` raises an error for what is not UTF-8."""
        self.connection.text_factory = text
        return super()._run(sql, parameters)

    def _schema(self, columns: Sequence[SQLiteColumn]) -> pa.Schema:
        return types.schema(columns)

    def _row_converter(self, columns: Sequence[SQLiteColumn], schema: pa.Schema) -> RowConverter:
        return lambda rows: types.batch(columns, rows, schema)

    def _translate(self, error: Exception, sql: str) -> SourceError:
        return translate_error(error, self.connection, sql)

    def _roll_back(self) -> None:
        self._changes += 1
        super()._roll_back()


def _decode_text(text: bytes) -> str:
    """Decode a text for display."""
    return text.decode(errors="replace")
