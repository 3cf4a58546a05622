"""MySQL and MariaDB as a data source.

The user's statements, and internal ones of the same transaction, run on one connection, so that a query sees its
temporary tables and variables. After a long idle time the connection is checked before use, and replaced if it is
lost. As with every source, the next statement ends a result that was not read to its end: the server gets a kill
request, because otherwise all of it would have to be read.

Pinned rows stay in the database as a private table, see `edl.sources.mysql.pinning`. For users without the right to
create tables they are a file, as with an embedded database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from edl.data import pinned
from edl.data.arrow_types import BATCH_ROWS, rechunk_rows
from edl.data.displayed_rows import DisplayedRows, join_small_batches
from edl.data.names import quote_part
from edl.data.server_url import ServerURL
from edl.data.source import Pinned, PinningRates, RowEstimate
from edl.errors import SourceError
from edl.sources.common import BaseSource, pin_file
from edl.sources.mysql import errors, pinning, queries, upload
from edl.sources.mysql import types as mysql_types
from edl.sources.mysql.connection import (
    ERRORS,
    MySQLConnection,
    bind_values,
    check_options,
    code,
    fetch_rows,
    is_lost,
    open_connection,
)
from edl.sources.mysql.results import MySQLResults
from edl.sources.mysql.rights import check_may_replace, check_rights
from edl.sources.mysql.syntax import syntax_error
from edl.sources.mysql.types import MySQLColumn
from edl.sources.pinned_tables import DeniedError
from edl.sources.pinning_cost import IN_FILE
from edl.sources.second_connection import SecondConnection
from edl.sources.transactions import Transactional
from edl.sources.words import ended_result_error
from edl.spec import Split

FETCH_ROWS = 4096  # at a time: what fits into a processor's cache as Python objects
IDLE_SECS = 30.0  # idle time after which a connection is checked before use
LOCK_SECS = 1  # how long a question waits for a lock, the least of MySQL: the parser looks tables up

P = ParamSpec("P")
R = TypeVar("R")

_STRICT = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
_STOPPED = 1317


class MySQLSource(Transactional, BaseSource):
    """`edl.data.source.Source` for MySQL and MariaDB."""

    dialect = "mysql"
    temporary_tables = True
    finds_syntax_errors = True
    _results: MySQLResults

    def __init__(self, url: ServerURL) -> None:
        check_options(url)
        self.url = str(url)
        self.database = url.path
        self.home = quote_part(url.path, "`") + "."
        self._url = url.with_password()
        self._connection = open_connection(self._url)
        self._used = time.monotonic()
        self._running = False
        self._unread: Any = None
        self._zone: str | None = mysql_types.UTC  # of the session; None if a statement may have set another
        self._results = MySQLResults(self)
        self._second = SecondConnection(self._connect_again, lambda connection: bool(connection.open))
        self._pins_tables = ("pin", "file") not in url.options

    @classmethod
    def connect(cls, url: ServerURL, *, create: bool = False) -> MySQLSource:
        """Open the source. `create` has no effect: administrators create databases of a server."""
        return cls(url)

    def live(self) -> MySQLConnection:
        """Return the connection with no unfinished result, replaced if it was lost outside of a transaction."""
        self._end_result()
        connection = self._connection
        if self.in_transaction:
            return connection
        if connection.open and time.monotonic() - self._used > IDLE_SECS:
            with suppress(*ERRORS):
                connection.ping(reconnect=False)
        if not connection.open:
            self._connection = open_connection(self._url)
            self._zone = mysql_types.UTC
        self._used = time.monotonic()
        return self._connection

    def interrupt(self) -> None:
        if self._running:
            self._kill_query()

    def close(self) -> None:
        with suppress(*ERRORS):
            self._second.close()
        if self._unread is not None:
            self._connection.end()
        elif self._connection.open:
            with suppress(*ERRORS):
                self._connection.close()

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        return mysql_types.describe_columns(self._columns(query))

    def column_types(self, table: str) -> list[tuple[str, str]]:
        shown = {column.name for column in self._columns(f"SELECT * FROM {table}")}  # visible columns only
        types = [
            (row[0].decode(), row[1].decode()) for row in self.read_few_rows(f"SHOW COLUMNS FROM {table}")
        ]
        return [(name, kind) for name, kind in types if name in shown]

    def stream(self, query: str, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        columns = self._columns(query)
        zone = self._session_zone()
        return self._reader(self._run(query), columns, batch_rows, zone)

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        self._check_no_transaction(self.live())
        columns = self._columns(query)
        schema = mysql_types.schema(columns)
        text = _one(query)
        if self._pins_tables:
            steps = pinning.MySQLPinning(self, self._url, columns, schema, folder)
            try:
                return steps.pin(text, query, seed=seed, shuffle=shuffle, split=split)
            except DeniedError:
                self._pins_tables = False
        zone = self._session_zone()
        reader = self._reader(self._run(text), columns, BATCH_ROWS, zone)
        return pin_file(self.url, query, reader, folder, seed=seed, shuffle=shuffle, split=split)

    def unpin(self, pinned_rows: Pinned, folder: Path) -> None:
        if pinned_rows.table is None:
            pinned.remove_rows(pinned_rows, folder)
        else:
            self.execute(f"DROP TABLE IF EXISTS {pinned_rows.table.name}")

    def how_rows_are_kept(self) -> str:
        if self._pins_tables and pinning.may_make_tables(self):
            return ""
        asked = ("pin", "file") in self._url.options
        why = "the URL says so" if asked else "this user cannot create tables in the database"
        return f"all rows are copied into the job's folder once, over one connection: {why}"

    def estimate_rows(self, query: str) -> RowEstimate | None:
        # ERRORS: of a table or a setting that only the user's session has
        return self._second.ask(lambda second: queries.estimate_rows(second, _one(query)), ERRORS)

    def pinning_rates(self) -> PinningRates:
        return IN_FILE if self.how_rows_are_kept() else pinning.RATES

    def unpin_abandoned(self) -> int:
        return pinning.drop_abandoned(self)

    # Statements ------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> DisplayedRows | None:
        if parameters:
            sql = bind_values(sql, parameters, self.live())
        zone = self._session_zone()
        if errors.may_set_zone(sql):
            self._zone = None
            zone = "" if errors.may_have_rows(sql) else zone
        result = self._run(sql)
        if result.description is None:
            self._unread = None
            return None
        columns = mysql_types.columns(result.fields)
        schema = mysql_types.schema(columns)
        batches = self._batches(result, lambda rows: mysql_types.displayed_batch(columns, rows, zone))
        return DisplayedRows(schema, join_small_batches(batches, schema))

    @property
    def has_open_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def check_rights(self, statements: Sequence[str]) -> None:
        self._second.ask(lambda second: check_rights(second, statements))

    def check_may_replace(self, table: str) -> None:
        """Raise MissingRightError if the account may not rename and drop tables. `table`: one that is not there."""
        self._second.ask(lambda second: check_may_replace(second, table))

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        self._results.check_may_write(target, append=append)

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

    def look_up(
        self, query: Callable[Concatenate[MySQLConnection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a function of `mysql.queries`. Raises ConflictError if the connection is lost meanwhile."""
        connection = self.live()
        with self._errors(""):
            return query(connection, *args, **kwargs)

    def read_few_rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a small internal query, as bytes."""
        connection = self.live()
        with self._errors(""):
            return connection.fetch_all(query)

    def count(self, query: str) -> int:
        """Return the number that an internal query yields."""
        return int(self.read_few_rows(query)[0][0])

    def create(self, sql: str, settings: str = "") -> None:
        """Run a `CREATE TABLE … AS` with the visibility of a SELECT, without locks. settings: of this statement alone.

        Raises DeniedError without the right.
        """
        connection = self.live()
        with self._errors(sql), self._mode(connection, "NO_ENGINE_SUBSTITUTION"):
            try:
                connection.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                with self._runs():
                    connection.run(settings + sql)
            except ERRORS as error:
                if code(error) in errors.DENIED:
                    raise DeniedError(str(error.args[-1])) from None
                raise

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

    def _connect_again(self) -> MySQLConnection:
        """Return a connection that waits for no lock: the user's own transaction may hold one."""
        connection = open_connection(self._url)
        with suppress(*ERRORS):  # then it waits as long as others
            connection.run(f"SET lock_wait_timeout = {LOCK_SECS}")
        return connection

    def _columns(self, query: str) -> list[MySQLColumn]:
        """Return the columns of a query.

        Raises SourceError if the text is not one query, or names unknown objects.
        """
        errors.check_query(query)
        text = _one(query)
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

    def _run(self, sql: str) -> Any:
        """Run one statement of the database's SQL. Return the result from which its rows are read."""
        connection = self.live()
        with self._runs(), self._errors(sql):
            connection.query(sql, unbuffered=True)
        self._unread = connection._result
        return self._unread

    def _reader(
        self, result: Any, columns: list[MySQLColumn], batch_rows: int, zone: str
    ) -> pa.RecordBatchReader:
        schema = mysql_types.schema(columns)
        batches = self._batches(result, lambda rows: mysql_types.batch(columns, rows, zone))
        batches = rechunk_rows(batches, schema, batch_rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(
        self, result: Any, convert: Callable[[Sequence[Sequence[bytes | None]]], pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        more = True
        while more:
            if self._unread is not result:
                raise ended_result_error()
            with self._runs(), self._errors(""):
                rows, more = fetch_rows(result, FETCH_ROWS)
            if rows:
                yield convert(rows)
        self._used = time.monotonic()

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
            self._kill_query()
            raise
        finally:
            self._running = False

    def _end_result(self) -> None:
        result, self._unread = self._unread, None
        if result is None or not result.unbuffered_active:
            return
        if not self._connection.open:
            result.unbuffered_active = False
            return
        self._kill_query()
        try:
            while fetch_rows(result, FETCH_ROWS)[1]:
                pass
        except ERRORS as error:
            result.unbuffered_active = False
            if code(error) != _STOPPED:
                self._connection.end()

    def _kill_query(self) -> None:
        """Kill the statement on this connection through another connection."""
        with suppress(SourceError, *ERRORS):
            other = open_connection(self._url)
            try:
                other.run(f"KILL QUERY {self._connection.thread_id()}")
            finally:
                other.close()

    def _begin(self) -> None:
        """Begin with READ COMMITTED: stricter levels lock gaps, so that concurrent writers would block each other."""
        connection = self.live()
        self._check_no_transaction(connection)
        with self._errors(""):
            connection.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.run("START TRANSACTION")

    def _check_no_transaction(self, connection: MySQLConnection) -> None:
        """Raise SourceError if the user has begun a transaction: our statements would commit it."""
        if connection.in_transaction:
            raise SourceError(
                "a transaction is open on this connection",
                hint="end the open transaction with COMMIT or ROLLBACK",
            )

    def _roll_back(self) -> None:
        if not self._connection.open:
            return
        with suppress(*ERRORS):
            self._end_result()
            self._connection.rollback()

    @contextmanager
    def _mode(self, connection: MySQLConnection, mode: str) -> Iterator[None]:
        """Set another SQL mode inside the context; the user's may be lax."""
        connection.run("SET @sqlflow_edl_mode = @@sql_mode")
        connection.run(f"SET sql_mode = '{mode}'")
        try:
            yield
        finally:
            if connection.open:
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
            if connection.open:
                with suppress(*ERRORS):
                    connection.run("SET time_zone = @sqlflow_edl_zone")

    @contextmanager
    def _errors(self, sql: str) -> Iterator[None]:
        """Translate MySQL's errors."""
        try:
            yield
        except ERRORS as error:
            if is_lost(error):
                self._connection.end()
            raise errors.translate_error(error, sql, self._asked if self._connection.open else None) from None

    def _asked(self) -> MySQLConnection:
        return self._connection


def _one(query: str) -> str:
    """Return the query in a form allowed in parentheses."""
    return query.rstrip().rstrip(";")
