"""Rows pinned in MySQL, see `edl.sources.pinned_tables` and `server_pinning`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from edl.data.arrow_types import schema_of
from edl.data.names import quote_part
from edl.data.server_url import ServerURL, parse_server
from edl.data.source import Pinned, PinnedTable, PinningRates
from edl.errors import SourceError
from edl.sources import pinned_tables
from edl.sources.mysql import drivers, types
from edl.sources.mysql.connection import ERRORS, MySQLConnection, is_lost, literal
from edl.sources.mysql.errors import translate_error
from edl.sources.mysql.types import MySQLColumn
from edl.sources.pinned_tables import BLOCK, BLOCK_ROWS, PLACES, TableReader
from edl.sources.server_pinning import MANY_ROWS, Ints, Pinning, RowTables, Unfit

if TYPE_CHECKING:
    from edl.sources.mysql.source import MySQLSource

RATES = PinningRates(copy=60e-9, order=80e-9, in_server=True)

# MariaDB would join by hash, with a scan of the second table for each buffer; to MySQL it is a comment
_BY_KEY = "/*M! SET STATEMENT join_cache_level = 0 FOR */ "
_ALL = 2**64 - 1  # rows
_DIGITS = 12  # of a place
_POWERS = 10 ** np.arange(_DIGITS - 1, -1, -1)


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


class MySQLPinning(Pinning["MySQLSource"]):
    """Construction of one pinned table."""

    quote = "`"

    def __init__(
        self, source: MySQLSource, url: ServerURL, columns: Sequence[MySQLColumn], folder: Path
    ) -> None:
        super().__init__(source, source.database, types.schema(columns), folder)
        self._url = url
        self._columns = columns

    def _snapshot(self, table: PinnedTable, query: str) -> int:
        self.source.create(self._create(table, "AUTO_INCREMENT") + f" AS\n{query}")
        counts = self.source.read_few_rows(
            f"SELECT COUNT(*), MIN({_key(table)}), MAX({_key(table)}) FROM {table.name}"
        )
        rows, first, last = (int(value or 0) for value in counts[0])
        if rows and (first, last) != (1, rows):
            raise SourceError(f"the server numbered {rows:,} rows from {first:,} to {last:,}")
        return rows

    def _read(self, snapshot: PinnedTable, rows: int, unfit: Unfit) -> Iterator[pa.RecordBatch]:
        number = MySQLColumn(snapshot.key, pa.int64())
        columns = [replace(column, unfit=unfit) for column in self._columns]
        return MySQLRowReader(self._url, snapshot, [*columns, number], rows).read(0, rows)

    def _make_places(self, table: PinnedTable) -> None:
        self.source.execute(
            f"CREATE TABLE {table.name} ({BLOCK} BIGINT NOT NULL PRIMARY KEY,"
            f" {PLACES} VARBINARY({BLOCK_ROWS * _DIGITS}) NOT NULL) ENGINE = InnoDB COMMENT = {self._comment()}"
        )

    def _encode_places(self, places: Ints) -> pa.Array:
        digits = (places[..., np.newaxis] // _POWERS % 10 + ord("0")).astype(np.uint8)
        return pa.Array.from_buffers(
            pa.binary(BLOCK_ROWS * _DIGITS), len(places), [None, pa.py_buffer(digits.tobytes())]
        )

    def _write_in_order(self, tables: RowTables) -> None:
        """Write by a sort of the rows: both tables are read once, in the order of their keys.

        Looking each row up in the order of places would read most pages of a large table many times.
        """
        key = _key(tables.ordered)
        names = ", ".join(f"s.{quote_part(name, '`')}" for name in self.schema.names)
        start = f"1 + (s.{key} - 1) % {BLOCK_ROWS} * {_DIGITS}"
        place = f"CAST(SUBSTR(p.{PLACES}, {start}, {_DIGITS}) AS SIGNED)"
        self.source.create(
            self._create(tables.ordered)
            + f" AS SELECT STRAIGHT_JOIN {place} AS {key}, {names} FROM {tables.snapshot.name} s"
            f" JOIN {tables.places.name} p ON p.{BLOCK} = (s.{key} - 1) DIV {BLOCK_ROWS} ORDER BY 1",
            _BY_KEY,
        )

    def _finish(self, table: PinnedTable, rows: int) -> Sequence[object]:
        """Return the sums of two halves, which are made at the same time: a statement has one thread of the server."""
        middle, is_long = rows // 2, rows >= MANY_ROWS
        with self.source.asking_beside(
            lambda asked: self._sums(asked, table, 0, middle), is_long=is_long
        ) as first:
            second = self.source.look_up(self._sums, table, middle, rows)
        both = zip(first.result(), second, strict=True)
        return [
            str(of_first ^ of_second).encode() for of_first, of_second in both
        ]  # as digests always had them

    def _sums(self, connection: MySQLConnection, table: PinnedTable, start: int, end: int) -> Sequence[int]:
        """Return the sums of the rows [start, end)."""
        names = [
            f"IFNULL(HEX(CAST({types.exact_expression(column)} AS BINARY)), '-')" for column in self._columns
        ]
        row = f"MD5(CONCAT_WS(',', {', '.join([_key(table), *names])}))"
        rows = (
            f"SELECT {row} AS r FROM {table.name} WHERE {_key(table)} > {start} AND {_key(table)} <= {end}"
            f" LIMIT {_ALL}"  # each is computed once for both
        )
        halves = (f"BIT_XOR(CAST(CONV({side}(r, 16), 16, 10) AS UNSIGNED))" for side in ("LEFT", "RIGHT"))
        with self.source.in_utc(connection):
            [sums] = connection.fetch_all(f"SELECT {', '.join(halves)} FROM ({rows}) AS q")
        return [int(value) for value in sums]

    def _create(self, table: PinnedTable, options: str = "") -> str:
        key = f"{_key(table)} BIGINT NOT NULL {options} PRIMARY KEY"
        options = f"ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COMMENT = {self._comment()}"
        return f"CREATE TABLE {table.name} ({key}) {options}"

    def _comment(self) -> str:
        return literal(super()._comment(), self.source.live())


def can_make_tables(source: MySQLSource) -> bool:
    """Return True if the user can create tables, tested by creating and dropping one."""
    name = source.home + quote_part(pinned_tables.new_name(), "`")
    try:
        source.create(f"CREATE TABLE {name} AS SELECT 1 AS a")
        source.execute(f"DROP TABLE {name}")
    except SourceError:
        return False
    return True


def _key(table: PinnedTable) -> str:
    return quote_part(table.key, "`")
