"""Pinned rows of MySQL by connectorx, which reads a range into Arrow without a Python object per value.

connectorx opens a connection per query and returns the whole result, so a long range is read in parts of bounded size:
while the rows of one are consumed, a thread reads the next. The server sends as text what connectorx could not hold
exactly: decimals, times, and MySQL's JSON. Texts are converted like PyMySQL's. connectorx would panic at a zero date,
so rows with one are left out, and missed.

Where connectorx cannot be used, or fails, PyMySQL reads on. Users see PyMySQL's errors: connectorx gets the password in
a URL, so its messages go to the log alone, at the level DEBUG, without the password.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa

from edl.data.names import quote_part
from edl.data.server_url import ServerURL
from edl.data.source import PinnedTable
from edl.sources.mysql import types
from edl.sources.mysql.connection import LOST, SESSION
from edl.sources.mysql.drivers import PyMySQL, nameless, select
from edl.sources.mysql.types import MySQLColumn
from edl.sources.pinned_tables import LostTableError

LEAST_ROWS = 512  # fewer come sooner over the connection that is open
_FIRST_ROWS = 8192  # of a range; their size decides how many rows the next queries read
_MOST_ROWS = 524_288
_QUERY_BYTES = 32 << 20
_LEAVE_SECS = 5.0  # until a reader that is closed leaves a query to its end

_LOST = re.compile(r"IoError|ERROR (\d{4}) \(")

_log = logging.getLogger(__name__)
_refused: set[ServerURL] = set()  # connectorx waited for a connection in vain, half a minute
_users: set[int] = set()  # the process that uses connectorx; the threads of connectorx do not outlive a fork


class ConnectorX:
    """Driver that reads long ranges with connectorx, and all else with `plain`."""

    def __init__(self, url: ServerURL, plain: PyMySQL) -> None:
        self._url = url
        self._plain = plain
        self._is_used = True
        self._rows: dict[tuple[str, ...], int] = {}  # of a part, by the names of its columns
        if obstacle := _obstacle(url, plain):
            self._leave(obstacle)

    def read(
        self, table: PinnedTable, columns: Sequence[MySQLColumn], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        if self._is_used and end - start >= LEAST_ROWS:
            try:
                for batch in self._batches(table, columns, start, end):
                    start += batch.num_rows
                    yield batch
            except _FailedError as error:
                self._leave(str(error))
        if start < end:
            yield from self._plain.read(table, columns, start, end)

    def end(self) -> None:
        self._plain.end()

    def _batches(
        self, table: PinnedTable, columns: Sequence[MySQLColumn], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows [start, end), reading the next part while one is consumed. Raises LostError or _FailedError."""
        names = tuple(column.name for column in columns)
        part = self._part(table, columns, start, end)
        try:
            while True:
                part_rows = part.rows()
                size = max(part_rows.nbytes / part_rows.num_rows, 1)
                self._rows[names] = int(max(LEAST_ROWS, min(_MOST_ROWS, _QUERY_BYTES / size)))
                is_last = part.end == end
                if not is_last:
                    part = self._part(table, columns, part.end, end)
                for batch in part_rows.to_batches():
                    yield _batch(columns, batch)
                if is_last:
                    return
        except (GeneratorExit, _FailedError):
            part.leave()
            raise

    def _part(self, table: PinnedTable, columns: Sequence[MySQLColumn], start: int, end: int) -> _QueryPart:
        """Start to read the rows from `start`, as many as are one part."""
        rows = self._rows.get(tuple(column.name for column in columns), _FIRST_ROWS)
        if end - start >= rows + LEAST_ROWS:
            end = start + rows
        return _QueryPart(self._url, _query(table, columns, start, end), start, end)

    def _leave(self, why: str) -> None:
        self._is_used = False
        _log.debug("PyMySQL reads the pinned rows, not connectorx: %s", why)


class _FailedError(Exception):
    """connectorx failed, or its result is not what was asked for. The message has no password."""


def _obstacle(url: ServerURL, plain: PyMySQL) -> str:
    """Return the reason why connectorx is not used where `plain` is connected, or ""."""
    if plain.is_encrypted:
        return "the connections to this server are encrypted, and it cannot encrypt"
    if url in _refused:
        return "it could not connect before"
    if not _users <= {os.getpid()}:
        return "the process is a fork of one that used it"
    # An account of unix_socket has neither.
    return "" if url.user and url.password else "the account has no name or no password"


