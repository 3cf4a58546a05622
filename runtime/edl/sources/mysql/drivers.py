"""Drivers that read pinned rows from MySQL; the fastest installed one is used.

mysqlclient is written in C and several times as fast as PyMySQL, which is written in Python; both give the same
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Protocol

from edl.data.server_url import ServerURL
from edl.errors import SourceError
from edl.sources.mysql import tls
from edl.sources.mysql.connection import ERRORS, SESSION, Connection, code, fetched, is_lost, open_connection
from edl.sources.pinned_tables import LostError

try:
    import MySQLdb
    from MySQLdb import _mysql
except ImportError:
    _mysql = None

_NEED_TLS = (1045, 3159)  # access is denied to an account that requires TLS

Rows = Sequence[tuple[bytes | None, ...]]


class _NeedsTLSError(LostError):
    """The server or the account requires TLS, which PyMySQL uses by itself."""


class Fetching(Protocol):
    """Connection from which rows are read."""

    def fetch(self, query: str, rows: int) -> Iterator[Rows]:
        """Yield the rows of the query, `rows` at a time.

        Raises LostError if the connection was lost, SourceError for other errors.
        """
        ...

    def end(self) -> None:
        """Close at once, even during a result."""
        ...


def installed() -> list[str]:
    """Return the installed drivers, the fastest last."""
    return ["pymysql", *(["mysqlclient"] if _mysql is not None else [])]


def connect(url: ServerURL, driver: str | None = None) -> Fetching:
    """Connect with `driver` ("pymysql" or "mysqlclient"; None is the fastest installed).

    Raises LostError if the server cannot be reached.
    """
    if driver == "mysqlclient" or (driver is None and _mysql is not None and not _is_secured(url)):
        try:
            return _MySQLClient(url)
        except _NeedsTLSError:
            if driver is not None:
                raise
    return _PyMySQL(url)


def _is_secured(url: ServerURL) -> bool:
    return any(option in tls.OPTIONS and value != "false" for option, value in url.options)


def describing(url: ServerURL) -> closing[Connection]:
    """Open a connection of PyMySQL, which reports the types of columns."""
    return closing(open_connection(url))


class _PyMySQL:
    def __init__(self, url: ServerURL) -> None:
        try:
            self._connection = open_connection(url)
        except SourceError as error:
            raise LostError(error.message, hint=error.hint) from None

    def fetch(self, query: str, rows: int) -> Iterator[Rows]:
        try:
            self._connection.query(query, unbuffered=True)
            result, more = self._connection._result, True
            while more:
                found, more = fetched(result, rows)
                if found:
                    yield found
        except ERRORS as error:
            raise _translated(error) from None

    def end(self) -> None:
        self._connection.end()


class _MySQLClient:
    def __init__(self, url: ServerURL) -> None:
        options = dict(url.options)
        place: dict[str, Any] = {"unix_socket": options["socket"]} if "socket" in options else {}
        try:
            self._connection = _mysql.connect(
                host=url.host.strip("[]"),
                port=url.port or 3306,
                user=url.user,
                password=url.password,
                database=url.path,
                connect_timeout=int(options.get("connect_timeout", "10")),
                **place,
            )
            self._connection.set_character_set("utf8mb4")
            self._connection.query(SESSION.encode())
        except MySQLdb.Error as error:
            kind = _NeedsTLSError if code(error) in _NEED_TLS else LostError
            raise kind(str(error.args[-1])) from None

    def fetch(self, query: str, rows: int) -> Iterator[Rows]:
        try:
            self._connection.query(query.encode())
            result = self._connection.use_result()
            while found := result.fetch_row(rows, 0):
                yield found
        except MySQLdb.Error as error:
            raise _translated(error) from None

    def end(self) -> None:
        with suppress(MySQLdb.Error):
            self._connection.close()


def _translated(error: Exception) -> SourceError:
    message = str(error.args[-1] if error.args else error)
    if is_lost(error):
        return LostError(f"the connection to the database was lost: {message}", hint="try again")
    return SourceError(message)
