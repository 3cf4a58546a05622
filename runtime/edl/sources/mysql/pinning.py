"""Rows pinned in MySQL: a private table with a dense key, read by key range over any number of connections.

Pinning takes three steps. `CREATE TABLE … AS` takes a snapshot of the query in the server, in the order in which its
rows come. If rows are to be shuffled, the client reads them once, computes the order that every source gives them
(`edl.sources.row_order`) and sends back each row's place, 16 bytes; then the server writes the rows in that order.

The comment of the table names its owner: the state folder of a user and the folder of the rows. The table of a dead
client is dropped by the next session of that user, if the folder is gone, and by any user's after 30 days.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from edl.data.arrow_types import fields
from edl.data.names import dotted, free_name, quoted
from edl.data.server_url import ServerURL, parse_server
from edl.data.source import Pinned, PinnedTable
from edl.errors import SourceError, did_you_mean
from edl.jobs.job_folder import state_id
from edl.sources.mysql import drivers, queries, types
from edl.sources.mysql.connection import ERRORS, is_lost, literal
from edl.sources.mysql.errors import translated
from edl.sources.mysql.types import Column
from edl.sources.row_order import shuffled_keys
from edl.spec import Split

if TYPE_CHECKING:
    from edl.sources.mysql.source import MySQLSource

PREFIX = "sqlflow_edl_rows_"
KEPT_DAYS = 30.0  # for a table of an unknown owner
RETRY_SECS = 60.0  # of an outage while rows are read
FETCH_ROWS = 8192

_MARK = "rows of a job of sqlflow-edl, "
_PLACES = "place"
_FLOAT = 4


class DeniedError(SourceError):
    """The user lacks the right to create tables."""


class TableReader:
    """Reader of row ranges of one table. A lost connection is replaced, and reading continues at the next row.

    Safe to use from several threads: each range that is being read has its own connection.
    """

    def __init__(self, url: ServerURL, table: PinnedTable, columns: Sequence[Column], rows: int) -> None:
        self.rows = rows
        self.schema = types.schema(columns)
        self._url = url
        self._table = table
        self._columns = {column.name: column for column in columns}
        self._idle: list[drivers.Fetching] = []
        self._lock = threading.Lock()

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order, in batches of at most 65,536.

        `columns` selects and orders columns; None selects all. Raises SourceError for a missing column, ValueError
        unless 0 <= start <= end <= rows.
        """
        if not 0 <= start <= end <= self.rows:
            raise ValueError(f"rows [{start}, {end}) of {self.rows}")
        names = self.schema.names if columns is None else columns
        for name in names:
            if name not in self._columns:
                raise SourceError(
                    f"the pinned rows have no column {name}", hint=did_you_mean(name, self.schema.names)
                )
        return self._batches(start, end, [self._columns[name] for name in names])

    def _batches(self, start: int, end: int, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        waited = _Patience()
        while start < end:
            connection = None
            try:
                connection = self._connection()
                for rows in connection.fetch(self._select(start, end, columns), FETCH_ROWS):
                    batch = self._batch(columns, rows)
                    start += batch.num_rows
                    waited.forget()
                    yield batch
                if start < end:
                    raise SourceError(f"{end - start:,} pinned rows are gone from {self._table.name}")
                self._give_back(connection)
                connection = None
            except drivers.LostError as error:
                waited.wait(error)
            finally:
                if connection is not None:  # lost, or stopped during a result
                    connection.end()

    def _batch(self, columns: list[Column], rows: Sequence[Any]) -> pa.RecordBatch:
        if columns:
            return types.batch(columns, rows)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))

    def _select(self, start: int, end: int, columns: list[Column]) -> str:
        names = ", ".join(map(_read, columns)) or "1"
        key = quoted(self._table.key, "`")
        return (
            f"SELECT {names} FROM {self._table.name} WHERE {key} > {start} AND {key} <= {end} ORDER BY {key}"
        )

    def _connection(self) -> drivers.Fetching:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return drivers.connect(self._url)

    def _give_back(self, connection: drivers.Fetching) -> None:
        with self._lock:
            self._idle.append(connection)


