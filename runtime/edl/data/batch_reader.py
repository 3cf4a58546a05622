"""Reader of rows that are in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa


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
