"""Rows pinned in MySQL, see `edl.sources.pinned_tables`.

Pinning takes three steps. `CREATE TABLE … AS` takes a snapshot of the query in the server, in the order in which its
rows come. If rows are to be shuffled, the client reads them once, computes the order that every source gives them
(`edl.sources.row_order`) and sends back each row's place, 16 bytes; then the server writes the rows in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import UNSET

from edl.data.arrow_types import fields, schema_of
from edl.data.names import free_name, join_quoted, quote_part
from edl.data.server_url import ServerURL, parse_server
from edl.data.source import Pinned, PinnedTable, PinningRates
from edl.errors import SourceError, UnfitValueError
from edl.sources import pinned_tables
from edl.sources.mysql import drivers, queries, types
from edl.sources.mysql.connection import ERRORS, is_lost, literal
from edl.sources.mysql.errors import translate_error
from edl.sources.mysql.types import MySQLColumn
from edl.sources.pinned_tables import PLACE, PREFIX, TableReader, number_places
from edl.sources.row_order.keyed_rows import shuffled_keys
from edl.sources.row_order.units import ValidationRows
from edl.spec import Split

if TYPE_CHECKING:
    from edl.sources.mysql.source import MySQLSource

RATES = PinningRates(copy=60e-9, order=80e-9, in_server=True)

# MariaDB would join by hash, with a scan of the second table for each buffer; to MySQL it is a comment
_BY_KEY = "/*M! SET STATEMENT join_cache_level = 0 FOR */ "
_ALL = 2**64 - 1  # rows


class MySQLRowReader(TableReader[drivers.DriverReading]):
    """Reader of one table."""

    def __init__(self, url: ServerURL, table: PinnedTable, columns: Sequence[MySQLColumn], rows: int) -> None:
        super().__init__(table, types.schema(columns), rows)
        self._url = url
        self._columns = {column.name: column for column in columns}

    def _connect(self) -> drivers.DriverReading:
        return drivers.connect(self._url)

    def _fetch(
        self, connection: drivers.DriverReading, start: int, end: int, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        return connection.read(self._table, [self._columns[name] for name in names], start, end)


def open_rows(pinned: Pinned, table: PinnedTable) -> MySQLRowReader:
    """Return a reader of rows pinned in a table of their source. Raises SourceError if they are missing."""
    url = parse_server(pinned.source).with_password()
    with drivers.connect_for_types(url) as connection:
        try:
            with connection.cursor() as cursor:
                names = ", ".join(quote_part(field.name, "`") for field in pinned.schema)
                cursor.execute(f"SELECT {names} FROM {table.name} LIMIT 0")
                described = types.columns(cursor._result.fields)
        except ERRORS as error:
            if is_lost(error):
                raise translate_error(error, "") from None
            raise pinned_tables.missing_table_error(error.args[-1]) from None
    # with the query's types; a table may store other types
    kinds = schema_of(pinned.schema).types
    columns = [replace(column, kind=kind) for column, kind in zip(described, kinds, strict=True)]
    reader = MySQLRowReader(url, table, columns, pinned.rows)
    reader.check_columns = pinned.check_fits
    return reader


@dataclass(frozen=True, slots=True)
class MySQLPinning:
    """Construction of one pinned table."""

    source: MySQLSource
    url: ServerURL
    columns: list[MySQLColumn]
    schema: pa.Schema
    folder: Path

    def pin(self, text: str, query: str, *, seed: int, shuffle: bool, split: Split | None = None) -> Pinned:
        """Pin the rows of `text`, the query without its terminator.

        Raises DeniedError if tables cannot be created; then nothing was.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        key = free_name("sqlflow_edl_place", self.schema.names)
        names = [pinned_tables.new_name() for _ in range(2)]
        tables = [join_quoted((self.source.database, name), "`") for name in names]
        snapshot = PinnedTable(tables[0], key)
        shuffle = shuffle or split is not None
        held, unfit = ValidationRows(0) if split else None, dict[str, UnfitValueError]()
        try:
            rows = self._snapshot(snapshot, text)
            if shuffle and rows > 1:
                ordered = PinnedTable(tables[1], key)
                held = self._order(snapshot, ordered, rows, seed, split, unfit)
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
            validation=None if held is None else held.rows,
            blocks=UNSET if held is None else held.blocks,
            unfit={name: (error.message, error.hint or "") for name, error in unfit.items()} or UNSET,
        )

    def _snapshot(self, table: PinnedTable, text: str) -> int:
        """Store the query's rows in their order, numbered from 1. Return their number."""
        self.source.create(self._create(table, "AUTO_INCREMENT") + f" AS\n{text}")
        counts = self.source.read_few_rows(
            f"SELECT COUNT(*), MIN({_key(table)}), MAX({_key(table)}) FROM {table.name}"
        )
        rows, first, last = (int(value or 0) for value in counts[0])
        if rows and (first, last) != (1, rows):
            raise SourceError(f"the server numbered {rows:,} rows from {first:,} to {last:,}")
        return rows

    def _order(
        self,
        snapshot: PinnedTable,
        ordered: PinnedTable,
        rows: int,
        seed: int,
        split: Split | None,
        unfit: dict[str, UnfitValueError],
    ) -> ValidationRows | None:
        """Copy the rows of the snapshot in the order determined by them, the seed and the split.

        Return the validation rows, None without a split. Values that Arrow does not have count as NULL;
        their columns are added to `unfit`.
        """
        places = f"{ordered.name[:-1]}p`"
        number = MySQLColumn(snapshot.key, pa.int64())
        columns = [replace(column, unfit=unfit) for column in self.columns]
        reader = MySQLRowReader(self.url, snapshot, [*columns, number], rows)
        batches = pa.RecordBatchReader.from_batches(reader.schema, reader.read(0, rows))
        self.source.execute(
            f"CREATE TABLE {places} ({_key(snapshot)} BIGINT NOT NULL PRIMARY KEY, {PLACE} BIGINT NOT NULL)"
            f" ENGINE = InnoDB COMMENT = {self._comment()}"
        )
        with (
            shuffled_keys(batches, seed, self.folder, snapshot.key, split) as keys,
            self.source.transaction(),
        ):
            self.source.append(places, [snapshot.key, PLACE], number_places(keys.reader, rows))
        names = ", ".join(f"s.{quote_part(name, '`')}" for name in self.schema.names)
        # Both tables are read once, in the order of their keys, and the rows sorted: looking each row up in the order
        # of places would read most pages of a large table many times.
        self.source.create(
            self._create(ordered)
            + f" AS SELECT STRAIGHT_JOIN p.{PLACE} AS {_key(ordered)}, {names} FROM {snapshot.name} s"
            f" JOIN {places} p ON p.{_key(snapshot)} = s.{_key(snapshot)} ORDER BY p.{PLACE}",
            _BY_KEY,
        )
        self.source.execute(f"DROP TABLE {places}")
        return keys.validation

    def _digest(self, table: PinnedTable) -> str:
        """Return the digest of the types and of all rows with their places."""
        import hashlib

        names = [
            f"IFNULL(HEX(CAST({types.exact_expression(column)} AS BINARY)), '-')" for column in self.columns
        ]
        row = f"MD5(CONCAT_WS(',', {', '.join([_key(table), *names])}))"
        rows = (
            f"SELECT {row} AS r FROM {table.name} LIMIT {_ALL}"  # the limit: each is computed once for both
        )
        halves = (f"BIT_XOR(CAST(CONV({side}(r, 16), 16, 10) AS UNSIGNED))" for side in ("LEFT", "RIGHT"))
        with self.source.in_utc(self.source.live()):
            sums = self.source.read_few_rows(f"SELECT {', '.join(halves)} FROM ({rows}) AS q")
        facts = (str(self.schema), *map(str, sums[0]))
        return hashlib.blake2b("\n".join(facts).encode(), digest_size=32).hexdigest()

    def _create(self, table: PinnedTable, options: str = "") -> str:
        key = f"{_key(table)} BIGINT NOT NULL {options} PRIMARY KEY"
        options = f"ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COMMENT = {self._comment()}"
        return f"CREATE TABLE {table.name} ({key}) {options}"

    def _comment(self) -> str:
        return literal(pinned_tables.comment(self.folder), self.source.live())


def may_make_tables(source: MySQLSource) -> bool:
    """Return True if the user can create tables, tested by creating and dropping one."""
    name = source.home + quote_part(pinned_tables.new_name(), "`")
    try:
        source.create(f"CREATE TABLE {name} AS SELECT 1 AS a")
        source.execute(f"DROP TABLE {name}")
    except SourceError:
        return False
    return True


def drop_abandoned(source: MySQLSource) -> int:
    """Drop the tables without a folder, and old tables of unknown owners. Return their number."""
    rows = source.look_up(queries.tables_of_ours, source.database, PREFIX)
    named = [(f"{source.home}{quote_part(name, '`')}", comment) for name, comment in rows]
    return pinned_tables.drop_abandoned(source, named)


def _key(table: PinnedTable) -> str:
    return quote_part(table.key, "`")
