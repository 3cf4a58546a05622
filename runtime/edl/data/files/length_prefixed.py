"""Length-prefixed records (4 bytes, little-endian) to Arrow and back at memory speed.

The offset of a record is only known once the one before it is read, so no NumPy expression finds them; a Python loop
takes a microsecond for each. But a Parquet page of required BYTE_ARRAY values in the PLAIN encoding has exactly these
bytes (Parquet's Encodings.md), and Arrow decodes those natively. So `decode` puts the smallest Parquet file around
the records: one column, one row group, one page. The structures around them use Thrift's compact protocol (fields:
parquet.thrift).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_MAGIC = b"PAR1"
_BYTE_ARRAY = 6
_PLAIN, _RLE = 0, 3
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12  # type codes of the compact protocol


def decode(bodies: Sequence[bytes], records: int) -> pa.BinaryArray:
    """Return the `records` records of the bodies. Raises ValueError if their number differs or a length is wrong."""
    from pyarrow import parquet

    size = sum(map(len, bodies))
    if records == 0 and size == 0:
        return pa.array([], pa.binary())
    if size > 2**31 - 1024:
        raise ValueError("its records are larger than 2 GiB")
    head = _page_header(records, size)
    foot = _footer(records, len(head) + size)
    file = b"".join((_MAGIC, head, *bodies, foot, struct.pack("<I", len(foot)), _MAGIC))
    try:
        column = parquet.ParquetFile(pa.BufferReader(file)).read(use_threads=False).column(0)
    except (pa.ArrowException, OSError):
        raise ValueError(f"the lengths of its {records} records do not fit") from None
    records_array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if len(records_array) != records or _bytes(records_array) + 4 * records != size:
        raise ValueError(f"its {records} records are not all of its body")
    return records_array


def encode(records: pa.BinaryArray) -> bytes:
    """Return the records, each prefixed with its length."""
    count = len(records)
    offsets = np.frombuffer(records.buffers()[1], np.int32)[records.offset : records.offset + count + 1]
    lengths = np.diff(offsets).astype("<u4")
    values = np.frombuffer(records.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    out = np.empty(len(values) + 4 * count, np.uint8)
    places = (offsets[:-1] - offsets[0] + 4 * np.arange(count))[:, np.newaxis] + np.arange(4)
    of_values = np.ones(len(out), bool)
    of_values[places] = False
    out[places] = lengths.view(np.uint8).reshape(count, 4)
    out[of_values] = values
    return out.tobytes()


def _bytes(records: pa.BinaryArray) -> int:
    offsets = np.frombuffer(records.buffers()[1], np.int32)[records.offset :]
    return int(offsets[len(records)] - offsets[0])


# The file around them ----------------------------------------------------------------------------------------


def _page_header(records: int, size: int) -> bytes:
    """PageHeader{type, uncompressed_page_size, compressed_page_size, DataPageHeader{num_values, encodings}}."""
    levels = _field(1, _I32, _zigzag(_RLE))
    data = _field(1, _I32, _zigzag(records)) + _field(1, _I32, _zigzag(_PLAIN)) + levels + levels + b"\0"
    sizes = _field(1, _I32, _zigzag(size)) * 2
    return _field(1, _I32, _zigzag(0)) + sizes + _field(2, _STRUCT, data) + b"\0"


def _footer(records: int, size: int) -> bytes:
    """FileMetaData{version, schema, num_rows, row_groups}: a root and one required column, without compression."""
    root = _field(4, _BINARY, _text(b"schema")) + _field(1, _I32, _zigzag(1)) + b"\0"
    column = _field(1, _I32, _zigzag(_BYTE_ARRAY)) + _field(2, _I32, _zigzag(0))
    column += _field(1, _BINARY, _text(b"record")) + b"\0"
    metadata = (
        _field(1, _I32, _zigzag(_BYTE_ARRAY))
        + _field(1, _LIST, _list(_I32, _zigzag(_PLAIN)))
        + _field(1, _LIST, _list(_BINARY, _text(b"record")))
        + _field(1, _I32, _zigzag(0))  # uncompressed
        + _field(1, _I64, _zigzag(records))
        + _field(1, _I64, _zigzag(size)) * 2
        + _field(2, _I64, _zigzag(len(_MAGIC)))  # offset of the page
        + b"\0"
    )
    chunk = _field(2, _I64, _zigzag(len(_MAGIC))) + _field(1, _STRUCT, metadata) + b"\0"
    group = _field(1, _LIST, _list(_STRUCT, chunk)) + _field(1, _I64, _zigzag(size))
    group += _field(1, _I64, _zigzag(records)) + b"\0"
    return (
        _field(1, _I32, _zigzag(1))
        + _field(1, _LIST, _list(_STRUCT, root, column))
        + _field(1, _I64, _zigzag(records))
        + _field(1, _LIST, _list(_STRUCT, group))
        + b"\0"
    )


def _field(ids_on: int, kind: int, value: bytes) -> bytes:
    """Encode a field; its number exceeds the number of the field before it by `ids_on`."""
    return bytes([ids_on << 4 | kind]) + value


def _list(kind: int, *items: bytes) -> bytes:
    return bytes([len(items) << 4 | kind]) + b"".join(items)


def _text(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _zigzag(number: int) -> bytes:
    return _varint(number << 1)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
