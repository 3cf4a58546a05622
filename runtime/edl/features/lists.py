"""Cells with several values: lists, and texts with a delimiter between their items.

Blanks around the items of a text are removed; if the delimiter is a blank, any number of them counts as one. A NULL,
an empty text and an empty list hold nothing. Invalid cells raise a SemanticError that shows the first of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError
from edl.features.arrays import Floats, Ints, is_text, numbers, plain_array, texts

LONGEST_SHOWN = 40  # characters of a cell in a message


class Lists:
    """Items of a column's cells.

    `items` are the items of all rows, concatenated. `offsets` are the first item of each row, then the end, (n + 1,).
    `weights` are the items' weights, float32, if a `separator` splits each item from its weight, else None.
    """

    def __init__(self, array: pa.Array, column: str, delimiter: str, separator: str = "") -> None:
        self._array, self._column, self._delimiter = array, column, delimiter
        listed = _split_texts(array, column, delimiter)
        counts = pc.fill_null(pc.list_value_length(listed), 0).to_numpy(zero_copy_only=False)
        flat = plain_array(listed.flatten())
        self.items: pa.Array = _strip_items(flat.cast(pa.large_string())) if is_text(flat.type) else flat
        self.offsets: Ints = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.weights = self._take_weights(separator) if separator else None

    def numbers(self) -> Floats:
        """Return the items as numbers, float64; NaN for NULL and empty items."""
        return self._numbers(self.items)

    def vectors(self, size: int = 0) -> Floats:
        """Return the numbers of each cell, float64 (n, size); all NaN for an empty cell.

        A `size` of 0 means the size of the first cell that is not empty.
        """
        counts = np.diff(self.offsets)
        held = counts > 0
        if not held.any():
            return np.full((len(counts), size), np.nan)
        size = size or int(counts[held][0])
        wrong = np.flatnonzero(held & (counts != size))
        if len(wrong):
            raise self._refuse_cell(int(wrong[0]), f"not {size:,} {'number' if size == 1 else 'numbers'}")
        matrix = np.full((len(counts), size), np.nan)
        matrix[held] = self.numbers().reshape(-1, size)
        return matrix

    def _take_weights(self, separator: str) -> npt.NDArray[np.float32]:
        """Remove the weights from the items and return them."""
        parts = pc.split_pattern(texts(self.items, self._column), separator, max_splits=1, reverse=True)
        lacking = np.flatnonzero(pc.fill_null(pc.list_value_length(parts), 0).to_numpy() != 2)
        if len(lacking):
            item = int(lacking[0])
            raise self._refuse(
                item, f"and {_short(self.items[item].as_py())} has no weight after {separator!r}"
            )
        flat, places = _strip_items(parts.flatten()), np.arange(len(self.items)) * 2
        weights = self._numbers(flat.take(places + 1))
        unknown = np.flatnonzero(~np.isfinite(weights))
        if len(unknown):
            raise self._refuse(int(unknown[0]), "and a weight in it is not finite")
        self.items = flat.take(places)
        return weights.astype(np.float32)

    def _numbers(self, items: pa.Array) -> Floats:
        if not is_text(items.type):
            return numbers(items, self._column)
        try:
            return numbers(items.cast(pa.float64()), self._column)
        except pa.ArrowInvalid:
            item = _first_without_number(items)
        raise self._refuse(item, f"and {_short(items[item].as_py())} is not a number")

    def _refuse(self, item: int, why: str) -> SemanticError:
        """Return the error of an invalid item."""
        return self._refuse_cell(int(np.searchsorted(self.offsets, item, side="right")) - 1, why)

    def _refuse_cell(self, row: int, why: str) -> SemanticError:
        cell = plain_array(self._array[row : row + 1])[0].as_py()
        is_written = isinstance(cell, str | bytes)
        return SemanticError(
            f"column {self._column} holds {_short(cell)}, {why}",
            hint=f"its items are read as separated by {self._delimiter!r}" if is_written else None,
        )


def _split_texts(array: pa.Array, column: str, delimiter: str) -> pa.Array:
    """Return lists unchanged, and split texts; a number is a list of one."""
    array = plain_array(array)
    if types.is_null(array.type):
        return pa.nulls(len(array), pa.list_(pa.int64()))
    if types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        return array
    text = _strip_items(texts(array, column).cast(pa.large_string()))
    return pc.utf8_split_whitespace(text) if delimiter == " " else pc.split_pattern(text, delimiter)


def _strip_items(items: pa.Array) -> pa.Array:
    """Strip blanks; an empty text becomes NULL."""
    text = pc.utf8_trim_whitespace(items)
    return pc.if_else(pc.equal(text, ""), None, text)


def _first_without_number(items: pa.Array) -> int:
    """Find the first text that cannot be cast, by bisection. Return its index."""
    low, high = 0, len(items)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            items[low:middle].cast(pa.float64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
