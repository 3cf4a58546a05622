"""Base of databases with a driver that gives rows as Python values, by a cursor of the DB-API."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from edl.data.arrow_types import BATCH_ROWS, rechunk_rows
from edl.data.source import Pinned
from edl.errors import SourceError
from edl.sources.common import EmbeddedSource, pin_file
from edl.sources.transactions import Transactional
from edl.sources.words import ended_result_error
from edl.spec import Split

C = TypeVar("C")  # description of a column
Rows = Sequence[Sequence[Any]]
RowConverter = Callable[[Rows], pa.RecordBatch]

FETCH_ROWS = 2048  # at a time: what fits into a processor's cache as Python objects


class CursorSource(Transactional, EmbeddedSource, Generic[C]):
    """`edl.data.source.Source` over one connection of the DB-API. The connection commits every statement by itself.

    `errors` are the exceptions of the driver.
    """

    errors: tuple[type[Exception], ...]

    def __init__(self, connection: Any, url: str) -> None:
        self.url = url
        self.connection = connection
        self._unread: Any = None  # cursor

    # Steps specific to a database ------------------------------------------------------------------------

    @abstractmethod
    def _columns(self, query: str) -> list[C]:
        """Return the columns of a query.

        Raises SourceError if the text is not one query, or a job cannot use one of its columns.
        """

    @abstractmethod
    def _schema(self, columns: Sequence[C]) -> pa.Schema: ...

    @abstractmethod
    def _row_converter(self, columns: Sequence[C], schema: pa.Schema) -> RowConverter:
        """Return what converts rows of the driver, asked for before the query runs.

        It raises SourceError for a value that is not of its column's type.
        """

    @abstractmethod
    def _translate(self, error: Exception, sql: str) -> SourceError:
        """Translate the error of running the text; empty for an internal statement."""

    # Reading ---------------------------------------------------------------------------------------------

    def schema(self, query: str) -> pa.Schema:
        return self._schema(self._columns(query))

    def stream(self, query: str, *, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        columns = self._columns(query)
        schema = self._schema(columns)
        convert = self._row_converter(columns, schema)
        batches = rechunk_rows(self._batches(self._run(query), convert), schema, batch_rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def pin(
        self, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None = None
    ) -> Pinned:
        return pin_file(self.url, query, self.stream(query), folder, seed=seed, shuffle=shuffle, split=split)

    def close(self) -> None:
        self._end_result()
        self.connection.close()

    # Writing ---------------------------------------------------------------------------------------------

    def insert(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run an INSERT for each of the rows. They are consumed on demand."""
        self._end_result()
        with self._errors(sql):
            self.connection.executemany(sql, rows)

    # Inside ----------------------------------------------------------------------------------------------

    def _run(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Run one statement, and return its cursor."""
        self._end_result()
        with self._errors(sql):
            self._unread = self.connection.execute(sql, tuple(parameters))
        return self._unread

    def _batches(self, cursor: Any, convert: RowConverter) -> Iterator[pa.RecordBatch]:
        """Yield the cursor's rows, some thousand at a time, converted to Arrow."""
        is_more = True
        while is_more:
            if self._unread is not cursor:
                raise ended_result_error()
            rows, is_more = self._fetch(cursor)
            if rows:
                yield convert(rows)

    def _fetch(self, cursor: Any) -> tuple[Rows, bool]:
        """Return the next rows of the cursor, and True if there may be more."""
        with self._errors(""):
            rows = cursor.fetchmany(FETCH_ROWS)
        return rows, bool(rows)

    def _end_result(self) -> None:
        if self._unread is not None:
            self._unread.close()
            self._unread = None

    def _roll_back(self) -> None:
        self._end_result()
        if self.connection.in_transaction:
            with suppress(*self.errors):
                self.connection.execute("ROLLBACK")

    @contextmanager
    def _errors(self, sql: str) -> Iterator[None]:
        """Translate the driver's errors."""
        try:
            yield
        except self.errors as error:
            raise self._translate(error, sql) from None
