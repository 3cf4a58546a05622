"""Connections to MySQL and MariaDB: opening, literals, and detection of lost connections.

Values are the bytes that the server sends; `edl.sources.mysql.types` converts them to Arrow by column. The session's
time zone is UTC. A server may not request a file of this machine: LOAD DATA LOCAL sends data in memory, and nothing
else is ever sent.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from edl.data.server_url import NoPasswordError, ServerURL
from edl.data.source import UnreachableError
from edl.errors import SourceError, did_you_mean
from edl.installation import install_extras
from edl.reachability import describe_failure
from edl.sources.mysql import tls
from edl.sources.mysql.packets import HEAD, find_rows, split_columns

try:
    import pymysql
    from pymysql import converters
    from pymysql.connections import Connection as _PyMySQL
    from pymysql.connections import MySQLResult
    from pymysql.cursors import SSCursor
except ModuleNotFoundError:
    raise SourceError("mysql:// needs PyMySQL", hint=install_extras("mysql")) from None

OPTIONS = ("connect_timeout", "pin", "socket", *tls.OPTIONS)

# connection lost or server gone: 1053 is shutting down, 1927 was killed
LOST = frozenset(
    {0, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1927, 2003, 2006, 2013, 2014, 2055}
)
_TOO_MANY = 1040  # connections
_DENIED = 1045
ERRORS = (pymysql.err.Error, pymysql.err.Warning)

# MariaDB uses hash joins without an index only if this allows it; to MySQL it is a comment
SESSION = (
    "SET time_zone = '+00:00', net_write_timeout = 3600, net_read_timeout = 600,"
    " lock_wait_timeout = 20, innodb_lock_wait_timeout = 20, auto_increment_increment = 1, auto_increment_offset = 1"
    " /*M! , join_cache_level = 4 */"
)
# First versions with invisible columns and window functions.
_VERSIONS = {"MySQL": (8, 0, 23), "MariaDB": (10, 3, 0)}
_PLACES = re.compile(
    r"""\?|[^?'"`#/-]+|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|\#[^\n]*|--\s[^\n]*|/\*.*?\*/|.""",
    re.VERBOSE | re.DOTALL,
)
_CHUNK = 1 << 20  # bytes of one packet of LOAD DATA
_RECEIVED = 256 << 10  # bytes that are received at a time, at most
FETCH_BYTES = 4 << 20  # of rows that are fetched at a time, beside the last one


def open_connection(url: ServerURL) -> MySQLConnection:
    """Open a connection. Raises SourceError if the server cannot be reached, denies access, or is too old."""
    try:
        connection = MySQLConnection(**_arguments(url))
    except ERRORS as error:
        raise _connection_error(error, url) from None
    check_version(connection)
    return connection


def check_options(url: ServerURL) -> None:
    """Raise SourceError if the URL has an unknown option or names no database."""
    for option, _ in url.options:
        if option not in OPTIONS:
            raise SourceError(
                f"{url.scheme} URLs have no option {option}", hint=did_you_mean(option, OPTIONS)
            )
    if not url.path or "/" in url.path:
        raise SourceError(f"{url} names no database", hint="write it as mysql://user@host/database")


def check_version(connection: MySQLConnection) -> None:
    text = connection.get_server_info()
    kind = "MariaDB" if "MariaDB" in text else "MySQL"
    numbers = text.removeprefix("5.5.5-").partition("-")[0].split(".")
    version = tuple(int(number) for number in numbers[:3] if number.isdigit())
    if version < _VERSIONS[kind]:
        least = ".".join(map(str, _VERSIONS[kind]))
        raise SourceError(f"the server is {kind} {'.'.join(numbers)}; {kind} {least} or later is needed")


def is_lost(error: BaseException) -> bool:
    """Return True if the connection is lost, so that a new one may continue."""
    return code(error) in LOST or "Packet sequence number wrong" in str(error)


def code(error: BaseException) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else -1


class MySQLConnection(_PyMySQL):
    """Connection of PyMySQL. Not safe to use from two threads at once."""

    def __init__(self, **arguments: Any) -> None:
        self._sending: Iterable[bytes] | None = None
        self._result: Any = None
        super().__init__(
            charset="utf8mb4",
            use_unicode=False,  # values stay bytes
            conv=converters.encoders,  # without decoders
            autocommit=True,
            local_infile=True,
            init_command=SESSION,
            cursorclass=SSCursor,
            **arguments,
        )
        self._rfile = self._sock.makefile("rb", buffering=_RECEIVED)  # nothing is on its way

    def _create_ssl_ctx(self, sslp: Any) -> Any:
        """Share the context of connections without TLS options: making one reads all authorities, 30 ms."""
        return tls.if_offered() if sslp == {} else super()._create_ssl_ctx(sslp)

    @property
    def is_open(self) -> bool:
        return bool(self.open)

    @property
    def in_transaction(self) -> bool:
        return bool(self.server_status & 1)

    def fetch_all(self, sql: str | bytes) -> list[tuple[Any, ...]]:
        """Return the rows of a small internal query, as bytes."""
        with self.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def run(self, sql: str | bytes) -> int:
        """Run a statement without rows. Return the number of changed rows."""
        return int(self.query(sql))

    def load(self, sql: str, data: Iterable[bytes]) -> int:
        """Run a LOAD DATA LOCAL with `data` as its file. Return the number of warnings."""
        self._sending = data
        try:
            self.run(sql)
        finally:
            self._sending = None
        return int(self._result.warning_count)

    def peek(self) -> bytes:
        """Return what was received and is not read yet; wait if that is nothing. An error is left to who reads it."""
        try:
            return bytes(self._rfile.peek())
        except OSError:
            return b""

    def end(self) -> None:
        """Close at once, without reading the rest of a result."""
        with suppress(*ERRORS, OSError):
            self._force_close()

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        self._result = None
        result = _UnbufferedResult(self, self._sending)
        if unbuffered:
            result.init_unbuffered_query()
        else:
            result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows


