"""Rows pinned in a database: a private table with a dense key, read by key range over any number of connections.

The comment of the table names its owner: the state folder of a user, the day, and the folder of the rows. The table
of a dead client is dropped by the next session of that user, if the folder is gone, and by any user's after 30 days.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.data.retry import reached
from edl.data.source import PinnedTable
from edl.errors import SourceError, did_you_mean
from edl.jobs.job_folder import state_id
from edl.reachability import SOURCE, Peer, outage_secs

PREFIX = "sqlflow_edl_rows_"
BLOCK, PLACES = "block", "places"  # columns of the places of rows in the pinned order
BLOCK_ROWS = (
    200  # of which a block has the places: few enough for PostgreSQL to keep them beside their number
)
KEPT_DAYS = 30  # for a table of an unknown owner
RETRY_SECS = 60.0  # of an outage while rows are read, at least
SILENCE_SECS = 5.0  # without an answer until that counts as a failure

_MARK = "rows of a job of sqlflow-edl, "
_COMMENT = re.compile(
    re.escape(_MARK) + r"(?P<owner>\w+), (?P<day>\d{4}-\d\d-\d\d), (?P<folder>.*)", re.DOTALL
)


class DeniedError(SourceError):
    """The user lacks the right to create tables."""


class LostTableError(SourceError):
    """The connection was lost; a new one may continue."""


class Closing(Protocol):
    """Connection that reads rows."""

    def end(self) -> None:
        """Close at once, even during a result."""
        ...


C = TypeVar("C", bound=Closing)


class _Executing(Protocol):
    def execute(self, sql: str) -> object: ...


class TableReader(ABC, Generic[C]):
    """Reader of row ranges of one table. A lost connection is replaced, and reading continues at the next row.

    Safe to use from several threads: each range that is being read has its own connection.
    """

    def __init__(self, table: PinnedTable, schema: pa.Schema, rows: int) -> None:
        self.rows = rows
        self.schema = schema
        self.check_columns: Callable[[Iterable[str]], None] = lambda names: (
            None
        )  # raises an error for one of them
        self._table = table
        self._idle: list[C] = []
        self._lock = threading.Lock()

    @abstractmethod
    def _connect(self) -> C:
        """Open a connection. Raises LostError if the server cannot be reached."""

    @abstractmethod
    def _fetch(self, connection: C, start: int, end: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield rows [start, end), in order. Raises LostError if the connection was lost."""

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order, in batches of at most 65,536.

        `columns` selects and orders columns; None selects all. Raises SourceError for a missing column, ValueError
        unless 0 <= start <= end <= rows.
        """
        if not 0 <= start <= end <= self.rows:
            raise ValueError(f"rows [{start}, {end}) of {self.rows}")
        present = dict.fromkeys(self.schema.names)
        names = list(present if columns is None else columns)
        self.check_columns(names)
        for name in names:
            if name not in present:
                raise SourceError(
                    f"the pinned rows have no column {name}", hint=did_you_mean(name, self.schema.names)
                )
        return self._batches(start, end, names)

    def _batches(self, start: int, end: int, names: list[str]) -> Iterator[pa.RecordBatch]:
        waited = Patience()
        try:
            while start < end:
                connection = None
                try:
                    with waited.answer():
                        connection = self._connection()
                    batches = self._fetch(connection, start, end, names)
                    while (batch := waited.next(batches)) is not None:
                        start += batch.num_rows
                        yield batch
                    if start < end:
                        raise SourceError(f"{end - start:,} pinned rows are gone from {self._table.name}")
                    self._give_back(connection)
                    connection = None
                except LostTableError as error:
                    waited.wait(error)
                finally:
                    if connection is not None:  # lost, or stopped during a result
                        connection.end()
        finally:
            waited.close()

    def _connection(self) -> C:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: C) -> None:
        with self._lock:
            self._idle.append(connection)


class Patience:
    """Backoff for a server that cannot be reached. It is reported after a while, see `edl.reachability`."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._now, self._sleep = now, sleep
        self._since: float | None = None
        self._pause = 0.0
        self._server = Peer(SOURCE, "")

    @contextmanager
    def answer(self) -> Iterator[None]:
        """Provide a context that waits for an answer. A server that is silent is reported like one that is gone."""
        with _watch_server(self._server):
            yield

    def next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """Return the next batch, None after the last one."""
        with self.answer():
            batch = next(batches, None)
        if batch is not None:
            self.forget()
        return batch

    def forget(self) -> None:
        self._since, self._pause = None, 0.0
        self._server.on_answer()
        reached.set()

    def close(self) -> None:
        """End the report, if there is one: nothing is read any more."""
        self._server.on_gone()

    def wait(self, error: SourceError) -> None:
        """Sleep, or raise the error if the server has been unreachable for too long."""
        now = self._now()
        self._since = now if self._since is None else self._since
        self._server.on_failure(partial(str, error.message))
        if now - self._since > max(RETRY_SECS, outage_secs() if reached.is_set() else 0.0):
            raise error
        self._sleep(self._pause)
        self._pause = min(2.0, self._pause * 2 + 0.05)


