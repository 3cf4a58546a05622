"""The tunnel's Arrow stream: record-batch messages without a schema, cut into pieces that each have a checksum.

First the size of a piece. A full piece is followed by its own checksum; the last, shorter one, which may be empty, by
that of all data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pyarrow as pa
from crc32c import crc32c

from tests.maxcompute.records import DamagedError

PIECE = 65_536


def frame(batches: Iterable[pa.RecordBatch]) -> bytes:
    data = b"".join(batch.serialize().to_pybytes() for batch in batches)
    out = [struct.pack("!I", PIECE)]
    at = 0
    while len(data) - at >= PIECE:
        piece = data[at : at + PIECE]
        out += [piece, struct.pack("!I", crc32c(piece))]
        at += PIECE
    return b"".join([*out, data[at:], struct.pack("!I", crc32c(data))])


def unframe(data: bytes, schema: pa.Schema) -> pa.Table:
    """DamagedError: a checksum is wrong, or the batches are not of this schema."""
    (size,) = struct.unpack_from("!I", data)
    pieces, at = [], 4
    while len(data) - at >= size + 4 + 4:
        piece = data[at : at + size]
        _agree(data[at + size : at + size + 4], crc32c(piece))
        pieces.append(piece)
        at += size + 4
    pieces.append(data[at:-4])
    whole = b"".join(pieces)
    _agree(data[-4:], crc32c(whole))
    try:
        with pa.ipc.open_stream(schema.serialize().to_pybytes() + whole) as reader:
            return reader.read_all()
    except pa.ArrowInvalid as error:
        raise DamagedError(str(error)) from None


def _agree(said: bytes, found: int) -> None:
    if struct.unpack("!I", said)[0] != found:
        raise DamagedError("a checksum of the Arrow stream is wrong")
