"""RecordIO: files of binary records in chunks that are checksummed and compressed separately.

A file is a sequence of chunks; a chunk is a header of 20 bytes and a body, all numbers little-endian:

    magic            4   0x01020304
    checksum         4   CRC-32 (IEEE) of the compressed body
    compressor       4   0 none, 1 framed snappy, 2 gzip
    compressed size  4   bytes of the stored body
    records          4   number of records in the body
    body                 for each record its length in 4 bytes, and its bytes

This is the format of ElasticDL's tools. Reading trusts nothing: damage is a SourceError that names the file, the
chunk and its offset. Records are an Arrow array of binary values; there is no Python loop over them.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa

from edl.data.files.length_prefixed import decode, encode
from edl.errors import SourceError
from edl.installation import install_extras

Compressor = Literal["none", "snappy", "gzip"]

MAGIC = 0x01020304
MOST_BODY_BYTES = 1 << 30  # limit of a decompressed chunk
CHUNK_BYTES = 1 << 20  # size of a written chunk before compression

_HEADER = struct.Struct("<5I")
_CODES: Mapping[str, int] = {"none": 0, "snappy": 1, "gzip": 2}


class Chunk(NamedTuple):
    """Header of a chunk. `offset` is the header's, in bytes; `size` is the stored body's."""

    offset: int
    checksum: int
    compressor: int
    size: int
    records: int

    @property
    def body(self) -> int:
        """Offset of the body."""
        return self.offset + _HEADER.size

    @property
    def end(self) -> int:
        return self.body + self.size


def chunks(file: IO[bytes], path: Path, start: int = 0, end: int | None = None) -> Iterator[Chunk]:
    """Yield the chunks from byte `start` to byte `end` by their headers, skipping bodies.

    `end` None is the end of the file. Raises SourceError if a header is damaged or truncated.
    """
    size = os.fstat(file.fileno()).st_size
    offset = start
    while offset < (size if end is None else end):
        file.seek(offset)
        chunk = _chunk(file.read(_HEADER.size), offset, size, path)
        yield chunk
        offset = chunk.end


def read_chunks(file: IO[bytes], selected: Sequence[Chunk], path: Path) -> pa.BinaryArray:
    """Return the records of these chunks.

    Raises SourceError if a body is damaged or its compressor is not installed.
    """
    bodies = []
    for chunk in selected:
        file.seek(chunk.body)
        bodies.append(_body(file.read(chunk.size), chunk, path))
    records = sum(chunk.records for chunk in selected)
    try:
        return decode(bodies, records)
    except ValueError:
        for chunk, body in zip(selected, bodies, strict=True):
            _check_records(chunk, body, path)
        raise


def read_records(path: Path | str) -> Iterator[bytes]:
    """Yield all records of a file, with one chunk in memory at a time."""
    path = Path(path)
    with _open_file(path) as file:
        for chunk in chunks(file, path):
            yield from read_chunks(file, [chunk], path).to_pylist()


class RecordWriter:
    """Writer of one file. The file appears once the writer is closed without an error.

    with RecordWriter(path, compressor="gzip") as writer:
        writer.write(b"…")
        writer.write_many([b"…", b"…"])         # or an Arrow array of binary values
    """

    def __init__(
        self, path: Path | str, *, compressor: Compressor = "none", chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        """Open a partial file. A chunk holds `chunk_bytes` of records, or one larger record.

        Raises SourceError if the compressor is unknown or not installed.
        """
        if compressor not in _CODES:
            raise SourceError(f"there is no compressor {compressor}", hint=f"known: {', '.join(_CODES)}")
        self._code = _CODES[compressor]
        self._compress = _COMPRESS[self._code]
        self._compress(b"")  # fail early if the package is missing
        self._path = Path(path)
        self._partial = self._path.with_name(f".{self._path.name}.{os.getpid()}.partial")
        self._chunk_bytes = chunk_bytes
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._file = self._partial.open("wb")

    def write(self, record: bytes) -> None:
        self._waiting.append(record)
        self._bytes += len(record) + 4
        if self._bytes >= self._chunk_bytes:
            self._flush()

    def write_many(self, records: Iterable[bytes] | pa.BinaryArray) -> None:
        if not isinstance(records, pa.Array):
            for record in records:
                self.write(record)
            return
        self._flush()
        for part in _parts(records, self._chunk_bytes):
            self._write_chunk(part)

    def close(self) -> None:
        """Write buffered records and rename the file to its final name."""
        self._flush()
        self._file.close()
        self._partial.replace(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._waiting:
            self._write_chunk(pa.array(self._waiting, pa.binary()))
            self._waiting, self._bytes = [], 0

    def _write_chunk(self, records: pa.BinaryArray) -> None:
        body = self._compress(encode(records))
        header = _HEADER.pack(MAGIC, zlib.crc32(body), self._code, len(body), len(records))
        self._file.write(header + body)


def _parts(records: pa.BinaryArray, size: int) -> Iterator[pa.BinaryArray]:
    """Split the records into runs of about `size` bytes."""
    records = records.cast(pa.binary())
    offsets = np.frombuffer(records.buffers()[1], np.int32)[
        records.offset : records.offset + len(records) + 1
    ]
    ends = offsets[1:] - offsets[0]
    first = 0
    while first < len(records):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield records.slice(first, last - first)
        first = last


# Headers and bodies ------------------------------------------------------------------------------------------


def _chunk(header: bytes, offset: int, size: int, path: Path) -> Chunk:
    if len(header) < _HEADER.size:
        raise _damaged_record_error(path, offset, f"its header is truncated after {len(header)} bytes")
    magic, checksum, compressor, length, records = _HEADER.unpack(header)
    if magic != MAGIC:
        what = f"it begins with 0x{magic:08x} and not with 0x{MAGIC:08x}"
        raise _damaged_record_error(path, offset, what)
    chunk = Chunk(offset, checksum, compressor, length, records)
    if compressor not in _DECOMPRESS:
        raise _damaged_record_error(
            path, offset, f"it names an unknown compressor, {compressor}; known are 0, 1 and 2"
        )
    if chunk.end > size:
        raise _damaged_record_error(
            path, offset, f"its body ends {chunk.end - size} bytes after the file's end"
        )
    return chunk


def _body(stored: bytes, chunk: Chunk, path: Path) -> bytes:
    if len(stored) < chunk.size or zlib.crc32(stored) != chunk.checksum:
        raise _damaged_record_error(path, chunk.offset, "its body does not have the checksum of its header")
    try:
        body = _DECOMPRESS[chunk.compressor](stored)
    except SourceError:
        raise
    except Exception as error:  # cramjam's errors derive from Exception alone
        raise _damaged_record_error(path, chunk.offset, f"it cannot be decompressed: {error}") from None
    if len(body) > MOST_BODY_BYTES:
        raise _damaged_record_error(path, chunk.offset, f"it is larger than {MOST_BODY_BYTES >> 20} MiB")
    return body


def _check_records(chunk: Chunk, body: bytes, path: Path) -> None:
    try:
        decode([body], chunk.records)
    except ValueError as error:
        raise _damaged_record_error(path, chunk.offset, str(error)) from None


def _damaged_record_error(path: Path, offset: int, what: str) -> SourceError:
    return SourceError(
        f"{path} is damaged in chunk {_number(path, offset)}, at byte {offset:,}: {what}",
        hint="write the file again; an interrupted copy ends in the middle of a chunk",
    )


def _number(path: Path, offset: int) -> int:
    """Count the chunks before the one at `offset`."""
    number = place = 0
    with path.open("rb") as file:
        while place < offset:
            file.seek(place)
            place += _HEADER.size + _HEADER.unpack(file.read(_HEADER.size))[3]
            number += 1
    return number


def _open_file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None


# Compressors -------------------------------------------------------------------------------------------------


def _snappy() -> Any:
    try:
        from cramjam import snappy
    except ModuleNotFoundError:
        raise SourceError(
            "snappy is not installed, and the records are compressed with it",
            hint=install_extras("recordio"),
        ) from None
    return snappy


def _snap(data: bytes) -> bytes:
    return bytes(_snappy().compress(data))


def _unsnap(data: bytes) -> bytes:
    return bytes(_snappy().decompress(data))


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # equal records give an equal file


def _gunzip(data: bytes) -> bytes:
    """Decompress one gzip member, up to the size limit of a body."""
    stream = zlib.decompressobj(wbits=31)
    body = stream.decompress(data, MOST_BODY_BYTES + 1)
    if len(body) <= MOST_BODY_BYTES and (not stream.eof or stream.unused_data):
        raise ValueError("it is not one complete gzip stream")
    return body


_Function = Callable[[bytes], bytes]
_COMPRESS: Mapping[int, _Function] = {0: bytes, 1: _snap, 2: _gzip}
_DECOMPRESS: Mapping[int, _Function] = {0: bytes, 1: _unsnap, 2: _gunzip}
