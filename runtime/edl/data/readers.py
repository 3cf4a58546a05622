"""Readers made of other rows: of one record batch, rotated, without some rows, or two sets read as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


class RotatedReader:
    """Reader that yields row (p + `rotation`) mod `size` of another one as row p < `size`; later rows stay in place."""

    def __init__(self, reader: Reader, rotation: int, size: int) -> None:
        self._reader = reader
        self._size = size
        self._first = size - rotation  # rows before the end of the rotated ones
        self._rotation = rotation
        self.rows: int = reader.rows
        self.schema: pa.Schema = reader.schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order."""
        for first, last, shift in (
            (0, self._first, self._rotation),
            (self._first, self._size, -self._first),
            (self._size, self.rows, 0),
        ):
            here, until = max(start, first), min(end, last)
            if here < until:
                yield from self._reader.read(here + shift, until + shift, columns)


class ShortReader:
    """Reader of another one's rows without the `count` rows from `start`."""

    def __init__(self, reader: Reader, start: int, count: int) -> None:
        self._reader = reader
        self._start = start
        self._count = count
        self.rows: int = reader.rows - count
        self.schema: pa.Schema = reader.schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order."""
        if start < min(end, self._start):
            yield from self._reader.read(start, min(end, self._start), columns)
        if max(start, self._start) < end:
            yield from self._reader.read(max(start, self._start) + self._count, end + self._count, columns)


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
