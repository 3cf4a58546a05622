"""Reader of rows by range over a module's own data reader, which knows shards and the records of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from edl.data.files.file_ranges import FILE, open_files, pin_files
from edl.data.source import Pinned, Reader
from edl.errors import JobError
from edl.extensions.elasticdl.feeding import RECORD
from edl.extensions.elasticdl.names.readers import RecordIODataReader, Shard, Task

_BATCH_ROWS = 8192


class _Range(NamedTuple):
    """Shard as a range of all rows: `first` is the row of its first record, which has the number `start` in it."""

    name: str
    first: int
    start: int
    rows: int


def open_shards(create: Callable[..., Any], pinned: Pinned, folder: Path, file: str) -> Reader:
    """Return the rows of the module's reader. Files of RecordIO are read by the runtime itself.

    Raises JobError if the reader is none of ElasticDL's.
    """
    reader = create(pinned.source)
    if isinstance(reader, RecordIODataReader):
        if not (folder / FILE).exists():
            pin_files(reader.data_dir, folder)
        return open_files(Pinned(pinned.source, "", FILE, 0, (), "", 0, shuffled=False), folder)
    if all(hasattr(reader, name) for name in ("rows", "schema", "read")):
        rows: Reader = reader
        return rows
    if not all(hasattr(reader, name) for name in ("create_shards", "read_records")):
        raise JobError(
            f"custom_data_reader in {file} gives a {type(reader).__name__}",
            hint="a reader has create_shards() and read_records(task), or rows, schema and read(start, end, columns)",
        )
    return ShardReader(reader)


class ShardReader:
    """Reader over the shards of a module's reader, one after another."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._ranges = list(_list_ranges(reader.create_shards()))
        self.rows = sum(shard.rows for shard in self._ranges)
        names = reader.metadata.column_names
        fields = [pa.field(name, pa.string()) for name in names] if names else [pa.field(RECORD, pa.binary())]
        self.schema = pa.schema(fields)

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read the rows [start, end) in order."""
        records = itertools.chain.from_iterable(self._records(start, end))
        while chunk := list(itertools.islice(records, _BATCH_ROWS)):
            batch = self._batch(chunk)
            yield batch if columns is None else batch.select(list(columns))

    def _records(self, start: int, end: int) -> Iterator[Iterable[Any]]:
        for shard in self._ranges:
            first, last = max(start, shard.first), min(end, shard.first + shard.rows)
            if first < last:
                offset = shard.start - shard.first
                yield self._reader.read_records(Task(Shard(shard.name, first + offset, last + offset)))

    def _batch(self, records: Sequence[Any]) -> pa.RecordBatch:
        if self.schema.names == [RECORD]:
            joined = [record if isinstance(record, bytes) else str(record).encode() for record in records]
            return pa.RecordBatch.from_arrays([pa.array(joined, pa.binary())], schema=self.schema)
        columns = zip(*records, strict=True)
        arrays = [pa.array([str(value) for value in column], pa.string()) for column in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _list_ranges(shards: Any) -> Iterator[_Range]:
    """Yield the shards of a list of (name, first, number), or of a dict name -> (first, number)."""
    listed = [(name, *range_) for name, range_ in shards.items()] if isinstance(shards, Mapping) else shards
    row = 0
    for name, start, number in listed:
        yield _Range(str(name), row, int(start), int(number))
        row += int(number)
