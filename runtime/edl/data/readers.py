"""Readers made of other rows: of one record batch, of parts of other rows, or of two sets as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from edl.data.source import Reader
from edl.errors import SourceError, did_you_mean


class BatchReader:
    """A `Reader` of one record batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self.rows = batch.num_rows
        self.schema = batch.schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows [start, end) in order."""
        some = self._batch if columns is None else self._batch.select(list(columns))
        yield some.slice(start, end - start)


class PartsReader:
    """Reader of ranges of another one's rows, `parts`, one after another."""

    def __init__(self, reader: Reader, parts: Iterable[tuple[int, int]]) -> None:
        self._reader = reader
        self._parts = [(start, end) for start, end in parts if start < end]
        self.rows: int = sum(end - start for start, end in self._parts)
        self.schema: pa.Schema = reader.schema

    @classmethod
    def skip(cls, reader: Reader, start: int, count: int) -> PartsReader:
        """Return a reader of the rows without the `count` rows from `start`."""
        return cls(reader, [(0, start), (start + count, reader.rows)])

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order."""
        first = 0
        for begin, until in self._parts:
            shift = begin - first
            here, last = max(start, first), min(end, first + until - begin)
            if here < last:
                yield from self._reader.read(here + shift, last + shift, columns)
            first += until - begin


class JoinedReader:
    """Reader of the rows of `first`, then the rows of `second`, with the column names of `first`.

    Names match exactly, else ignoring case; additional columns of the second are never read. A range must lie in one
    of the two, because their types may differ.
    """

    def __init__(self, first: Reader, second: Reader) -> None:
        self._first = first
        self._second = second
        self.rows = first.rows + second.rows
        self.schema = first.schema
        self._names = {name.casefold(): name for name in reversed(second.schema.names)}

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order. Raises SourceError if the rows lack one of the columns."""
        border = self._first.rows
        if end <= border:
            return self._first.read(start, end, columns)
        if start < border:
            raise ValueError(f"rows [{start}, {end}) lie on both sides of {border}")
        if columns is None:
            columns = [name for name in self.schema.names if name.casefold() in self._names]
        return self._rename_columns(start - border, end - border, list(columns))

    def _rename_columns(self, start: int, end: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        names = [self._name(column) for column in columns]
        for batch in self._second.read(start, end, names):
            yield batch.rename_columns(columns)

    def _name(self, column: str) -> str:
        name = column if column in self._second.schema.names else self._names.get(column.casefold())
        if name is None:
            hint = did_you_mean(column, self._second.schema.names)
            raise SourceError(f"the validation rows have no column {column}", hint=hint)
        return name