def open_rows(pinned: Pinned, table: PinnedTable) -> TableReader:
    """Return a reader of rows pinned in a table of their source. Raises SourceError if they are missing."""
    url = parse_server(pinned.source).with_password()
    with drivers.describing(url) as connection:
        try:
            with connection.cursor() as cursor:
                names = ", ".join(quoted(field.name, "`") for field in pinned.schema)
                cursor.execute(f"SELECT {names} FROM {table.name} LIMIT 0")
                found = types.columns(cursor._result.fields)
        except ERRORS as error:
            if is_lost(error):
                raise translated(error, "") from None
            raise SourceError(
                f"the pinned rows of this job no longer exist: {error.args[-1]}",
                hint="rows are removed when a job ends; submit it again",
            ) from None
    # with the query's types; a table may store other types
    columns = [
        replace(column, kind=_arrow(field.type)) for column, field in zip(found, pinned.schema, strict=True)
    ]
    return TableReader(url, table, columns, pinned.rows)


@dataclass(frozen=True, slots=True)
class Pinning:
    """Construction of one pinned table."""

    source: MySQLSource
    url: ServerURL
    columns: list[Column]
    schema: pa.Schema
    folder: Path

    def pin(self, text: str, query: str, *, seed: int, shuffle: bool, split: Split | None = None) -> Pinned:
        """Pin the rows of `text`, the query without its terminator.

        Raises DeniedError if tables cannot be created; then nothing was.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        key = free_name("sqlflow_edl_place", self.schema.names)
        names = [PREFIX + secrets.token_hex(12) for _ in range(2)]
        tables = [dotted((self.source.database, name), "`") for name in names]
        snapshot = PinnedTable(tables[0], key)
        shuffle = shuffle or split is not None
        validation = 0 if split else None
        try:
            rows = self._snapshot(snapshot, text)
            if shuffle and rows > 1:
                ordered = PinnedTable(tables[1], key)
                validation = self._order(snapshot, ordered, rows, seed, split)
                self.source.execute(f"DROP TABLE {snapshot.name}")
                snapshot = ordered
            digest = self._digest(snapshot)
        except BaseException:
            with suppress(SourceError):
                for table in (*tables, f"{tables[1][:-1]}p`"):
                    self.source.execute(f"DROP TABLE IF EXISTS {table}")
            raise
        return Pinned(
            source=self.source.url,
            select=query,
            file="",
            rows=rows,
            schema=fields(self.schema),
            digest=digest,
            seed=seed,
            shuffled=shuffle,
            table=snapshot,
            validation=validation,
        )

    def _snapshot(self, table: PinnedTable, text: str) -> int:
        """Store the query's rows in their order, numbered from 1. Return their number."""
        self.source.create(self._create(table, "AUTO_INCREMENT") + f" AS\n{text}")
        found = self.source.few(f"SELECT COUNT(*), MIN({_key(table)}), MAX({_key(table)}) FROM {table.name}")
        rows, first, last = (int(value or 0) for value in found[0])
        if rows and (first, last) != (1, rows):
            raise SourceError(f"the server numbered {rows:,} rows from {first:,} to {last:,}")
        return rows

    def _order(
        self, snapshot: PinnedTable, ordered: PinnedTable, rows: int, seed: int, split: Split | None
    ) -> int | None:
        """Copy the rows of the snapshot in the order determined by them, the seed and the split.

        Return the number of validation rows, None without a split.
        """
        places = f"{ordered.name[:-1]}p`"
        number = Column(snapshot.key, pa.int64())
        reader = TableReader(self.url, snapshot, [*self.columns, number], rows)
        batches = pa.RecordBatchReader.from_batches(reader.schema, reader.read(0, rows))
        self.source.execute(
            f"CREATE TABLE {places} ({_PLACES} BIGINT NOT NULL PRIMARY KEY, {_key(snapshot)} BIGINT NOT NULL)"
            f" ENGINE = InnoDB COMMENT = {self._comment()}"
        )
        with (
            shuffled_keys(batches, seed, self.folder, snapshot.key, split) as keys,
            self.source.transaction(),
        ):
            self.source.append(places, [_PLACES, snapshot.key], _placed(keys.reader))
        names = ", ".join(f"s.{quoted(name, '`')}" for name in self.schema.names)
        self.source.create(
            self._create(ordered)
            + f" AS SELECT STRAIGHT_JOIN p.{_PLACES} AS {_key(ordered)}, {names} FROM {places} p"
            f" JOIN {snapshot.name} s ON s.{_key(snapshot)} = p.{_key(snapshot)} ORDER BY p.{_PLACES}"
        )
        self.source.execute(f"DROP TABLE {places}")
        return keys.validation

    def _digest(self, table: PinnedTable) -> str:
        """Return the digest of the types and of all rows with their places."""
        import hashlib

        names = [f"IFNULL(HEX(CAST({_read(column)} AS BINARY)), '-')" for column in self.columns]
        row = f"MD5(CONCAT_WS(',', {', '.join([_key(table), *names])}))"
        halves = (f"BIT_XOR(CAST(CONV({side}({row}, 16), 16, 10) AS UNSIGNED))" for side in ("LEFT", "RIGHT"))
        found = self.source.few(f"SELECT {', '.join(halves)} FROM {table.name}")
        facts = (str(self.schema), *map(str, found[0]))
        return hashlib.blake2b("\n".join(facts).encode(), digest_size=32).hexdigest()

    def _create(self, table: PinnedTable, options: str = "") -> str:
        key = f"{_key(table)} BIGINT NOT NULL {options} PRIMARY KEY"
        options = f"ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COMMENT = {self._comment()}"
        return f"CREATE TABLE {table.name} ({key}) {options}"

    def _comment(self) -> str:
        return literal(f"{_MARK}{state_id()}, {self.folder.absolute()}", self.source.live())