_silent: dict[Peer, float] = {}  # servers that have not answered a request yet, with the second of that


@contextmanager
def _watch_server(server: Peer) -> Iterator[None]:
    """Provide a context in which the silence of a server is reported. One thread watches all of them, as requests are
    too many for a thread each.
    """
    _start_watch()
    _silent[server] = time.monotonic()
    try:
        yield
    finally:
        _silent.pop(server, None)


@cache
def _start_watch() -> None:
    threading.Thread(target=_watch_silence, name="edl-silence", daemon=True).start()


def _watch_silence() -> None:
    while True:
        time.sleep(SILENCE_SECS)
        report_silent_servers(time.monotonic())


def report_silent_servers(now: float) -> None:
    """Count the silence of servers that have not answered a request for a while as a failure."""
    for server, since in list(_silent.items()):
        if now - since > SILENCE_SECS:
            server.on_failure(lambda: "it accepts connections, and does not answer")


def missing_table_error(message: str) -> SourceError:
    """Return the error of a table of pinned rows that is no longer there."""
    return SourceError(
        f"the pinned rows of this job no longer exist: {message}",
        hint="rows are removed when a job ends; submit it again",
    )


def new_name() -> str:
    """Return an unused name for a table of pinned rows."""
    return PREFIX + secrets.token_hex(12)


def comment(folder: Path) -> str:
    """Return the comment of a table with rows of this folder's job."""
    return f"{_MARK}{state_id()}, {_today()}, {folder.absolute()}"


def drop_abandoned(source: _Executing, tables: Iterable[tuple[str, str]]) -> int:
    """Drop the tables without a folder, and old tables of unknown owners. Return their number.

    `tables` has each table's name as in a query, and its comment.
    """
    dropped = 0
    for name, text in tables:
        if _is_abandoned(text):
            with suppress(SourceError):  # possibly another user's
                source.execute(f"DROP TABLE IF EXISTS {name}")
                dropped += 1
    return dropped


def _is_abandoned(text: str) -> bool:
    match = _COMMENT.fullmatch(text)
    if match is None:
        return False
    if match["owner"] == state_id():
        return not Path(match["folder"]).exists()
    return _today() - date.fromisoformat(match["day"]) > timedelta(days=KEPT_DAYS)


def _today() -> date:
    return datetime.now(UTC).date()


def find_places(keys: Iterable[pa.RecordBatch], rows: int) -> npt.NDArray[np.int64]:
    """Return the places of the keys 1 … rows in blocks, with zeros behind them; places count from 1.

    keys: the only column, in their order.
    """
    places = np.zeros((-(-rows // BLOCK_ROWS), BLOCK_ROWS), np.int64)
    of_keys = places.reshape(-1)
    start = 1
    for batch in keys:
        of_keys[batch.column(0).to_numpy() - 1] = np.arange(start, start + batch.num_rows)
        start += batch.num_rows
    return places
