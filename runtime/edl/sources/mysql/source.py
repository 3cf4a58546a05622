"""MySQL and MariaDB as a data source, see `edl.sources.server`.

As with every source, the next statement ends a result that was not read to its end: the server gets a kill request,
because otherwise all of it would have to be read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from edl.data.displayed_rows import DisplayedRows, join_small_batches
from edl.data.names import quote_part
from edl.data.server_url import ServerURL
from edl.data.source import Pinned, RowEstimate
from edl.errors import SourceError
from edl.sources.cursors import RowConverter, Rows
from edl.sources.mysql import errors, pinning, queries, upload
from edl.sources.mysql import types as mysql_types
from edl.sources.mysql.connection import (
    ERRORS,
    MySQLConnection,
    bind_values,
    check_options,
    code,
    fetch_columns,
    is_lost,
    open_connection,
)
from edl.sources.mysql.results import MySQLResults
from edl.sources.mysql.rights import check_may_replace, check_rights
from edl.sources.mysql.syntax import syntax_error
from edl.sources.mysql.types import MySQLColumn
from edl.sources.pinned_tables import PREFIX
from edl.sources.server import ServerSource
from edl.sources.words import strip_end
from edl.spec import Split

FETCH_ROWS = 8192  # at a time: so many that a column of all of them costs little more than one of a few
LOCK_SECS = 1  # how long a question waits for a lock, the least of MySQL: the parser looks tables up

_STRICT = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
_STOPPED = 1317


class MySQLSource(ServerSource[MySQLColumn, MySQLConnection]):
    """`edl.data.source.Source` for MySQL and MariaDB."""

    dialect = "mysql"
    errors = ERRORS
    rates = pinning.RATES
    impatience = f"SET lock_wait_timeout = {LOCK_SECS}"
    temporary_tables = True
    _results: MySQLResults

    def __init__(self, url: ServerURL) -> None:
        check_options(url)
        self._running = False
        self._zone: str | None = mysql_types.UTC  # of the session; None if a statement may have set another
        super().__init__(url)
        self.home = quote_part(self.database, "`") + "."
        self._results = MySQLResults(self)

    def interrupt(self) -> None:
        if self._running:
            self._stop(self.connection)

    def close(self) -> None:
        if self._unread is not None:  # the rest of its rows is not read
            self._unread = None
            self.connection.end()
        super().close()

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        return mysql_types.describe_columns(self._columns(query))

    def column_types(self, table: str) -> list[tuple[str, str]]:
        shown = {column.name for column in self._columns(f"SELECT * FROM {table}")}  # visible columns only
        types = [
            (row[0].decode(), row[1].decode()) for row in self.read_few_rows(f"SHOW COLUMNS FROM {table}")
        ]
        return [(name, kind) for name, kind in types if name in shown]

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        self._check_no_transaction()
        return super().pin(query, folder, seed=seed, shuffle=shuffle, split=split)

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> DisplayedRows | None:
        zone = self._session_zone()
        if errors.may_set_zone(sql):
            self._zone = None
            zone = "" if errors.may_have_rows(sql) else zone
        result = self._run(sql, parameters)
        if result.description is None:
            self._unread = None
            return None
        columns = mysql_types.columns(result.fields)
        schema = mysql_types.schema(columns)
        batches = self._batches(result, lambda rows: mysql_types.displayed_batch(columns, rows, zone))
        return DisplayedRows(schema, join_small_batches(batches, schema))

    def check_may_replace(self, table: str) -> None:
        """Raise MissingRightError if the account may not rename and drop tables. `table`: one that is not there."""
        self._second.ask(lambda second: check_may_replace(second, table))

    def syntax_error(self, sql: str) -> SourceError | None:
        connection = self._second.get()
        error = syntax_error(connection, sql) if connection is not None else None
        if connection is None or error is None:
            return None
        asked = "SELECT @@sql_mode"  # another mode has other quotes and operators
        return error if connection.fetch_all(asked) == self.read_few_rows(asked) else None

    def tables(self) -> list[str]:
        return self.look_up(queries.tables, self.database)

    def databases(self) -> list[str]:
        return [name.decode() for (name,) in self.read_few_rows("SHOW DATABASES")]

    def create(self, sql: str, settings: str = "") -> None:
        """Run a `CREATE TABLE … AS` with the visibility of a SELECT, without locks. settings: of this statement alone.

        Raises DeniedError without the right.
        """
        connection = self.live()
        with self._errors(sql), self._mode(connection, "NO_ENGINE_SUBSTITUTION"), self._denials():
            connection.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            with self._runs():
                connection.run(settings + sql)

    # Writing ---------------------------------------------------------------------------------------------

    def append(self, table: str, names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches with the columns `names`. Raises SourceError if a value does not fit its column."""
        connection = self.live()
        with self._errors(""), self._mode(connection, _STRICT), self.in_utc(connection):
            load = upload.may_load(connection)
            upload.write(connection, table, names, batches, load=load)

    def stage_temporary(self, name: str, batches: pa.RecordBatchReader) -> None:
        columns = ", ".join(
            f"{quote_part(field.name, '`')} {upload.declare_type(field)}" for field in batches.schema
        )
        self.execute(
            f"CREATE TEMPORARY TABLE {quote_part(name, '`')} ({columns})"
            f" DEFAULT CHARSET = utf8mb4 COLLATE = {self.collation()}"
        )
        self.append(quote_part(name, "`"), batches.schema.names, batches)

    def drop_temporary(self, name: str) -> None:
        self.execute(f"DROP TEMPORARY TABLE IF EXISTS {quote_part(name, '`')}")

    def alter(self, sql: str) -> None:
        """Run an internal ALTER TABLE. Raises SourceError if a value does not fit its new type."""
        connection = self.live()
        with self._errors(""), self._mode(connection, _STRICT):
            connection.run(sql)

    def collation(self) -> str:
        """Collation of new tables: the database's, so that texts compare with the texts of its other tables."""
        name: str = self.read_few_rows("SELECT @@collation_database")[0][0].decode()
        return name if name.startswith("utf8mb4") else "utf8mb4_general_ci"

    # Inside ----------------------------------------------------------------------------------------------

    def _open(self) -> MySQLConnection:
        return open_connection(self._url)

    def _reopen(self) -> None:
        super()._reopen()
        self._zone = mysql_types.UTC

    def _close_if_lost(self, connection: MySQLConnection) -> None:
        with suppress(*ERRORS):
            connection.ping(reconnect=False)

    def _stop(self, connection: MySQLConnection) -> None:
        """Kill the statement on the connection through another one."""
        with suppress(SourceError, *ERRORS):
            other = open_connection(self._url)
            try:
                other.run(f"KILL QUERY {connection.thread_id()}")
            finally:
                other.close()

    def _pinning(self, columns: Sequence[MySQLColumn], folder: Path) -> pinning.MySQLPinning:
        return pinning.MySQLPinning(self, self._url, columns, folder)

    def _can_make_tables(self) -> bool:
        return pinning.can_make_tables(self)

    def _row_tables(self) -> list[tuple[str, str]]:
        rows = self.look_up(queries.tables_of_ours, self.database, PREFIX)
        return [(self.home + quote_part(name, "`"), comment) for name, comment in rows]

    def _estimate(self, connection: MySQLConnection, query: str) -> RowEstimate:
        return queries.estimate_rows(connection, query)

    def _check_rights(self, connection: MySQLConnection, statements: Iterable[str]) -> None:
        check_rights(connection, statements)

    def _is_denied(self, error: Exception) -> bool:
        return code(error) in errors.DENIED

    def _columns(self, query: str) -> list[MySQLColumn]:
        """Return the columns of a query.

        Raises SourceError if the text is not one query, or names unknown objects.
        """
        errors.check_query(query)
        text = strip_end(query)
        connection = self.live()
        with self._errors(query):
            connection.run(queries.prepare_query(text, connection))
            connection.run("DEALLOCATE PREPARE sqlflow_edl_query")
        try:
            with connection.cursor() as cursor:
                cursor.execute(queries.wrap_query(text))
                return mysql_types.columns(cursor._result.fields)
        except ERRORS as wrong:
            raise errors.not_in_parentheses(wrong, text) from None

    def _schema(self, columns: Sequence[MySQLColumn]) -> pa.Schema:
        return mysql_types.schema(columns)

    def _row_converter(self, columns: Sequence[MySQLColumn], schema: pa.Schema) -> RowConverter:
        zone = self._session_zone()
        return lambda rows: mysql_types.batch(columns, rows, zone)

    def _run(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Run one statement. Return the result from which its rows are read."""
        connection = self.live()
        if parameters:
            sql = bind_values(sql, parameters, connection)
        with self._runs(), self._errors(sql):
            connection.query(sql, unbuffered=True)
        self._unread = connection._result
        return self._unread

    def _fetch(self, cursor: Any) -> tuple[Rows, bool]:
        with self._runs(), self._errors(""):
            rows, is_more = fetch_columns(cursor, FETCH_ROWS)
        if not is_more:
            self._used = time.monotonic()
        return rows, is_more

    @contextmanager
    def _runs(self) -> Iterator[None]:
        """Mark a user's statement as running. On an interruption such as Ctrl-C, kill it at the server.

        Otherwise the server would run it to its end even after its connection is closed.
        """
        self._running = True
        try:
            yield
        except Exception:  # error reported by the server
            raise
        except BaseException:
            self._stop(self.connection)
            raise
        finally:
            self._running = False

    def _end_result(self) -> None:
        result, self._unread = self._unread, None
        if result is None or not result.unbuffered_active:
            return
        if not self.connection.is_open:
            result.unbuffered_active = False
            return
        self._stop(self.connection)
        try:
            while result.read_rows(FETCH_ROWS)[1]:
                pass
        except ERRORS as error:
            result.unbuffered_active = False
            if code(error) != _STOPPED:
                self.connection.end()

    def _begin(self) -> None:
        """Begin with READ COMMITTED: stricter levels lock gaps, so that concurrent writers would block each other."""
        self._check_no_transaction()
        connection = self.live()
        with self._errors(""):
            connection.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.run("START TRANSACTION")

    def _roll_back(self) -> None:
        if not self.connection.is_open:
            return
        with suppress(*ERRORS):
            self._end_result()
            self.connection.rollback()

    @contextmanager
    def _mode(self, connection: MySQLConnection, mode: str) -> Iterator[None]:
        """Set another SQL mode inside the context; the user's may be lax."""
        connection.run("SET @sqlflow_edl_mode = @@sql_mode")
        connection.run(f"SET sql_mode = '{mode}'")
        try:
            yield
        finally:
            if connection.is_open:
                with suppress(*ERRORS):
                    connection.run("SET sql_mode = @sqlflow_edl_mode")

    def _session_zone(self) -> str:
        """Return the time zone in which the session gives values of TIMESTAMP; empty if it is not known."""
        if self._zone is None:
            [(zone, system)] = self.read_few_rows("SELECT @@session.time_zone, @@system_time_zone")
            self._zone = zone.decode()
            if self._zone == "SYSTEM":  # the server knows it by an abbreviation, which others may have too
                self._zone = mysql_types.UTC if system == b"UTC" else ""
        return self._zone

    @contextmanager
    def in_utc(self, connection: MySQLConnection) -> Iterator[None]:
        """Give values of TIMESTAMP in UTC inside the context; the user's session may have another time zone."""
        connection.run("SET @sqlflow_edl_zone = @@time_zone")
        connection.run(f"SET time_zone = '{mysql_types.UTC}'")
        try:
            yield
        finally:
            if connection.is_open:
                with suppress(*ERRORS):
                    connection.run("SET time_zone = @sqlflow_edl_zone")

    def _translate(self, error: Exception, sql: str) -> SourceError:
        if is_lost(error):
            self.connection.end()
        return errors.translate_error(error, sql, self._asked if self.connection.is_open else None)

    def _asked(self) -> MySQLConnection:
        return self.connection