def may_make_tables(source: MySQLSource) -> bool:
    """Return True if the user can create tables, tested by creating and dropping one."""
    name = source.home + quoted(PREFIX + secrets.token_hex(12), "`")
    try:
        source.create(f"CREATE TABLE {name} AS SELECT 1 AS a")
        source.execute(f"DROP TABLE {name}")
    except SourceError:
        return False
    return True


def drop_abandoned(source: MySQLSource) -> int:
    """Drop the tables whose folders are gone, and old tables of unknown owners. Return their number."""
    dropped = 0
    ours = f"{_MARK}{state_id()}, "
    for name, comment, age in source.look_up(queries.tables_of_ours, source.database, PREFIX):
        if not comment.startswith(_MARK):
            continue
        mine = comment.startswith(ours)
        gone = not Path(comment.removeprefix(ours)).exists() if mine else age > KEPT_DAYS
        if gone:
            with suppress(SourceError):  # possibly another user's
                source.execute(f"DROP TABLE IF EXISTS {source.home}{quoted(name, '`')}")
                dropped += 1
    return dropped


class _Patience:
    """Backoff for a server that cannot be reached."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._now, self._sleep = now, sleep
        self._since: float | None = None
        self._pause = 0.0

    def forget(self) -> None:
        self._since, self._pause = None, 0.0

    def wait(self, error: SourceError) -> None:
        """Sleep, or raise the error if the server has been unreachable for too long."""
        now = self._now()
        self._since = now if self._since is None else self._since
        if now - self._since > RETRY_SECS:
            raise error
        self._sleep(self._pause)
        self._pause = min(2.0, self._pause * 2 + 0.05)


def _read(column: Column) -> str:
    """Return the expression that reads the column: the server truncates a FLOAT, but not a DOUBLE."""
    name = quoted(column.name, "`")
    return f"{name} + 0e0" if column.code == _FLOAT else name


def _key(table: PinnedTable) -> str:
    return quoted(table.key, "`")


def _placed(keys: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    start = 1
    for batch in keys:
        places = pa.array(range(start, start + batch.num_rows), pa.int64())
        start += batch.num_rows
        yield pa.RecordBatch.from_arrays([places, batch.column(0)], names=["", "key"])


def _arrow(written: str) -> pa.DataType:
    """Return the Arrow type named by a field of a JobSpec."""
    if written.startswith("decimal"):
        precision, scale = written[written.index("(") + 1 : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    times = {"timestamp[us]": pa.timestamp("us"), "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
             "date32[day]": pa.date32(), "time64[us]": pa.time64("us")}  # fmt: skip
    return times.get(written) or pa.type_for_alias(written)
