"""Rows between their reading and their pinned order: kept as they come, then gathered in the order.

Few rows are kept in memory. Many are written to a file of the job's folder, as they come, and gathered part by part:
each part of the order is read from the file in one pass.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.data.arrow_types import BATCH_ROWS
from edl.data.pinned import check_disk, disk_full
from edl.sources.pinning_cost import ROWS_IN_MEMORY

Ints = npt.NDArray[np.int64]

_CHUNK = 8  # batches that are joined: a column's memory is its own then, and can be freed by itself
FILE = "incoming.arrow"


class RowStore:
    """Rows of a schema, in the order in which they are added. A context manager, which removes its file."""

    def __init__(self, schema: pa.Schema, folder: Path, most: int = ROWS_IN_MEMORY) -> None:
        self.schema = schema
        self._path = folder / "shuffle" / FILE
        self._most = most  # bytes of rows in memory; also of a part that is gathered from a file
        self._waiting: list[pa.RecordBatch] = []
        self._columns: list[list[pa.Array]] = [[] for _ in schema]
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._bytes = 0
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            with suppress(OSError):  # of a full disk, which an error has told already
                self._writer.close()
        self._path.unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._waiting.append(batch)
        if len(self._waiting) == _CHUNK:
            self._join()

    def gather(self, order: Ints) -> Iterator[pa.RecordBatch]:
        """Yield the rows at the indices, in batches of 65,536. The rows cannot be gathered again."""
        self._join()
        if self._writer is not None:
            self._writer.close()
            yield from self._gather_parts(order)
            return
        joined: list[pa.Array] = []
        for field, chunks in zip(self.schema, self._columns, strict=True):
            joined.append(_concat(chunks, field.type))
            chunks.clear()
            pa.default_memory_pool().release_unused()  # it keeps what is freed
        yield from _take(joined, self.schema, order)

    def _join(self) -> None:
        """Join the batches that wait: into memory, or into the file."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        columns = [
            _concat([batch.column(at) for batch in waiting], field.type)
            for at, field in enumerate(self.schema)
        ]
        del waiting
        self._bytes += sum(column.nbytes for column in columns)
        if self._writer is None and self._bytes <= self._most:
            for chunks, column in zip(self._columns, columns, strict=True):
                chunks.append(column)
            return
        if self._writer is None:
            self._writer = self._spill()
        self._write(self._writer, columns)

    def _spill(self) -> pa.ipc.RecordBatchFileWriter:
        """Move the rows from memory to the file, and return its writer."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        writer = pa.ipc.new_file(str(self._path), self.schema)
        while self._columns and self._columns[0]:
            self._write(writer, [chunks.pop(0) for chunks in self._columns])
        return writer

    def _write(self, writer: pa.ipc.RecordBatchFileWriter, columns: list[pa.Array]) -> None:
        check_disk(self._path.parent)
        try:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise disk_full(self._path.parent) from None

    def _gather_parts(self, order: Ints) -> Iterator[pa.RecordBatch]:
        file = pa.ipc.open_file(pa.memory_map(str(self._path)))
        ends = np.cumsum([file.get_batch(at).num_rows for at in range(file.num_record_batches)])
        parts = -(-self._bytes // self._most)
        rows = -(-self._rows // parts)
        rows = -(-rows // BATCH_ROWS) * BATCH_ROWS
        for start in range(0, len(order), rows):
            part = order[start : start + rows]
            by_place = np.argsort(part)
            present, places = part[by_place], np.empty(len(part), np.int64)
            places[by_place] = np.arange(len(part))
            columns: list[list[pa.Array]] = [[] for _ in self.schema]
            bounds = np.searchsorted(present, [0, *ends])
            for at, (first, last) in enumerate(pairwise(bounds)):
                inside = present[first:last] - (ends[at - 1] if at else 0)
                batch = file.get_batch(at).take(pa.array(inside))
                for chunks, column in zip(columns, batch.columns, strict=True):
                    chunks.append(column)
            joined = [_concat(chunks, field.type) for field, chunks in zip(self.schema, columns, strict=True)]
            yield from _take(joined, self.schema, places)


def _concat(chunks: list[pa.Array], kind: pa.DataType) -> pa.Array:
    return pa.concat_arrays(chunks or [pa.array([], kind)])


def _take(columns: list[pa.Array], schema: pa.Schema, order: Ints) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(order), BATCH_ROWS):
        places = pa.array(order[start : start + BATCH_ROWS])
        yield pa.RecordBatch.from_arrays([column.take(places) for column in columns], schema=schema)
