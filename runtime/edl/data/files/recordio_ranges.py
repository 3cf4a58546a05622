"""RecordIO by row range: a piece is several chunks, a row is a record in the only column, `record`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from edl.data.files.file_ranges import Columns, FileIndex, FileSet, watch_file
from edl.data.paths import DataFiles
from edl.data.recordio import Chunk, chunks, read_chunks
from edl.errors import SourceError

SCHEMA = pa.schema([("record", pa.binary())])
PIECE_ROWS = 4096
PIECE_BYTES = 1 << 20  # stored size; a larger chunk is a piece of its own


def index(files: DataFiles, note: Callable[[str], None]) -> FileSet:
    """Index the files by the headers of their chunks. Raises SourceError if one is damaged."""
    if files.options:
        raise SourceError(f"recordio files have no option {files.options[0][0]}")
    return FileSet("recordio", tuple(_index(path) for path in files.paths))


def open_pieces(files: FileSet, file: FileIndex) -> RecordPieces:
    return RecordPieces(file)


class RecordPieces:
    """Pieces of one file."""

    schema = SCHEMA

    def __init__(self, file: FileIndex) -> None:
        self._file = file

    def load(self, piece: int, columns: Columns) -> pa.RecordBatch:
        path = Path(self._file.path)
        first, last = self._file.offsets[piece : piece + 2]
        with path.open("rb") as file:
            piece_chunks = list(chunks(file, path, first, last))
            records = read_chunks(file, piece_chunks, path)
        return pa.RecordBatch.from_arrays([records], schema=SCHEMA)


def _index(path: str) -> FileIndex:
    starts, offsets, checksum = [0], [0], 0
    with watch_file(path) as stamp, Path(path).open("rb") as file:
        for group in _group_chunks(chunks(file, Path(path))):
            starts.append(starts[-1] + sum(chunk.records for chunk in group))
            offsets.append(group[-1].end)
            for chunk in group:
                checksum = zlib.crc32(chunk.checksum.to_bytes(4, "little"), checksum)
    return FileIndex(path, *stamp, starts=tuple(starts), offsets=tuple(offsets), checksum=checksum)


def _group_chunks(all_chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Group consecutive chunks into runs that are large enough for a piece."""
    group: list[Chunk] = []
    for chunk in all_chunks:
        group.append(chunk)
        if (
            sum(member.records for member in group) >= PIECE_ROWS
            or chunk.end - group[0].offset >= PIECE_BYTES
        ):
            yield group
            group = []
    if group:
        yield group