class _UnbufferedResult(MySQLResult):
    """Result that answers a request for a file with the data to send, and never with a file."""

    connection: Any
    unbuffered_active: bool

    def __init__(self, connection: MySQLConnection, sending: Iterable[bytes] | None) -> None:
        super().__init__(connection)
        self._sending = sending

    def _read_load_local_packet(self, first_packet: Any) -> None:
        connection = self.connection
        if self._sending is None:
            connection.end()
            raise SourceError("the server requested a file of this machine, which is never sent")
        try:
            for piece in _pieces(self._sending):
                connection.write_packet(piece)
        except ERRORS:
            raise
        except BaseException:  # the producer failed: rows sent so far must not be stored
            connection.end()
            raise
        connection.write_packet(b"")
        self._read_ok_packet(connection._read_packet())

    def read_rows(self, most: int) -> tuple[bytes, list[int]]:
        """Return the next rows that were received, at most so many, and where the values of each begin.

        At least one row is waited for. After the last one there is nothing.
        """
        if not self.unbuffered_active:
            return b"", []
        connection = self.connection
        ends = find_rows(memoryview(connection.peek()), connection._next_seq_id, most)
        if rows := len(ends) - 1:
            connection._next_seq_id = (connection._next_seq_id + rows) % 256
            return connection._read_bytes(ends[-1]), [end + HEAD for end in ends[:-1]]
        packet = connection._read_packet()
        if self._check_packet_is_eof(packet):
            self.unbuffered_active = False
            self.connection = None
            return b"", []
        return packet._data, [0]

    def __del__(self) -> None:
        """Do nothing. A partly read result is ended with its connection or read to its end; this must not block."""


def _pieces(data: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in data:
        view = memoryview(chunk)
        for start in range(0, len(view), _CHUNK):
            yield bytes(view[start : start + _CHUNK])


def fetch_columns(result: Any, most: int) -> tuple[list[pa.Array], bool]:
    """Return the bytes of the next rows of a result by column, of at most so many rows, and True if there may be more.

    Without rows there are no columns.
    """
    parts: list[bytes] = []
    starts: list[int] = []
    size, is_more = 0, True
    while is_more and len(starts) < most and size < FETCH_BYTES:
        rows, of_rows = result.read_rows(most - len(starts))
        is_more = bool(of_rows)
        starts += [size + start for start in of_rows]
        parts.append(rows)
        size += len(rows)
    return split_columns(b"".join(parts), starts, result.field_count) if starts else [], is_more


def literal(value: object, connection: MySQLConnection) -> str:
    """Return the value as a SQL literal."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "NULL"
    if isinstance(value, bool | int):
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'" if value else "''"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return f"'{value.isoformat(*(' ',) if isinstance(value, dt.datetime) else ())}'"
    return str(connection.escape(str(value)))


def bind_values(sql: str, parameters: Sequence[object], connection: MySQLConnection) -> str:
    """Replace the statement's question marks by the values."""
    if not parameters:
        return sql
    values = iter(parameters)
    return _PLACES.sub(lambda match: literal(next(values), connection) if match[0] == "?" else match[0], sql)


def _arguments(url: ServerURL) -> Mapping[str, Any]:
    options = dict(url.options)
    arguments: dict[str, Any] = {
        "host": url.host.strip("[]"),
        "port": url.port or 3306,
        "user": url.user or None,
        "password": url.password or os.environ.get("MYSQL_PWD", ""),  # as the server's own client
        "database": url.path,
        "connect_timeout": int(options.get("connect_timeout", "10")),
    }
    if "socket" in options:
        arguments["unix_socket"] = options["socket"]
    arguments["ssl"] = tls.context(options)
    arguments["ssl_disabled"] = options.get("ssl") == "false"
    return arguments


def _connection_error(error: Exception, url: ServerURL) -> SourceError:
    message = str(error.args[-1] if error.args else error).rstrip(".")
    hints = {
        _DENIED: "the password is wrong, or the user may not connect from this host or without a certificate"
        if url.password
        else "give the password by -p, in SQLFLOW_SOURCE, in MYSQL_PWD or in the connections file",
        1044: "request privileges on this database",
        1049: "check the name of the database",
        2003: "check host and port, and that the server is running",
    }
    if distrust := tls.hint(message):  # retries do not help
        return SourceError(f"cannot open {url}: {message}", hint=distrust)
    cause = getattr(error, "original_exception", None)
    if isinstance(cause, OSError) and "socket" not in dict(url.options):
        message = f"{url.host}:{url.port or 3306}: {describe_failure(cause)}"
    kind = UnreachableError if code(error) in LOST | {_TOO_MANY} else SourceError
    if code(error) == _DENIED and not url.password:
        kind = NoPasswordError
    return kind(f"cannot open {url}: {message}", hint=hints.get(code(error)))
