"""Drivers that read pinned rows from MySQL; the fastest that can be used is.

PyMySQL is written in Python and reads everything. connectorx is written in Rust and takes a third of the time, but
cannot encrypt (`edl.sources.mysql.arrow_driver`). Both give the same rows.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Protocol

import pyarrow as pa

from edl.data.names import quote_part
from edl.data.server_url import ServerURL
from edl.data.source import PinnedTable
from edl.errors import SourceError
from edl.sources.mysql import types
from edl.sources.mysql.connection import ERRORS, MySQLConnection, fetch_columns, is_lost, open_connection
from edl.sources.mysql.types import MySQLColumn
from edl.sources.pinned_tables import LostTableError

FETCH_ROWS = 8192


class DriverReading(Protocol):
    """Connection that reads ranges of a pinned table."""

    def read(
        self, table: PinnedTable, columns: Sequence[MySQLColumn], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows [start, end) of the table, in order.

        Raises LostError if the connection was lost, SourceError for other errors.
        """
        ...

    def end(self) -> None:
        """Close at once, even during a result."""
        ...


def installed_drivers() -> list[str]:
    """Return the installed drivers, the fastest last."""
    return ["pymysql", *(["connectorx"] if find_spec("connectorx") is not None else [])]


def connect(url: ServerURL, driver: str | None = None) -> DriverReading:
    """Connect with `driver` ("pymysql" or "connectorx"; None is the fastest that can be used).

    Raises LostError if the server cannot be reached.
    """
    plain = PyMySQL(url)
    if (driver or installed_drivers()[-1]) == "pymysql":
        return plain
    from edl.sources.mysql.arrow_driver import ConnectorX

    return ConnectorX(url, plain)


def connect_for_types(url: ServerURL) -> closing[MySQLConnection]:
    """Open a connection of PyMySQL; it reports the types of columns."""
    return closing(open_connection(url))


def select(
    table: PinnedTable, expressions: Sequence[str], start: int, end: int, conditions: Sequence[str] = ()
) -> str:
    """Return the query of rows [start, end) of a pinned table; its key counts from 1."""
    key = quote_part(table.key, "`")
    where = " AND ".join([f"{key} > {start}", f"{key} <= {end}", *conditions])
    return f"SELECT {', '.join(expressions) or '1'} FROM {table.name} WHERE {where} ORDER BY {key}"


class PyMySQL:
    """Driver that reads values as the texts that the server sends."""

    def __init__(self, url: ServerURL) -> None:
        try:
            self._connection = open_connection(url)
        except SourceError as error:
            raise LostTableError(error.message, hint=error.hint) from None

    @property
    def is_encrypted(self) -> bool:
        return isinstance(self._connection._sock, ssl.SSLSocket)

    def read(
        self, table: PinnedTable, columns: Sequence[MySQLColumn], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        query = select(table, [types.exact_expression(column) for column in columns], start, end)
        try:
            self._connection.query(query, unbuffered=True)
            result, more = self._connection._result, True
            while more:
                sent, more = fetch_columns(result, FETCH_ROWS)
                if sent:
                    yield types.batch(columns, sent) if columns else nameless(len(sent[0]))
        except ERRORS as error:
            raise _translate_error(error) from None

    def end(self) -> None:
        self._connection.end()


def nameless(rows: int) -> pa.RecordBatch:
    """Return that many rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _translate_error(error: Exception) -> SourceError:
    message = str(error.args[-1] if error.args else error)
    if is_lost(error):
        return LostTableError(f"the connection to the database was lost: {message}", hint="try again")
    return SourceError(message)
