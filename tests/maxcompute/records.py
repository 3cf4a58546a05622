"""The tunnel's record stream: fields with tags, and checksums of records and of the whole.

Written from the protocol, not with pyodps's own encoder: that one writes checksums which its own decoder in pure Python
refuses. An absent field is NULL. A checksum is of the fields' numbers and values in a fixed layout, not of the bytes
that travel.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from crc32c import crc32c

from tests.maxcompute.column_types import Column, ColumnType

_END_RECORD = 33553408
_METRICS = 33554176
_COUNT = 33554430
_CHECKSUM = 33554431

_EPOCH_DAY = dt.date(1970, 1, 1)
_WHOLE = frozenset({"bigint", "int", "smallint", "tinyint"})
_TEXT = frozenset({"string", "char", "varchar", "json", "binary", "decimal"})

Summed = tuple[bytes, bytes]  # what travels, and what the checksum is of


class DamagedError(ValueError):
    """A stream that does not fit its checksums, or is none."""


def encode(batches: Iterable[pa.RecordBatch], columns: Sequence[Column]) -> bytes:
    """The batches, which have these columns, as one stream."""
    out, total, count = bytearray(), 0, 0
    encoders = [(i, _wire(c.type), _encoder(c.type)) for i, c in enumerate(columns, 1)]
    for batch in batches:
        for row in zip(*(_values(column) for column in batch.columns), strict=True):
            record = 0
            for (number, wire, encoder), value in zip(encoders, row, strict=True):
                if value is None:
                    continue
                travels, summed = encoder(value)
                out += _varint(number << 3 | wire) + travels
                record = crc32c(struct.pack("<i", number) + summed, record)
            out += _varint(_END_RECORD << 3) + _varint(record)
            total = crc32c(struct.pack("<I", record), total)
            count += 1
    out += _varint(_COUNT << 3) + _varint(_zigzag(count))
    out += _varint(_CHECKSUM << 3) + _varint(total)
    return bytes(out)


def decode(data: bytes, columns: Sequence[Column]) -> pa.Table:
    """The rows of a stream. DamagedError: a checksum or the number of records is wrong, or it ends too soon."""
    stream = _Stream(data)
    readers = {i: _decoder(c.type) for i, c in enumerate(columns, 1)}
    rows: list[list[Any]] = []
    row, record, total = [None] * len(columns), 0, 0
    while True:
        number = stream.varint() >> 3
        if number == _END_RECORD:
            _agree(stream.varint(), record)
            total = crc32c(struct.pack("<I", record), total)
            rows.append(row)
            row, record = [None] * len(columns), 0
        elif number == _COUNT:
            _agree(_unzigzag(stream.varint()), len(rows))
        elif number == _CHECKSUM:
            _agree(stream.varint() & 0xFFFFFFFF, total)
            break
        elif number == _METRICS:
            stream.bytes()
        else:
            row[number - 1], summed = readers[number](stream)
            record = crc32c(struct.pack("<i", number) + summed, record)
    arrays = [
        pa.array([_arrow_value(row[i], c.type) for row in rows], c.type.arrow) for i, c in enumerate(columns)
    ]
    return pa.table(arrays, [column.name for column in columns])


def _agree(said: int, found: int) -> None:
    if said & 0xFFFFFFFF != found:
        raise DamagedError(f"the stream says {said}, and it is {found}")


# Values to bytes ---------------------------------------------------------------------------------------------


def _wire(kind: ColumnType) -> int:
    match kind.name:
        case "double":
            return 1
        case "float":
            return 5
        case name if name in _TEXT or name.startswith("timestamp") or kind.inner:
            return 2
    return 0


def _encoder(kind: ColumnType) -> Callable[[Any], Summed]:
    match kind.name:
        case "double" | "float":
            layout = "<d" if kind.name == "double" else "<f"
            return lambda value: (struct.pack(layout, value),) * 2
        case "boolean":
            return lambda value: (bytes([value]),) * 2
        case "timestamp" | "timestamp_ntz":
            return _encode_nanoseconds
        case "array":
            return _array_encoder(kind.inner[0])
        case "map":
            return _map_encoder(kind)
        case "struct":
            return _struct_encoder(kind)
        case name if name in _TEXT:
            return _encode_text
    return _encode_whole


def _encode_whole(value: int) -> Summed:
    return _varint(_zigzag(value)), struct.pack("<q", value)


def _encode_text(value: object) -> Summed:
    data = value if isinstance(value, bytes) else str(value).encode()
    return _varint(len(data)) + data, data


def _encode_nanoseconds(value: int) -> Summed:
    seconds, nanos = divmod(value, 10**9)
    return _varint(_zigzag(seconds)) + _varint(_zigzag(nanos)), struct.pack("<qi", seconds, nanos)


def _array_encoder(kind: ColumnType) -> Callable[[Any], Summed]:
    flagged = _flagged(_encoder(kind))

    def encode_array(values: list[Any]) -> Summed:
        parts = [flagged(value) for value in values]
        travels = _varint(len(parts)) + b"".join(part for part, _ in parts)
        return travels, b"".join(summed for _, summed in parts)

    return encode_array


def _map_encoder(kind: ColumnType) -> Callable[[Any], Summed]:
    keys, values = (_array_encoder(inner) for inner in kind.inner)

    def encode_map(pairs: list[tuple[Any, Any]]) -> Summed:
        first, second = keys([key for key, _ in pairs]), values([value for _, value in pairs])
        return first[0] + second[0], first[1] + second[1]

    return encode_map


def _struct_encoder(kind: ColumnType) -> Callable[[Any], Summed]:
    parts = [(field, _flagged(_encoder(inner))) for field, inner in zip(kind.fields, kind.inner, strict=True)]

    def encode_struct(value: dict[str, Any]) -> Summed:
        encoded = [encoder(value[field]) for field, encoder in parts]
        return b"".join(part for part, _ in encoded), b"".join(summed for _, summed in encoded)

    return encode_struct


def _flagged(encoder: Callable[[Any], Summed]) -> Callable[[Any], Summed]:
    """Inside of nested values a byte says whether a value is NULL."""

    def encode_flagged(value: Any) -> Summed:
        if value is None:
            return b"\x01", b""
        travels, summed = encoder(value)
        return b"\x00" + travels, summed

    return encode_flagged


# Bytes to values ---------------------------------------------------------------------------------------------


class _Stream:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data):
                raise DamagedError("the stream ends in the midst of a number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise DamagedError("the stream ends in the midst of a value")
        self.at += count
        return self.data[self.at - count : self.at]

    def bytes(self) -> bytes:
        return self.take(self.varint())


def _decoder(kind: ColumnType) -> Callable[[_Stream], tuple[Any, bytes]]:
    match kind.name:
        case "double" | "float":
            layout, size = ("<d", 8) if kind.name == "double" else ("<f", 4)
            return lambda stream: (struct.unpack(layout, data := stream.take(size))[0], data)
        case "boolean":
            return lambda stream: (bool(number := stream.varint()), bytes([number]))
        case "timestamp" | "timestamp_ntz":
            return _decode_nanoseconds
        case "array":
            return _array_decoder(kind.inner[0])
        case "map":
            return _map_decoder(kind)
        case "struct":
            return _struct_decoder(kind)
        case name if name in _TEXT:
            return lambda stream: (data := stream.bytes(), data)
    return _decode_whole


def _decode_whole(stream: _Stream) -> tuple[int, bytes]:
    value = _unzigzag(stream.varint())
    return value, struct.pack("<q", value)


def _decode_nanoseconds(stream: _Stream) -> tuple[int, bytes]:
    seconds, nanos = _unzigzag(stream.varint()), _unzigzag(stream.varint())
    return seconds * 10**9 + nanos, struct.pack("<qi", seconds, nanos)


def _array_decoder(kind: ColumnType) -> Callable[[_Stream], tuple[Any, bytes]]:
    decoder = _decoder(kind)

    def decode_array(stream: _Stream) -> tuple[list[Any], bytes]:
        values, summed = [], b""
        for _ in range(stream.varint()):
            value, part = (None, b"") if stream.take(1) == b"\x01" else decoder(stream)
            values.append(value)
            summed += part
        return values, summed

    return decode_array


def _map_decoder(kind: ColumnType) -> Callable[[_Stream], tuple[Any, bytes]]:
    keys, values = (_array_decoder(inner) for inner in kind.inner)

    def decode_map(stream: _Stream) -> tuple[Any, bytes]:
        (first, summed), (second, more) = keys(stream), values(stream)
        return list(zip(first, second, strict=True)), summed + more

    return decode_map


def _struct_decoder(kind: ColumnType) -> Callable[[_Stream], tuple[Any, bytes]]:
    parts = list(zip(kind.fields, map(_decoder, kind.inner), strict=True))

    def decode_struct(stream: _Stream) -> tuple[dict[str, Any], bytes]:
        found, summed = {}, b""
        for field, decoder in parts:
            found[field], part = (None, b"") if stream.take(1) == b"\x01" else decoder(stream)
            summed += part
        return found, summed

    return decode_struct


# Arrow -------------------------------------------------------------------------------------------------------


def _values(column: pa.Array) -> Iterator[Any]:
    """Dates as days and moments as their number of units, at any depth."""
    return iter(_numbered(column).to_pylist())


def _numbered(column: pa.Array) -> pa.Array:
    kind = column.type
    mask = column.is_null() if column.null_count else None
    if pa.types.is_date32(kind):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    if pa.types.is_struct(kind):
        inner = [_numbered(column.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inner, names=[field.name for field in kind], mask=mask)
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(
            column.offsets, _numbered(column.keys), _numbered(column.items), mask=mask
        )
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(column.offsets, _numbered(column.values), mask=mask)
    return column


def _arrow_value(value: Any, kind: ColumnType) -> Any:
    """A decoded value as pa.array takes it."""
    if value is None:
        return None
    match kind.name:
        case "decimal":
            return Decimal(value.decode())
        case "array":
            return [_arrow_value(inner, kind.inner[0]) for inner in value]
        case "map":
            key, item = kind.inner
            return [(_arrow_value(k, key), _arrow_value(v, item)) for k, v in value]
        case "struct":
            return {f: _arrow_value(value[f], k) for f, k in zip(kind.fields, kind.inner, strict=True)}
        case name if name in _TEXT and name != "binary":
            return value.decode()
        case "date":
            return _EPOCH_DAY + dt.timedelta(days=value)
    return value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
