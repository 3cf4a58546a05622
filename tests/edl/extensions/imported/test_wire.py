"""Fields of protocol buffers without a library."""

from __future__ import annotations

import pytest

from edl.extensions.imported.wire import decode_text, fields, message


def test_numbers_and_texts_are_read_in_order() -> None:
    data = b"\x08\x96\x01" + b"\x12\x02hi" + b"\x1d\x00\x00\x80\x3f" + b"\x21" + bytes(8)
    read = list(fields(memoryview(data)))
    assert [number for number, _ in read] == [1, 2, 3, 4]
    assert read[0][1] == 150
    assert decode_text(read[1][1]) == "hi"


@pytest.mark.parametrize(
    "data", [b"\x12\x05hi", b"\x08", b"\x08\x80", b"\x1d\x00", b"\x0b", b"\x00\x01", b"\xff" * 12]
)
def test_a_damaged_message_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"missing|unknown"):
        list(fields(memoryview(data)))


def test_a_number_is_neither_text_nor_message() -> None:
    for read in (decode_text, message):
        with pytest.raises(ValueError, match="a number in the place"):
            read(3)
