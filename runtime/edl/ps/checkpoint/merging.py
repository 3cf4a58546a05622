"""Rows of a table from several servers or their files, merged by ascending id with a chunk of each in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np

from edl.embeddings import TableCopy
from edl.embeddings.table import Floats, Ids

CHUNK = 65_536  # rows of one source in memory
Rows = tuple[Ids, Floats]  # (n,), and (n, dim)


def merge_rows(sources: Iterable[Iterator[Rows]]) -> Iterator[Rows]:
    """Yield all rows by ascending id, at each turn those that precede every row of later chunks.

    Each source yields chunks, none of them empty, by ascending id.
    """
    parts = [_RowSource(chunks) for chunks in sources]
    while parts := [part for part in parts if len(part.ids)]:
        last = min(int(part.ids[-1]) for part in parts)
        taken = [part.take(last) for part in parts]
        ids = np.concatenate([ids for ids, _ in taken])
        order = np.argsort(ids)
        yield ids[order], np.concatenate([rows for _, rows in taken])[order]


def order_rows(copied: TableCopy, numbers: Ids, dim: int) -> Iterator[Rows]:
    """Yield the rows with these numbers of a table, without their slots, by ascending id.

    Their order, 8 bytes a row, is kept in a temporary file: a machine may have room for the order of one server's rows,
    and not for the order of all rows. Arrays of a mapped file are read as they are needed.
    """
    if not len(numbers):
        return
    with tempfile.TemporaryFile() as file:
        order = np.memmap(file, np.int64, "w+", shape=numbers.shape)
        order[:] = numbers[np.argsort(copied.ids[numbers])]
        for first in range(0, len(order), CHUNK):
            some = order[first : first + CHUNK]
            yield np.array(copied.ids[some]), np.array(copied.data[some, :dim])


class _RowSource:
    """Chunk of one source; an empty one marks its end."""

    def __init__(self, chunks: Iterator[Rows]) -> None:
        self._chunks = chunks
        self.ids: Ids = np.empty(0, np.int64)
        self.rows: Floats = np.empty((0, 1), np.float32)
        self._advance()

    def take(self, last: int) -> Rows:
        """Remove and return the rows of the chunk up to the id `last`."""
        count = int(np.searchsorted(self.ids, last, side="right"))
        rows = self.ids[:count], self.rows[:count]
        self.ids, self.rows = self.ids[count:], self.rows[count:]
        if not len(self.ids):
            self._advance()
        return rows

    def _advance(self) -> None:
        self.ids, self.rows = next(self._chunks, (self.ids[:0], self.rows[:0]))
