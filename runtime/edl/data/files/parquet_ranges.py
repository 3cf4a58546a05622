"""Parquet by row range: pieces are row groups.

A row group is read as a whole, so its size determines the memory of a reader; the usual sizes of 100,000 rows or 128
MiB are fine. Columns that are not requested are not read.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from edl.data.files.file_ranges import Columns, FileIndex, FileSet, watch_file
from edl.data.paths import DataFiles
from edl.errors import SourceError

_TAIL = 8  # bytes: length of the footer, and magic number


def index(files: DataFiles, note: Callable[[str], None]) -> FileSet:
    """Index the files by their footers. Raises SourceError if one is damaged."""
    if files.options:
        raise SourceError(f"parquet files have no option {files.options[0][0]}")
    return FileSet("parquet", tuple(_index(path) for path in files.paths))


def open_pieces(files: FileSet, file: FileIndex) -> RowGroups:
    return RowGroups(file)


class RowGroups:
    """Row groups of one file. The footer is read once."""

    def __init__(self, file: FileIndex) -> None:
        self._path = file.path
        with _open_file(file.path) as opened:
            self._metadata = opened.metadata
            self.schema: pa.Schema = opened.schema_arrow.remove_metadata()

    def load(self, piece: int, columns: Columns) -> pa.RecordBatch:
        try:
            with parquet.ParquetFile(self._path, metadata=self._metadata) as opened:
                table = opened.read_row_group(piece, columns=None if columns is None else list(columns))
        except (pa.ArrowException, OSError) as error:
            raise _damaged_file_error(self._path, error) from None
        batches = table.combine_chunks().to_batches()
        if len(batches) > 1:
            raise SourceError(
                f"row group {piece} of {self._path} holds more than 2 GB of text in one column",
                hint="write the file with smaller row groups",
            )
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _index(path: str) -> FileIndex:
    with watch_file(path) as stamp:
        with _open_file(path) as opened:
            metadata = opened.metadata
            counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        checksum = zlib.crc32(_footer(path))
    return FileIndex(path, *stamp, starts=(0, *itertools.accumulate(counts)), checksum=checksum)


def _footer(path: str) -> bytes:
    """Return the footer's bytes, with sizes and statistics of every column chunk."""
    with Path(path).open("rb") as file:
        end = file.seek(-_TAIL, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(end - length)
        return file.read(length)


def _open_file(path: str) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged_file_error(path, error) from None


def _damaged_file_error(path: str, error: Exception) -> SourceError:
    return SourceError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}")
