"""Rows pinned in PostgreSQL: an unlogged table with a dense key, read by ADBC.

Types that ADBC has no Arrow type for are stored as others with the same values.

An unlogged table costs half of the writing, and is empty after a crash of the server: its readers say so.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from adbc_driver_manager import Error as ADBCError

from edl.data.arrow_types import rechunk_rows, schema_of
from edl.data.names import join_quoted, quote_part
from edl.data.server_url import ServerURL, parse_server
from edl.data.source import Pinned, PinnedTable, PinningRates
from edl.errors import SourceError
from edl.sources import pinned_tables
from edl.sources.pinned_tables import BLOCK, BLOCK_ROWS, PLACES, LostTableError, TableReader
from edl.sources.postgresql import types
from edl.sources.postgresql.connection import USUAL_FORMS, PostgreSQLConnection, arguments, state
from edl.sources.postgresql.results import text
from edl.sources.postgresql.types import PostgreSQLColumn
from edl.sources.server_pinning import MANY_ROWS, Ints, Pinning, RowTables, Unfit

if TYPE_CHECKING:
    from edl.sources.postgresql.source import PostgreSQLSource

BATCH_BYTES = 4 << 20  # of ADBC's batches

RATES = PinningRates(copy=26e-9, order=35e-9, in_server=True)

_STATISTICS = 10  # of the key, a tenth of what is usual
_BATCH_SIZE = "adbc.postgresql.batch_size_hint_bytes"
# settings with which a scan yields the rows of a table in the order in which they were written
_AS_WRITTEN = ("SET synchronize_seqscans = off", "SET max_parallel_workers_per_gather = 0")


class Fetching:
    """Connection of ADBC. It is closed when nothing refers to it.

    ADBC requires that a result is closed before its connection, and the garbage collector knows no order: the finalizer
    keeps both until it has closed them.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._cursors: list[Any] = []  # of the result that is read, if there is one
        self._closing = weakref.finalize(self, _close, driver, self._cursors)
        self._closing.atexit = False  # a forked process would end the connection of its parent

    def fetch(self, query: str) -> pa.RecordBatchReader:
        """Return the rows of the query. Raises LostError if the connection was lost, SourceError for other errors."""
        with _errors():
            _end_results(self._cursors)
            cursor = self._driver.cursor()
            self._cursors.append(cursor)
            cursor.adbc_statement.set_options(**{_BATCH_SIZE: str(BATCH_BYTES)})
            cursor.execute(query)
            return cursor.fetch_record_batch()

    def run(self, statement: str) -> None:
        """Run a statement without rows. Raises the same errors."""
        with _errors(), self._driver.cursor() as cursor:
            cursor.execute(statement)

    def clone(self) -> Fetching:
        """Return another connection to the same server. It need not read the types of the server again."""
        with _errors():
            driver = self._driver.adbc_clone()
            driver.adbc_connection.set_autocommit(True)
        return Fetching(driver)

    def end(self) -> None:
        self._closing()


def _close(driver: Any, cursors: list[Any]) -> None:
    with suppress(ADBCError):
        _end_results(cursors)
        driver.close()


def _end_results(cursors: list[Any]) -> None:
    while cursors:
        cursors.pop().close()


def connect(url: ServerURL) -> Fetching:
    """Connect by ADBC. Raises LostError if the server cannot be reached."""
    from adbc_driver_postgresql import dbapi
    from psycopg.conninfo import make_conninfo

    with _errors():
        return Fetching(dbapi.connect(make_conninfo("", **arguments(url)), autocommit=True))


