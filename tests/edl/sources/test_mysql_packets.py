"""Packets of rows: found in what was received, and split into columns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from edl.sources.mysql.packets import HEAD, find_rows, split_columns

Row = Sequence[bytes | None]


def encode_value(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    size = len(value)
    if size < 0xFB:
        return bytes([size]) + value
    for mark, length in ((b"\xfc", 2), (b"\xfd", 3), (b"\xfe", 8)):
        if size < 1 << 8 * length:
            return mark + size.to_bytes(length, "little") + value
    raise ValueError(size)


def encode_packet(content: bytes, number: int) -> bytes:
    return len(content).to_bytes(3, "little") + bytes([number % 256]) + content


def encode_rows(rows: Sequence[Row], number: int) -> bytes:
    return b"".join(
        encode_packet(b"".join(map(encode_value, row)), number + nth) for nth, row in enumerate(rows)
    )


@pytest.mark.parametrize(
    "rows",
    [
        [[b"1", b"one"], [b"22", None], [b"", b"three"], [None, None]],
        [[b"a" * 250, b"b" * 251], [b"c" * 65_535, b"d" * 65_536], [None, b"e"]],
        [[b"long " * 30, b"x"]] * 300,
    ],
)
def test_the_values_of_each_column_are_those_that_were_sent(rows: Sequence[Row]) -> None:
    sent = encode_rows(rows, 250)
    ends = find_rows(memoryview(sent), 250, 1000)
    assert ends[-1] == len(sent)
    columns = split_columns(sent, [end + HEAD for end in ends[:-1]], len(rows[0]))
    assert [column.to_pylist() for column in columns] == [list(column) for column in zip(*rows, strict=True)]
    for column in columns:
        column.validate(full=True)


def test_rows_are_found_up_to_what_is_none() -> None:
    rows: list[Row] = [[b"1"], [b"2"], [b"3"]]
    sent = encode_rows(rows, 7)
    size = len(sent) // 3
    end = encode_packet(b"\xfe\x00\x00\x02\x00", 10)
    assert find_rows(memoryview(sent), 7, 2) == [0, size, 2 * size]
    assert find_rows(memoryview(sent[:-1]), 7, 9) == [0, size, 2 * size]
    assert find_rows(memoryview(sent + end), 7, 9) == [0, size, 2 * size, 3 * size]
    assert find_rows(memoryview(sent + encode_rows(rows, 9)), 7, 9) == [0, size, 2 * size, 3 * size]
    assert find_rows(memoryview(b""), 7, 9) == [0]
