"""Screening of columns: the columns of a wide table by which the label differs most, for a search without time for all.

The measure of a column is the share of the label's variance between its values: between bins of numbers, and between
categories. A share that as many groups of rows have by chance is 0.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from pyarrow import types

from edl.arrays import Array
from edl.errors import SemanticError
from edl.features.arrays import Floats, Ints, is_text, numbers, plain_array

BINS, ROWS_OF_BIN = 8, 10  # of numbers
MOST_GROUPS = 0.2  # of the rows: a category with more values is pooled
MOST_CLASSES = 20  # most frequent ones; the others count as one


def choose_columns(rows: pa.Table, label: str, kept: Collection[str], count: int) -> list[str]:
    """Return the names of `count` columns in the order of the table; those that are `kept` are among them."""
    usable = rows.filter(rows[label].is_valid())
    truth = label_targets(usable, label)
    others = [name for name in rows.column_names if name not in kept]
    shares = {name: _share(_array(usable, name), name, truth) for name in others}
    best = sorted(others, key=lambda name: -shares[name])[: max(0, count - len(kept))]
    chosen = {*best, *kept}
    return [name for name in rows.column_names if name in chosen]


def _array(rows: pa.Table, name: str) -> pa.Array:
    return plain_array(rows[name].combine_chunks())


def label_targets(rows: pa.Table, name: str) -> Floats:
    """Return what is to be told apart, centred: a column for each class, or the ranks of numbers."""
    label = _array(rows, name)
    codes = _codes(label)
    if is_text(label.type) or types.is_boolean(label.type) or len(np.unique(codes)) <= MOST_CLASSES:
        often = np.argsort(-np.bincount(codes), kind="stable")[:MOST_CLASSES]
        targets = (codes[:, None] == often).astype(np.float64)
    else:
        values = np.nan_to_num(numbers(label, name))
        targets = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)[:, None]
    centred: Floats = targets - targets.mean(axis=0) if len(targets) else targets
    return centred


def _share(array: pa.Array, name: str, targets: Floats) -> float:
    """Return the share of the variance of the targets between the groups of a column.

    Cells with several values are not looked into, and come first.
    """
    if types.is_nested(array.type) or types.is_binary(array.type):
        return 1.0
    if array.null_count == len(array):
        return 0.0
    groups = _groups(array, name)
    sizes = np.bincount(groups)
    count, rows = np.count_nonzero(sizes), len(groups)
    total = float(np.square(targets).sum())
    if count < 2 or count >= rows or not total:
        return 0.0
    sums = np.stack([np.bincount(groups, column) for column in targets.T])
    between = float((np.square(sums) / np.maximum(sizes, 1)).sum()) / total
    by_chance = (count - 1) / (rows - 1)
    return max(0.0, (between - by_chance) / (1 - by_chance))


def _groups(array: pa.Array, name: str) -> Ints:
    """Return the group of each row: of its bin, or of its value."""
    if not is_text(array.type):
        try:
            return _bins(numbers(array, name))
        except SemanticError:
            pass
    codes = _codes(array)
    sizes = np.bincount(codes)
    if len(sizes) > MOST_GROUPS * len(codes):
        codes = np.where(sizes[codes] == 1, len(sizes), codes)
    return codes


def _bins(values: Array) -> Ints:
    """Return the bin of each number, with about as many rows in each; NaN has a bin of its own."""
    is_finite = np.isfinite(values)
    count = max(2, min(BINS, int(is_finite.sum()) // ROWS_OF_BIN))
    if not is_finite.any():
        return is_finite.astype(np.int64)
    ordered = np.sort(values[is_finite])
    edges = np.unique(ordered[np.arange(1, count) * len(ordered) // count])
    bins: Ints = np.where(is_finite, np.searchsorted(edges, values, "right"), len(edges) + 1)
    return bins


def _codes(array: pa.Array) -> Ints:
    """Return a number for each distinct value, NULL included."""
    encoded = array.dictionary_encode(null_encoding="encode")
    codes: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
