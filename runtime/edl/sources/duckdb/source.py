"""DuckDB as a data source: one connection in the client's process.

A DuckDB file opened by one process cannot be opened by another, not even for reading. So the client pins rows into
the job folder, instances work on those, and the client commits the results. Between statements and during a training it
can close the file for other processes.

One connection runs one statement at a time: the next statement ends a result that was not read to its end, and
further reads of that result are a SourceError. A source belongs to one thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from edl.data.arrow_types import BATCH_ROWS, cast_batch, normal_schema
from edl.data.names import check_unique, format_name, join_quoted
from edl.data.source import MissingRightError, Pinned, RowEstimate
from edl.data.url import MEMORY, SourceURL, database_file
from edl.errors import SourceError
from edl.sources.common import EmbeddedSource
from edl.sources.duckdb import queries
from edl.sources.duckdb.engine import is_read_only, open_database, planning_wide_hashes
from edl.sources.duckdb.errors import opening_error, raise_interrupt, translate_error, while_reading
from edl.sources.duckdb.estimating import estimate_rows
from edl.sources.duckdb.results import DuckDBResults
from edl.sources.duckdb.syntax import syntax_error
from edl.sources.row_order.keyed_rows import Column, OrderedRows, keyed_query, order_rows
from edl.sources.transactions import Transactional
from edl.sources.words import ended_result_error, not_a_query, not_one_statement
from edl.spec import Split

_SILENT = (["Count"], ["Success"])  # columns of statements without rows

_SQLITE = b"SQLite format 3\0"
# A name in a query is a table, never a variable of the calling Python program.
_TABLES_ONLY = "SET python_enable_replacements = false"
_TRANSACTION = "transaction"
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*", re.IGNORECASE)
_BEGINS = re.compile(r"\s*(begin|start)\b", re.IGNORECASE)
# Statements after which the session is as before, unless they have one of these words.
_STATELESS = frozenset(
    getattr(duckdb.StatementType, name)
    for name in (
        "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "COPY", "EXPLAIN", "EXPORT", "VACUUM",
        "ANALYZE", "MULTI",
    )
)  # fmt: skip
_STATEFUL = re.compile(r"\b(temp|temporary|secret|setseed|currval|getvariable)\b", re.IGNORECASE)
_QUERIES = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)  # MULTI: PIVOT


class DuckDBSource(Transactional, EmbeddedSource):
    """`edl.data.source.Source` for DuckDB."""

    dialect = "duckdb"
    temporary_tables = True
    finds_syntax_errors = True
    _results: DuckDBResults

    def __init__(self, connection: duckdb.DuckDBPyConnection, url: str, path: Path | None = None) -> None:
        """Open the source. path: its file, if `release` may close it."""
        self.url = url
        self._connection: duckdb.DuckDBPyConnection | None = connection
        self._path = path
        self._state = set[str]()  # of the session, which another connection would not have
        self._unread: pa.RecordBatchReader | None = None
        self._results = DuckDBResults(self)
        connection.execute(_TABLES_ONLY)
        catalog = connection.execute("SELECT current_catalog()").fetchall()[0][0]
        self.home = join_quoted((catalog, "main")) + "."

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> DuckDBSource:
        path = database_file(url, create=create)
        if _is_sqlite(path):  # DuckDB would fetch an extension for it
            raise SourceError(f"{path} is a SQLite database", hint=f"write it as sqlite:///{path}")
        try:
            return cls(open_database(path), str(url), path.absolute() if isinstance(path, Path) else None)
        except duckdb.Error as error:
            raise opening_error(error, str(path)) from None

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Connection to the database, opened again after `release`. Raises SourceError if another process has it."""
        if self._connection is None:
            self._connection = self._open_again()
        return self._connection

    @property
    def has_open_transaction(self) -> bool:
        return _TRANSACTION in self._state

    def commit_rows(
        self, target: str, job: str, attempt: int, batches: Iterable[pa.RecordBatch], *, append: bool = False
    ) -> int:
        if append:
            return super().commit_rows(target, job, attempt, batches, append=True)
        return self._results.write(target, job, batches)

    def release(self) -> None:
        if self._path is None or self._connection is None or self._state or self.in_transaction:
            return
        if self._unread is None:
            self._close_connection(self._connection)
            self._connection = None

    def reopen(self) -> None:
        if self._connection is None:
            self._connection = self._open_again()

    def _close_connection(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.close()

    def _open_again(self) -> duckdb.DuckDBPyConnection:
        if self._path is None or not self._path.is_file():  # DuckDB would create it
            raise SourceError(f"there is no database file {self._path} any more")
        return open_file(self._path)

    @classmethod
    def open_beside(cls, connection: duckdb.DuckDBPyConnection) -> DuckDBSource:
        """Open a source over the database of a caller's connection; its settings and transaction stay as they are."""
        try:
            cursor = connection.cursor()
            [(path,)] = cursor.execute(queries.CURRENT_DATABASE).fetchall()
        except duckdb.Error as error:
            raise opening_error(error, "the database of the connection") from None
        return cls(cursor, str(SourceURL("duckdb", path or MEMORY)))

    def check_rights(self, statements: Sequence[str]) -> None:
        if self._path is not None and is_read_only(self._path):
            raise MissingRightError(f"this account may not write {self._path}, or not its folder")

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        self.check_rights(())

    def interrupt(self) -> None:
        if (connection := self._connection) is not None:
            connection.interrupt()

    def close(self) -> None:
        self._end_result()
        if self._connection is not None:
            self._close_connection(self._connection)

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        query, _ = self._plain(query)
        with self._errors(query):
            return normal_schema(self.connection.sql(queries.without_rows(query)).to_arrow_reader(1).schema)

    def column_types(self, table: str) -> list[tuple[str, str]]:
        _, columns = self._plain(f"SELECT * FROM {table}")
        return [(name, str(kind)) for name, kind in columns]

    def stream(self, query: str, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        query, _ = self._plain(query)
        return self._reader(query, batch_rows)

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        select, columns = self._plain(query)
        if not shuffle and split is None:
            rows = OrderedRows(self._reader(select, BATCH_ROWS))
            return rows.pin(folder, source=self.url, select=query, seed=seed, shuffled=False)
        keyed = keyed_query(select, columns, split=split)
        with planning_wide_hashes(self.connection, len(columns)):
            reader = self._reader(keyed.text, BATCH_ROWS)
        with order_rows(reader, reader.schema, keyed.keys, seed, folder, split) as rows:
            return rows.pin(folder, source=self.url, select=query, seed=seed, shuffled=True)

    def estimate_rows(self, query: str) -> RowEstimate | None:
        if self.in_transaction or self.has_open_transaction:  # an interruption would end it
            return None
        query = query.rstrip().rstrip(";")
        with self._errors(query):
            return estimate_rows(self.connection, query)

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> pa.RecordBatchReader | None:
        """Run one statement. SHOW TABLES leaves out the tables of models and results, as `tables` does."""
        if _SHOW_TABLES.fullmatch(sql):
            sql = f"SELECT name FROM (SHOW TABLES) WHERE {self._is_shown()} ORDER BY name"
        statement = self._only_statement(sql)
        self._note_state(statement)
        with self._errors(sql):
            relation = self.connection.sql(sql, params=list(parameters))
            is_query = statement.type == duckdb.StatementType.SELECT
            if relation is None or (relation.columns in _SILENT and not is_query):
                return None
            inner = queries.as_displayable(relation).to_arrow_reader(BATCH_ROWS)
            if not is_query:  # its rows are in memory
                return inner
            self._unread = inner
        return pa.RecordBatchReader.from_batches(inner.schema, self._batches(inner))

    def _is_shown(self) -> str:
        """Return the condition under which SHOW TABLES has a name."""
        return "NOT starts_with(name, 'sqlflow_edl_')"

    def syntax_error(self, sql: str) -> SourceError | None:
        return syntax_error(sql, self.connection)

    def tables(self) -> list[str]:
        with self._errors(queries.TABLES):
            return self._tables()

    def databases(self) -> list[str]:
        with self._errors(queries.DATABASES):
            return [name for (name,) in self.connection.execute(queries.DATABASES).fetchall()]

    # Writing ---------------------------------------------------------------------------------------------

    @contextmanager
    def visible(self, name: str, data: pa.Table | pa.RecordBatchReader) -> Iterator[None]:
        """Expose Arrow data as a table to statements of this connection, inside the context."""
        with self._errors(name):
            self.connection.register(name, data)
        try:
            yield
        finally:
            # After an error inside a transaction DuckDB refuses even this; the rollback then removes it.
            with suppress(duckdb.Error):
                self.connection.unregister(name)

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        """Expose the rows as a view of this connection. They stay in memory."""
        rows = batches.read_all()
        with self._errors(name):
            self.connection.register(name, rows)
        self._state.add(name)

    def drop_temporary(self, name: str) -> None:
        with self._errors(name):
            self.connection.unregister(name)
        self._state.discard(name)

    # Inside ----------------------------------------------------------------------------------------------

    def _plain(self, query: str) -> tuple[str, list[Column]]:
        """Return the query in a form allowed in parentheses, with plain columns.

        Raises SourceError unless it is one query.
        """
        if self._only_statement(query).type not in _QUERIES:
            raise not_a_query()
        query = query.rstrip().rstrip(";")
        with self._errors(query):
            # Parentheses first: DuckDB runs a writing statement at once, and parentheses allow none.
            empty = self.connection.sql(queries.without_rows(query))
            relation = self.connection.sql(query)
            columns = list(zip(relation.columns, relation.types, strict=True))
            check_unique(name for name, _ in columns)
            types = queries.read_as(columns, lambda: empty.to_arrow_reader(1).schema)
            wide, fitting = queries.wide_numbers(query, columns)
            if wide:
                [answers] = self.connection.execute(fitting).fetchall()
                types |= dict(zip(wide, answers, strict=True))
        return queries.cast_columns(query, columns, types), columns

    def _only_statement(self, sql: str) -> duckdb.Statement:
        with self._errors(sql):
            statements = self.connection.extract_statements(sql)
        if len(statements) != 1:
            raise not_one_statement(f"{len(statements)} statements" if statements else "no statement")
        return statements[0]

    def _note_state(self, statement: duckdb.Statement) -> None:
        """Note what a statement leaves in the session: a setting, a temporary table, a transaction."""
        if statement.type == duckdb.StatementType.TRANSACTION:
            if _BEGINS.match(statement.query):
                self._state.add(_TRANSACTION)
            else:
                self._state.discard(_TRANSACTION)
        elif statement.type not in _STATELESS or _STATEFUL.search(statement.query):
            self._state.add("settings")

    def _reader(self, query: str, batch_rows: int) -> pa.RecordBatchReader:
        """Return the rows of a query of plain columns."""
        inner = self._run(query, (), batch_rows)
        schema = normal_schema(inner.schema)
        return pa.RecordBatchReader.from_batches(
            schema, (cast_batch(batch, schema) for batch in self._batches(inner))
        )

    def _run(self, query: str, parameters: Sequence[object], batch_rows: int) -> pa.RecordBatchReader:
        with self._errors(query):
            self._unread = self.connection.sql(query, params=list(parameters)).to_arrow_reader(batch_rows)
        return self._unread

    def _batches(self, inner: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of DuckDB's reader, with its errors translated."""
        try:
            yield from inner
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if self._unread is not inner:
                raise ended_result_error() from None
            raise while_reading(error) from None
        except RuntimeError as error:
            raise_interrupt(error)
            raise
        finally:
            inner.close()
            if self._unread is inner:
                self._unread = None

    def _end_result(self) -> None:
        if self._unread is not None:
            self._unread.close()
            self._unread = None

    def _roll_back(self) -> None:
        self._end_result()
        self._state.discard(_TRANSACTION)
        with suppress(duckdb.Error):  # a failed COMMIT has rolled back already
            self.connection.rollback()

    @contextmanager
    def _errors(self, sql: str) -> Iterator[None]:
        """Run one statement: end the previous result, and translate DuckDB's errors."""
        self._end_result()
        try:
            yield
        except duckdb.Error as error:
            raise translate_error(error, self.connection, sql, self._tables_for_a_hint) from None
        except RuntimeError as error:
            raise_interrupt(error)
            raise

    def _tables(self) -> list[str]:
        reserved = {word for (word,) in self.connection.sql(queries.RESERVED).fetchall()}
        return [format_name(parts, reserved) for (parts,) in self.connection.sql(queries.TABLES).fetchall()]

    def _tables_for_a_hint(self) -> list[str]:
        try:
            return self._tables()
        except duckdb.Error:  # a failed transaction allows no queries
            return []


def open_file(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a database that was open before. Raises SourceError if another process has it."""
    try:
        connection = open_database(path)
    except duckdb.Error as error:
        raise opening_error(error, str(path)) from None
    connection.execute(_TABLES_ONLY)
    return connection


def _is_sqlite(path: Path | str) -> bool:
    if not isinstance(path, Path) or not path.is_file() or _has_open(path):
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:  # DuckDB says why
        return False


def _has_open(path: Path) -> bool:
    """Return True if this process has the file open. To open and close it once more would end DuckDB's lock on it."""
    file = path.stat()
    for descriptor in Path("/dev/fd").iterdir():
        with suppress(OSError):  # the descriptor of the folder itself, which is closed
            if os.path.samestat(os.fstat(int(descriptor.name)), file):
                return True
    return False
