"""Rows of a MaxCompute table by range: one download session; all processes of a job share its id.

The table is private and never changes, so its rows have numbers, and an expired session is replaced by another over
the same rows. A range is read in requests of bounded size, several at a time, because the service limits the speed of
each. A stream that ends early, with or without an error, is continued at the next row.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from crc32c import crc32c
from odps import errors
from odps.tunnel.io.reader import TunnelArrowReader
from urllib3.exceptions import HTTPError

from edl.data.arrow_types import BATCH_ROWS, cast_batch, fields, normal_schema
from edl.data.server_url import parse_server
from edl.data.source import Pinned, PinnedTable
from edl.errors import SourceError, did_you_mean
from edl.sources.maxcompute import types
from edl.sources.maxcompute.client import ATTEMPTS, ERRORS, Client, may_pass, pause, utc
from edl.sources.maxcompute.errors import translate_error

REQUESTS = 4  # at a time
REQUEST_BYTES = 16 << 20  # approximate size of one; REQUESTS of them are in memory
RECORDS = 2048  # rows per batch if rows arrive one by one

_LOST_SESSIONS = ("NoSuchDownload", "InvalidDownloadID", "DownloadExpired", "StatusConflict", "NoSuchSession")


def open_rows(pinned: Pinned, table: PinnedTable) -> TableRows:
    """Return a reader of pinned rows. Raises SourceError if they are missing or are not the rows that were pinned."""
    client = Client(parse_server(pinned.source))
    try:
        reader = TableRows(client, table.name, table.session)
    except errors.NoSuchTable:
        raise SourceError(
            f"the pinned rows of this job no longer exist: {table.name}",
            hint="rows are removed when a job ends; submit it again",
        ) from None
    except ERRORS as error:
        raise translate_error(error) from None
    if reader.rows != pinned.rows or fields(reader.schema) != pinned.schema:
        raise SourceError(f"{table.name} holds other rows than the job pinned", hint="submit the job again")
    return reader


class TableRows:
    """Reader of row ranges of one table or partition.

    Safe to use from several threads, and in processes that fork.
    """

    def __init__(
        self,
        client: Client,
        table: str,
        session: str | None = None,
        part: str | None = None,
        *,
        displayed: bool = False,
    ) -> None:
        self._client = client
        self._table = table
        self._part = part
        self._lock = threading.Lock()
        self._row_bytes = REQUEST_BYTES // 4096  # initial estimate
        self._session = self._attached(session)
        columns = types.displayed_columns if displayed else types.columns
        self._columns = columns(self._session.schema.simple_columns)
        # pyodps examines all columns, whichever it reads.
        self._as_arrow = all(column.as_arrow for column in self._columns)
        self.rows: int = self._session.count
        self.schema = normal_schema(types.schema(self._columns))

    @property
    def session(self) -> str:
        """Id of the session, for other processes to attach to."""
        return str(self._session.id)

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order, in batches of at most 65,536.

        `columns` selects and orders columns; None selects all. Raises SourceError for a missing column, or if the
        service fails for longer than about a minute; ValueError unless 0 <= start <= end <= rows.
        """
        if not 0 <= start <= end <= self.rows:
            raise ValueError(f"rows [{start}, {end}) of {self.rows}")
        return self._ranges(start, end, self._choose_columns(columns))

    def _choose_columns(self, names: Sequence[str] | None) -> list[types.MaxComputeColumn]:
        if names is None:
            return self._columns
        by_name = {column.name: column for column in self._columns}
        for name in names:
            if name not in by_name:
                raise SourceError(f"the pinned rows have no column {name}", hint=did_you_mean(name, by_name))
        return [by_name[name] for name in names]

    def _ranges(
        self, start: int, end: int, columns: list[types.MaxComputeColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of several ranges, which are prefetched while the first is consumed."""
        coming: deque[Future[list[pa.RecordBatch]]] = deque()
        with ThreadPoolExecutor(REQUESTS) as pool:
            try:
                while start < end or coming:
                    while len(coming) < REQUESTS and start < end:
                        stop = min(start + self._request_rows(), end)
                        coming.append(pool.submit(self._range, start, stop, columns))
                        start = stop
                    batches = coming.popleft().result()
                    self._row_bytes = sum(b.nbytes for b in batches) // sum(b.num_rows for b in batches)
                    yield from batches
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _request_rows(self) -> int:
        return max(1, min(BATCH_ROWS, REQUEST_BYTES // max(1, self._row_bytes)))

    def _range(self, start: int, end: int, columns: list[types.MaxComputeColumn]) -> list[pa.RecordBatch]:
        """Return exactly the rows [start, end), with retries."""
        batches: list[pa.RecordBatch] = []
        failures = 0
        while start < end:
            session = self._session
            reached = start
            problem: Exception = SourceError(f"the download of {self._table} ends before its last row")
            try:
                with utc():
                    for batch in self._batches(session, start, end - start, columns):
                        batches.append(batch)
                        start += batch.num_rows
            except ERRORS as error:
                if not self._renew_session(session, error) and not may_pass(error):
                    raise translate_error(error) from None
                problem = translate_error(error)
            except (OSError, EOFError, pa.ArrowException, HTTPError) as error:
                problem = SourceError(f"the download of {self._table} was interrupted: {error}")
            if start < end:
                failures = failures + 1 if start == reached else 1
                if failures == ATTEMPTS:
                    raise problem
                pause(failures)
        return batches

    def _batches(
        self, session: Any, start: int, count: int, columns: list[types.MaxComputeColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they arrive."""
        if self._as_arrow:
            try:
                yield from _arrow_batches(session, start, count, columns, self._client.zone)
                return
            except errors.MethodNotAllowed:  # refused before the first row
                self._as_arrow = False
        yield from record_batches(session, start, count, columns, self._client.zone)

    def _attached(self, session: str | None) -> Any:
        try:
            return self._client.download(self._table, session, self._part)
        except errors.NoSuchTable:
            raise
        except ERRORS as error:
            if session is None or not _is_lost(error):
                raise
            return self._client.download(self._table, None, self._part)

    def _renew_session(self, session: Any, error: Exception) -> bool:
        """Return True if the session has expired and is replaced by a new one."""
        if not _is_lost(error):
            return False
        with self._lock:
            if self._session is session:
                fresh = self._client.download(self._table, None, self._part)
                if fresh.count != self.rows:
                    raise SourceError(f"{self._table} changed while it was read", hint="submit the job again")
                self._session = fresh
        return True


def _is_lost(error: Exception) -> bool:
    return isinstance(error, errors.BaseODPSError) and error.code in _LOST_SESSIONS


def _arrow_batches(
    session: Any, start: int, count: int, columns: list[types.MaxComputeColumn], zone: str
) -> Iterator[pa.RecordBatch]:
    reader = session._open_reader(
        start,
        count,
        compress=False,
        columns=[column.name for column in columns],
        arrow=True,
        append_partitions=False,
        partition_spec=None,
        reader_cls=_ArrowReader,
    )
    with reader:
        for batch in reader:
            if batch.num_rows:
                converted = types.from_wire(batch, columns, zone)
                yield cast_batch(converted, normal_schema(converted.schema))


def record_batches(
    session: Any, start: int, count: int, columns: list[types.MaxComputeColumn], zone: str
) -> Iterator[pa.RecordBatch]:
    """Yield rows that arrive one by one, as an instance's rows always do. To be called inside `utc`."""
    names = [column.name for column in columns]
    with session.open_record_reader(start, count, columns=names) as reader:
        rows: list[Sequence[Any]] = []
        for record in reader:
            rows.append(record.values)
            if len(rows) == RECORDS:
                yield types.from_records(rows, columns, zone)
                rows = []
        if rows:
            yield types.from_records(rows, columns, zone)


class _ArrowReader(TunnelArrowReader):  # type: ignore[misc]
    """Reader of pyodps with hardware checksums: in software they take most of the time."""

    def _reopen_reader(self) -> None:
        super()._reopen_reader()
        self._reader._crc, self._reader._crccrc = Checksum(), Checksum()


class Checksum:
    """CRC-32C with the interface that pyodps's Arrow streams expect."""

    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = crc32c(data, self._value)

    def getvalue(self) -> int:
        return self._value

    def reset(self) -> None:
        self._value = 0
