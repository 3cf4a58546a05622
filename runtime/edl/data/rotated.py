"""Rows in a rotated order, so that any range of them can validate a job, and rows without some in the middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from edl.data.source import Reader


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
