"""Compiled operations on the arrays of a row table. Imported when the first table is made, because numba loads
slowly.

The index is an open-addressing hash table with linear probing, int64 (2^k, 2): an id and its row number + 1, or 0
for an empty slot; at most 3/4 of the slots are used. Ids are hashed by the finalizer of SplitMix64 (Steele, Lea,
Flood 2014). Arrays are float32 unless stated otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edl.embeddings.numba_cache import jit

Array = Any

_30, _27, _31, _32, _40 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32), np.uint64(40)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_UNIT = 1.0 / (1 << 24)  # for 24 random bits, the precision of float32


@jit
def mix(value: Any) -> Any:
    """Return a bijective hash of uint64 that spreads neighbouring numbers over all bits."""
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@jit
def find(index: Array, ids: Array, numbers: Array) -> int:
    """Write the row number of each id into `numbers`, -1 if it has none; return the number of missing ids."""
    mask = np.uint64(len(index) - 1)
    missing = 0
    for i in range(len(ids)):
        place = mix(np.uint64(ids[i])) & mask
        while index[place, 1] != 0 and index[place, 0] != ids[i]:
            place = (place + _ONE) & mask
        numbers[i] = index[place, 1] - 1
        missing += numbers[i] < 0
    return missing


@jit
def add(index: Array, row_ids: Array, count: int, ids: Array, numbers: Array) -> int:
    """Assign the next row to each id with the number -1: append it to `row_ids` from `count` on.

    Return the new count.
    """
    mask = np.uint64(len(index) - 1)
    for i in range(len(ids)):
        if numbers[i] != -1:
            continue
        place = mix(np.uint64(ids[i])) & mask
        while index[place, 1] != 0 and index[place, 0] != ids[i]:
            place = (place + _ONE) & mask
        if index[place, 1] == 0:
            row_ids[count] = ids[i]
            count += 1
            index[place, 0] = ids[i]
            index[place, 1] = count
        numbers[i] = index[place, 1] - 1
    return count


@jit
def admit(cells: Array, ids: Array, numbers: Array, least: int) -> int:
    """Count each id with the number -1 in `cells`, uint8 (2^k,), and make the number -2 if its count is below `least`.

    An id has four cells, found by double hashing; the least of them is its count, and only those equal to it grow.
    Return how many cells have become more than 0.
    """
    mask = np.uint64(len(cells) - 1)
    filled = 0
    for i in range(len(ids)):
        if numbers[i] != -1:
            continue
        start = mix(np.uint64(ids[i]) ^ _GOLDEN)
        stride = (start >> _32) | _ONE
        count = cells[start & mask]
        for k in range(1, 4):
            count = min(count, cells[(start + np.uint64(k) * stride) & mask])
        if count + 1 < least:
            numbers[i] = -2
        if count < least:
            for k in range(4):
                place = (start + np.uint64(k) * stride) & mask
                if cells[place] == count:
                    filled += count == 0
                    cells[place] = count + 1
    return filled


@jit
def remove(index: Array, row_ids: Array, data: Array, used: Array, count: int, numbers: Array) -> int:
    """Remove the rows with these ascending numbers; the last rows take their places. Return the new count.

    Deletion from the index shifts later entries back (Knuth, The Art of Computer Programming 6.4, algorithm R).
    """
    mask = np.uint64(len(index) - 1)
    for i in range(len(numbers) - 1, -1, -1):
        number = numbers[i]
        hole = mix(np.uint64(row_ids[number])) & mask
        while index[hole, 1] != number + 1:
            hole = (hole + _ONE) & mask
        place = (hole + _ONE) & mask
        while index[place, 1] != 0:
            home = mix(np.uint64(index[place, 0])) & mask
            if ((place - home) & mask) >= ((place - hole) & mask):
                index[hole, 0], index[hole, 1] = index[place, 0], index[place, 1]
                hole = place
            place = (place + _ONE) & mask
        index[hole, 0], index[hole, 1] = 0, 0
        count -= 1
        if number == count:
            continue
        place = mix(np.uint64(row_ids[count])) & mask
        while index[place, 1] != count + 1:
            place = (place + _ONE) & mask
        index[place, 1] = number + 1
        row_ids[number], used[number] = row_ids[count], used[count]
        for j in range(data.shape[1]):
            data[number, j] = data[count, j]
    return count


@jit
def fill_index(index: Array, row_ids: Array, count: int) -> None:
    """Insert the distinct ids known[:count] into an empty index."""
    mask = np.uint64(len(index) - 1)
    for number in range(count):
        place = mix(np.uint64(row_ids[number])) & mask
        while index[place, 1] != 0:
            place = (place + _ONE) & mask
        index[place, 0] = row_ids[number]
        index[place, 1] = number + 1


@jit
def first_uniform(row: Array, row_id: int, key: Any, scale: float) -> None:
    """Draw from the uniform distribution in [-scale, scale): number j is a hash of key, id and j."""
    start = mix(key + mix(np.uint64(row_id)))
    for j in range(len(row)):
        bits = mix(start + np.uint64(j + 1) * _GOLDEN) >> _40
        row[j] = (2.0 * _UNIT * bits - 1.0) * scale


@jit
def first_normal(row: Array, row_id: int, key: Any, scale: float) -> None:
    """Draw from the normal distribution with deviation `scale`, by Box and Muller from two hashes per number."""
    start = mix(key + mix(np.uint64(row_id)))
    for j in range(len(row)):
        one = mix(start + np.uint64(2 * j + 1) * _GOLDEN) >> _40
        other = mix(start + np.uint64(2 * j + 2) * _GOLDEN) >> _40
        radius = math.sqrt(-2.0 * math.log((one + 1.0) * _UNIT))
        row[j] = scale * radius * math.cos(2.0 * math.pi * _UNIT * other)


@jit
def first_row(row: Array, row_id: int, kind: int, key: Any, scale: float) -> None:
    """Write the initial values of a row. `kind` is 0 for zeros, 1 for uniform, 2 for normal."""
    if kind == 1:
        first_uniform(row, row_id, key, scale)
    elif kind == 2:
        first_normal(row, row_id, key, scale)
    else:
        row[:] = 0.0


@jit
def first_rows(data: Array, dim: int, row_ids: Array, start: int, end: int, kind: int, key: Any, scale: float,
               slots: Array) -> None:  # fmt: skip
    """Make the rows [start, end) of the table: initial values, then the initial value of each slot."""
    for number in range(start, end):
        first_row(data[number, :dim], row_ids[number], kind, key, scale)
        for slot in range(len(slots)):
            data[number, (slot + 1) * dim : (slot + 2) * dim] = slots[slot]


@jit
def gather(data: Array, numbers: Array, ids: Array, kind: int, key: Any, scale: float, out: Array) -> None:
    """Copy the rows into `out`, (n, dim), or the initial values of an id with the number -1."""
    dim = out.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        if number < 0:
            first_row(out[i], ids[i], kind, key, scale)
        else:
            for j in range(dim):
                out[i, j] = data[number, j]


@jit
def find_distinct(ids: Array, places: Array, unique: Array) -> int:
    """Write the distinct ids into `unique` in order of appearance, and each id's position there into `places`.

    Return the number of distinct ids.
    """
    size = 16
    while size < 2 * len(ids):
        size *= 2
    index = np.zeros(size, np.int32)
    mask = np.uint64(size - 1)
    count = 0
    for i in range(len(ids)):
        place = mix(np.uint64(ids[i])) & mask
        while index[place] != 0 and unique[index[place] - 1] != ids[i]:
            place = (place + _ONE) & mask
        if index[place] == 0:
            unique[count] = ids[i]
            count += 1
            index[place] = count
        places[i] = index[place] - 1
    return count


@jit
def sum_gradients(gradients: Array, places: Array, out: Array) -> None:
    """Add up the gradients of each position, in their order, into `out`, zeros at first."""
    for i in range(len(places)):
        for j in range(out.shape[1]):
            out[places[i], j] += gradients[i, j]
