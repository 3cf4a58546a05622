"""Fields of protocol buffers, read without a library: an ONNX file is looked at before anything loads it."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FieldValue = int | memoryview


def fields(data: memoryview) -> Iterator[tuple[int, FieldValue]]:
    """Yield the number and the value of each field: a number, or the bytes of a text or a message.

    Raises ValueError if the message is damaged.
    """
    place, end = 0, len(data)
    while place < end:
        key, place = varint(data, place)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field of an unknown kind")
        if kind == VARINT:
            value, place = varint(data, place)
            yield number, value
            continue
        if kind == BYTES:
            size, place = varint(data, place)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError("a field of an unknown kind")
        if place + size > end:
            raise ValueError("the end is missing")
        yield number, data[place : place + size]
        place += size


def varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return the number that begins there, and the place behind it."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError("the end is missing")


def decode_text(value: FieldValue) -> str:
    """Return a text. Raises ValueError if the field has none."""
    if isinstance(value, int):
        raise ValueError("a number in the place of a text")
    return bytes(value).decode()


def message(value: FieldValue) -> memoryview:
    """Return the bytes of a message. Raises ValueError if the field has none."""
    if isinstance(value, int):
        raise ValueError("a number in the place of a message")
    return value
