"""Cells that hold several values: lists, and texts with a delimiter between their items.

An item of a text is without the blanks around it; where the delimiter is a blank, any number of them is one. A NULL, an
empty text and an empty list hold nothing. What cannot be read is a SemanticError that shows the first such cell.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError
from edl.features.arrays import Floats, Ints, is_text, numbers, plain, texts

LONGEST_SHOWN = 40  # characters of a cell in a message


class Lists:
    """The cells of a column, taken apart.

    items: those of all rows, one row's behind the other's. offsets: where each row's begin, and the end, (n + 1,).
    """

    def __init__(self, array: pa.Array, column: str, delimiter: str) -> None:
        listed = _listed(array, column, delimiter)
        counts = pc.fill_null(pc.list_value_length(listed), 0).to_numpy(zero_copy_only=False)
        flat = plain(listed.flatten())
        self.items: pa.Array = (
            pc.utf8_trim_whitespace(flat.cast(pa.large_string())) if is_text(flat.type) else flat
        )
        self.offsets: Ints = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._array, self._column, self._delimiter = array, column, delimiter

    def numbers(self) -> Floats:
        """The items as numbers, float64; NaN for NULL and for nothing."""
        if not is_text(self.items.type):
            return numbers(self.items, self._column)
        filled = pc.if_else(pc.equal(self.items, ""), None, self.items)
        try:
            return numbers(filled.cast(pa.float64()), self._column)
        except pa.ArrowInvalid:
            item = _first_without_number(filled)
        row = int(np.searchsorted(self.offsets, item, side="right")) - 1
        raise self.refuse(row, f"and {_short(filled[item].as_py())} is no number")

    def vectors(self, size: int = 0) -> Floats:
        """The numbers of each cell, float64 (n, size); NaN in all places of a cell that holds nothing.

        size: 0 is that of the first cell that holds any.
        """
        counts = np.diff(self.offsets)
        held = counts > 0
        if not held.any():
            return np.full((len(counts), size), np.nan)
        size = size or int(counts[held][0])
        wrong = np.flatnonzero(held & (counts != size))
        if len(wrong):
            raise self.refuse(int(wrong[0]), f"not {size:,} {'number' if size == 1 else 'numbers'}")
        found = np.full((len(counts), size), np.nan)
        found[held] = self.numbers().reshape(-1, size)
        return found

    def refuse(self, row: int, why: str) -> SemanticError:
        """The error of a cell that means nothing."""
        cell = plain(self._array[row : row + 1])[0].as_py()
        written = isinstance(cell, str | bytes)
        return SemanticError(
            f"column {self._column} holds {_short(cell)}, {why}",
            hint=f"its items are read as separated by {self._delimiter!r}" if written else None,
        )


def _listed(array: pa.Array, column: str, delimiter: str) -> pa.Array:
    """Lists as they are; a number is a list of one."""
    array = plain(array)
    if types.is_null(array.type):
        return pa.nulls(len(array), pa.list_(pa.int64()))
    if types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        return array
    text = pc.utf8_trim_whitespace(texts(array, column).cast(pa.large_string()))
    filled = pc.if_else(pc.equal(text, ""), None, text)
    return pc.utf8_split_whitespace(filled) if delimiter == " " else pc.split_pattern(filled, delimiter)


def _first_without_number(items: pa.Array) -> int:
    """The index of the first text that cannot be cast, by halves."""
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
