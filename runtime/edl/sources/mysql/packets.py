"""Packets of rows as MySQL sends them: many at a time, and the bytes of a column as one array of Arrow.

A packet has three bytes of its size, one of its number, and the values of a row. A value has its size before it, in one
to nine bytes; NULL is a byte of its own. The sizes of one column are looked up in all rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

HEAD = 4  # bytes before those of the row
_LEAST_MARK = 0xFE  # of what is no row, or one that is too large for a packet: its first byte
_NULL = 0xFB
_LONG_SIZES = {0xFC: 2, 0xFD: 3, 0xFE: 8}  # bytes of the size behind such a byte
_SHORT = 48  # bytes of the values of a column on average; longer ones are copied one by one


def find_rows(received: memoryview, number: int, most: int) -> list[int]:
    """Return where the packets of rows end that are there completely, at most so many, with 0 before them.

    number: of the first packet; others end the search.
    """
    ends, at, size = [0], 0, len(received)
    while at + HEAD < size and len(ends) <= most:
        end = at + HEAD + (received[at] | received[at + 1] << 8 | received[at + 2] << 16)
        if end > size or received[at + 3] != number or received[at + HEAD] >= _LEAST_MARK:
            break
        ends.append(end)
        at, number = end, number + 1 & 0xFF
    return ends


def split_columns(rows: bytes, starts: Sequence[int], width: int) -> list[pa.Array]:
    """Return the values of each column as they were sent. starts: where the values of each row begin."""
    octets = np.frombuffer(rows, np.uint8)
    at = np.array(starts, np.int64)
    columns = []
    for _ in range(width):
        sizes, missing = _read_sizes(octets, at)
        columns.append(_copy_values(rows, octets, at, sizes, missing))
        at += sizes
    return columns


def _read_sizes(octets: Octets, at: Ints) -> tuple[Ints, npt.NDArray[np.bool_] | None]:
    """Return the sizes of the values, and which are NULL if any is. `at` moves on to the values."""
    first = octets[at]
    at += 1
    sizes = first.astype(np.int64)
    if not len(first) or first.max() < _NULL:
        return sizes, None
    for mark, length in _LONG_SIZES.items():
        long = np.flatnonzero(first == mark)
        places = at[long]
        sizes[long] = sum(octets[places + byte].astype(np.int64) << 8 * byte for byte in range(length))
        at[long] += length
    missing = first == _NULL
    sizes[missing] = 0
    return sizes, missing


def _copy_values(
    rows: bytes, octets: Octets, at: Ints, sizes: Ints, missing: npt.NDArray[np.bool_] | None
) -> pa.Array:
    offsets = np.zeros(len(at) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    total = int(offsets[-1])
    if total > _SHORT * len(at):
        parts = zip(at.tolist(), (at + sizes).tolist(), strict=True)
        values = pa.py_buffer(b"".join([rows[start:end] for start, end in parts]))
    else:
        values = pa.py_buffer(octets[np.repeat(at - offsets[:-1], sizes) + np.arange(total)])
    present = None
    if missing is not None:
        present = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(at), [present, pa.py_buffer(offsets), values])
