"""Stable 64-bit hash of text, computed for a whole column at once.

The hash of the bytes b[0], …, b[n-1] is

    mix(n + sum of mix(256 * i + b[i] + 1) over i)    modulo 2**64

where `mix` is the output function of SplitMix64. The sum is independent of order but its terms contain their
position, so it can be computed over a column's one data buffer in a few passes, in windows that fit the cache. The
definition is part of every stored model: it must never change (golden values are in the tests).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

Hashes = npt.NDArray[np.uint64]

_TABLE_POSITIONS = 256  # bytes beyond this position are mixed one by one, not looked up
_WINDOW = 1 << 16  # bytes hashed at a time: the work arrays (8 bytes each) stay in the second-level cache


def mix(values: Hashes) -> Hashes:
    """Return SplitMix64's output for the states `values`: a bijection of 64-bit integers that spreads every bit."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def hash_texts(array: pa.Array) -> Hashes:
    """Return the hash of each value of a (large_)string or (large_)binary array, shape (n,); arbitrary for NULL."""
    offsets, data = _buffers(array)
    sums = np.zeros(len(array), dtype=np.uint64)
    for low in range(int(offsets[0]), int(offsets[-1]), _WINDOW):
        high = min(low + _WINDOW, int(offsets[-1]))
        first = int(np.searchsorted(offsets, low, side="right")) - 1
        last = int(np.searchsorted(offsets, high, side="left"))
        cuts = np.clip(offsets[first : last + 1], low, high)
        position = np.arange(low, high) - np.repeat(offsets[first:last], np.diff(cuts))
        running = np.zeros(high - low + 1, dtype=np.uint64)
        np.cumsum(_terms(position, data[low:high]), out=running[1:])
        sums[first:last] += np.diff(running[cuts - low])
    return mix(sums + np.diff(offsets).astype(np.uint64))


def combine(columns: Sequence[Hashes]) -> Hashes:
    """Combine several columns' hashes row by row; the result depends on the order of the columns."""
    combined = np.zeros_like(columns[0])
    for column in columns:
        combined = mix(combined + column)
    return combined


def bucket(hashes: Hashes, size: int) -> npt.NDArray[np.int64]:
    """Return the hashes modulo `size`."""
    return (hashes % np.uint64(size)).astype(np.int64)


def _buffers(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return offsets of the n values, shape (n + 1,), into the bytes; only the own part of a sliced array."""
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return np.zeros(len(array) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    all_offsets = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    slice_offsets = all_offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return slice_offsets, np.frombuffer(data or b"", dtype=np.uint8)


def _terms(position: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Hashes:
    keys = position
    keys <<= 8
    keys += data
    table = _table()
    if int(keys.max()) < len(table):
        return table[keys]
    return mix(keys.astype(np.uint64) + np.uint64(1))


@functools.cache
def _table() -> Hashes:
    return mix(np.arange(1, _TABLE_POSITIONS * 256 + 1, dtype=np.uint64))