class _QueryPart:
    """Rows [start, end) on their way, in a thread: signals interrupt the wait for them, not a call into connectorx."""

    def __init__(self, url: ServerURL, query: str, start: int, end: int) -> None:
        self.end = end
        self._count = end - start
        self._found: Future[pa.Table] = Future()
        self._thread = threading.Thread(target=self._run, args=(url, query), name="connectorx")
        _users.add(os.getpid())
        self._thread.start()

    def rows(self) -> pa.Table:
        """Wait for the rows. Raises LostError or _FailedError."""
        if os.getpid() not in _users:
            raise _FailedError("the process is a fork of the one that reads")
        table = self._found.result()
        if table.num_rows != self._count:
            raise _FailedError(f"{table.num_rows} rows of {self._count}")
        return table

    def leave(self) -> None:
        """Wait until the thread has ended, unless the server hangs."""
        self._thread.join(_LEAVE_SECS)

    def _run(self, url: ServerURL, query: str) -> None:
        try:
            self._found.set_result(_run_query(url, query))
        except BaseException as error:
            self._found.set_exception(error)


def _query(table: PinnedTable, columns: Sequence[MySQLColumn], start: int, end: int) -> str:
    """Return the query of rows [start, end) as connectorx can read them."""
    sent = [column for column in columns if not pa.types.is_null(column.kind)]
    dated = [
        quote_part(column.name, "`")
        for column in sent
        if pa.types.is_date(column.kind) or pa.types.is_timestamp(column.kind)
    ]
    no_zeros = [f"IFNULL(MONTH({name}) * DAYOFMONTH({name}), 1)" for name in dated]
    return select(table, [types.exact_in_arrow(column) for column in sent], start, end, no_zeros)


def _run_query(url: ServerURL, query: str) -> pa.Table:
    try:
        return _import_connectorx().read_sql(
            _connection(url), query, return_type="arrow", pre_execution_query=SESSION
        )
    except BaseException as error:  # panics are no Exceptions
        message = str(error)
        for secret in filter(None, (quote(url.password, safe=""), url.password)):
            message = message.replace(secret, "***")
    match = _LOST.search(message)
    if match and (match[1] is None or int(match[1]) in LOST):
        raise LostTableError("the connection to the database was lost", hint="try again")
    if message.startswith("timed out"):
        _refused.add(url)
    raise _FailedError(message)


def _import_connectorx() -> Any:
    """Import connectorx so that it writes no log to stderr."""
    before = os.environ.get("RUST_LOG")
    os.environ["RUST_LOG"] = "off"
    try:
        import connectorx
    finally:
        if before is None:
            del os.environ["RUST_LOG"]
        else:
            os.environ["RUST_LOG"] = before
    return connectorx


def _connection(url: ServerURL) -> str:
    """Return the URL for connectorx. Raises nothing: all parts are escaped."""
    options = dict(url.options)
    settings = {
        "prefer_socket": "false",
        "tcp_connect_timeout_ms": str(1000 * int(options.get("connect_timeout", "10"))),
        **({"socket": options["socket"]} if "socket" in options else {}),
    }
    user, password, path = (quote(part, safe="") for part in (url.user, url.password, url.path))
    return f"mysql://{user}:{password}@{url.host}:{url.port or 3306}/{path}?{urlencode(settings)}"


def _batch(columns: Sequence[MySQLColumn], received: pa.RecordBatch) -> pa.RecordBatch:
    """Convert to the types of the columns; columns of the type null were not read. Raises _FailedError."""
    if not columns:
        return nameless(received.num_rows)
    arrays = iter(received.columns)
    try:
        converted = [
            pa.nulls(received.num_rows) if pa.types.is_null(column.kind) else _array(column, next(arrays))
            for column in columns
        ]
    except (pa.ArrowException, ValueError) as error:  # a value that its type cannot hold: PyMySQL says which
        raise _FailedError(str(error)) from None
    return pa.RecordBatch.from_arrays(converted, names=[column.name for column in columns])


def _array(column: MySQLColumn, values: pa.Array) -> pa.Array:
    kind: Any = column.kind
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        is_expected = pa.types.is_integer(values.type)
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        is_expected = pa.types.is_temporal(values.type)
    elif pa.types.is_floating(kind):
        is_expected = pa.types.is_floating(values.type)
    else:
        values = values.cast(pa.binary() if pa.types.is_binary(kind) else pa.string())
        is_expected = True
    if not is_expected:
        raise _FailedError(f"column {column.name} is of the type {values.type}, not {kind}")
    return types.from_texts(values, kind)