class PostgreSQLRowReader(TableReader[Fetching]):
    """Reader of one table."""

    def __init__(
        self,
        url: ServerURL,
        table: PinnedTable,
        schema: pa.Schema,
        rows: int,
    ) -> None:
        super().__init__(table, schema, rows)
        self._url = url
        self._first: Fetching | None = None
        self._opening = threading.Lock()

    def check(self) -> None:
        """Raise SourceError if the table is not there, or has other columns."""
        connection = self._connect()
        for _ in connection.fetch(f"{self._select(self.schema.names)} LIMIT 0"):
            pass
        self._give_back(connection)

    def _connect(self) -> Fetching:
        with self._opening:
            if self._first is None:
                self._first = connect(self._url)
            return self._first.clone()

    def _fetch(
        self, connection: Fetching, start: int, end: int, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        key = quote_part(self._table.key)
        query = f"{self._select(names)} WHERE {key} > {start} AND {key} <= {end} ORDER BY {key}"
        schema = pa.schema([self.schema.field(name) for name in names])
        reader = connection.fetch(query)
        with _errors():
            yield from rechunk_rows((_convert_batch(batch, schema) for batch in reader), schema)

    def _select(self, names: Sequence[str]) -> str:
        return f"SELECT {', '.join(map(quote_part, names)) or '1'} FROM {self._table.name}"


def open_rows(pinned: Pinned, table: PinnedTable) -> PostgreSQLRowReader:
    """Return a reader of rows pinned in a table of their source. Raises SourceError if they are missing."""
    url = parse_server(pinned.source).with_password()
    reader = PostgreSQLRowReader(url, table, schema_of(pinned.schema), pinned.rows)
    reader.check_columns = pinned.check_fits
    try:
        reader.check()
    except LostTableError:
        raise
    except SourceError as error:
        raise pinned_tables.missing_table_error(error.message) from None
    return reader


class PostgreSQLPinning(Pinning["PostgreSQLSource"]):
    """Construction of one pinned table."""

    def __init__(
        self, source: PostgreSQLSource, url: ServerURL, columns: Sequence[PostgreSQLColumn], folder: Path
    ) -> None:
        super().__init__(source, source.schema_name, types.schema(columns), folder)
        self._url = url
        self._columns = columns

    def _snapshot(self, table: PinnedTable, query: str) -> int:
        values = [f"row_number() OVER () AS {quote_part(table.key)}"]
        values += [types.stored_expression(column, "q") for column in self._columns]
        return self._create(table, f" AS SELECT {', '.join(values)} FROM (\n{query}\n) AS q")

    def _find_unfit(self, snapshot: PinnedTable) -> Unfit:
        problems = [(column, types.problem(column, "q")) for column in self._columns]
        conditions = [(column, condition) for column, condition in problems if condition]
        if not conditions:
            return {}
        examples = ", ".join(
            f"min(q.{quote_part(column.name)}::text) FILTER (WHERE {condition})"
            for column, condition in conditions
        )
        [values] = self.source.read_few_rows(f"SELECT {examples} FROM {snapshot.name} AS q")
        return {
            column.name: types.unfit_error(column, value)
            for (column, _), value in zip(conditions, values, strict=True)
            if value is not None
        }

    def _read(self, snapshot: PinnedTable, rows: int, unfit: Unfit) -> Iterator[pa.RecordBatch]:
        """Read the rows as they were written.

        The table has no index yet: of two that are read once each, the first one is not worth one.
        """
        schema = self.schema.append(pa.field(snapshot.key, pa.int64()))
        nothing = {
            field.name: types.null_expression(field.name, field.type)
            for field in schema
            if field.name in unfit
        }
        values = ", ".join(nothing.get(name, quote_part(name)) for name in schema.names)
        connection = connect(self._url)
        try:
            for setting in _AS_WRITTEN:
                connection.run(setting)
            reader = connection.fetch(f"SELECT {values} FROM {snapshot.name}")
            with _errors():
                yield from rechunk_rows((_convert_batch(batch, schema) for batch in reader), schema)
        finally:
            connection.end()

    def _make_places(self, table: PinnedTable) -> None:
        self._create(table, f" ({BLOCK} bigint, {PLACES} bigint[])")

    def _encode_places(self, places: Ints) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(places.reshape(-1)), BLOCK_ROWS)

    def _write_in_order(self, tables: RowTables) -> None:
        key = quote_part(tables.ordered.key)
        names = ", ".join(f"s.{quote_part(name)}" for name in self.schema.names)
        self.source.execute(f"ANALYZE {tables.places.name} ({BLOCK})")
        self._create(
            tables.ordered,
            f" AS SELECT p.{PLACES}[(s.{key} - 1) % {BLOCK_ROWS} + 1] AS {key}, {names} FROM {tables.places.name} p"
            f" JOIN {tables.snapshot.name} s ON (s.{key} - 1) / {BLOCK_ROWS} = p.{BLOCK} ORDER BY 1",
        )

    def _finish(self, table: PinnedTable, rows: int) -> Sequence[object]:
        with self.source.asking_beside(
            lambda asked: self._sums(asked, table), is_long=rows >= MANY_ROWS
        ) as sums:
            self._index(table)
        return sums.result()

    def _index(self, table: PinnedTable) -> None:
        """Make an index of the key, and statistics with which the server uses it.

        One process sorts the keys as fast as several, which are busy with the digest. They are in order, so that few of
        them tell the server what many would.
        """
        key = quote_part(table.key)
        with self.source.transaction():
            self.source.execute("SET LOCAL max_parallel_maintenance_workers = 0")
            self.source.execute(f"CREATE UNIQUE INDEX ON {table.name} ({key})")
            self.source.execute(f"ALTER TABLE {table.name} ALTER {key} SET STATISTICS {_STATISTICS}")
            self.source.execute(f"ANALYZE {table.name} ({key})")

    def _sums(self, connection: PostgreSQLConnection, table: PinnedTable) -> Sequence[object]:
        halves = ", ".join(f"coalesce(bit_xor(hashtextextended(r, {seed})), 0)" for seed in (0, 1))
        # OFFSET: each text is made once for both. It has no type: with a number the server uses one process alone.
        query = f"SELECT {halves} FROM (SELECT q::text AS r FROM {table.name} AS q OFFSET '0') AS rows"
        connection.run("BEGIN")
        try:
            connection.run(USUAL_FORMS)
            return connection.fetch_all(query)[0]
        finally:
            if connection.is_open:
                connection.run("ROLLBACK")

    def _create(self, table: PinnedTable, definition: str) -> int:
        """Create an unlogged table of ours. Return the number of its rows."""
        with self.source.transaction():
            rows = self.source.create(f"CREATE UNLOGGED TABLE {table.name}{definition}")
            self.source.execute(f"COMMENT ON TABLE {table.name} IS {self._comment()}")
        return rows

    def _comment(self) -> str:
        return text(super()._comment())


def can_make_tables(source: PostgreSQLSource) -> bool:
    """Return True if the user can create tables, tested by creating one in a transaction that is undone."""
    name = join_quoted((source.schema_name, pinned_tables.new_name()))
    try:
        with source.transaction():
            source.create(f"CREATE UNLOGGED TABLE {name} AS SELECT 1 AS a")
            raise _UndoneError
    except _UndoneError:
        return True
    except SourceError:
        return False


class _UndoneError(Exception):
    pass


@contextmanager
def _errors() -> Iterator[None]:
    """Translate ADBC's errors."""
    try:
        yield
    except (ADBCError, pa.ArrowException, OSError) as error:
        raise _translate_error(error) from None


def _translate_error(error: BaseException) -> SourceError:
    message = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    code = state(error)
    if not code or code.startswith(("08", "57P")):
        return LostTableError(f"the connection to the database was lost: {message}", hint="try again")
    return SourceError(message.rpartition("ERROR:")[2].strip())


def _convert_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch of ADBC: its decimals are texts, its key is a number that was not asked for."""
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(
        [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)],
        schema=schema,
    )


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column if column.type == kind else column.cast(kind)
