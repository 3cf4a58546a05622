"""Content of a row table at one moment, read in pieces while the table is trained on.

A cut copies nothing when it is made. A row that changes before it was read is copied first (copy on write), so memory
grows with the rows that are trained meanwhile, and no step waits for the whole table to be copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Cells = npt.NDArray[np.uint8]

PIECE = 65_536  # rows that are copied at a time, with the table's lock held
_LEAST_ROWS = 1024


class Rows(NamedTuple):
    """Rows in memory order: int64 ids (n,), float32 data (n, dim x (1 + slots)), each row followed by its slots, and
    the last step of each, int64 (n,).
    """

    ids: Ids
    data: Floats
    used: Ids

    def at(self, where: Any) -> Rows:
        """Return the rows at an index of NumPy: views for a slice, copies for numbers."""
        return Rows(self.ids[where], self.data[where], self.used[where])

    def put(self, where: Any, rows: Rows) -> None:
        """Overwrite the rows at an index of NumPy."""
        self.ids[where], self.data[where], self.used[where] = rows

    def copy(self) -> Rows:
        return Rows(self.ids.copy(), self.data.copy(), self.used.copy())


class TableCut:
    """Cut of a table with `count` rows and so many steps, and its counts of ids without a row.

    `arrays` returns the table's present arrays; it and `keep` are called with `lock` held.
    """

    def __init__(
        self, lock: threading.Lock, arrays: Callable[[], Rows], count: int, steps: int, counts: Cells
    ) -> None:
        self.count, self.steps, self.counts = count, steps, counts
        self._lock = lock
        self._arrays = arrays
        self._done = 0  # rows before it were read
        self.rows = count  # that `pieces` yields
        self.like = _room(arrays(), 0)  # arrays of the types and widths of those
        self._places = np.zeros(count, np.int32)  # of each row in `_kept`, + 1; 0 if it is unchanged
        self._kept = _room(arrays(), 0)
        self._filled = 0  # rows of `_kept`

    def keep(self, numbers: Ids) -> None:
        """Copy the rows with these distinct numbers, which are about to change, as far as they are to be read."""
        numbers = numbers[(numbers >= self._done) & (numbers < self.count)]
        numbers = numbers[self._places[numbers] == 0]
        if not len(numbers):
            return
        end = self._filled + len(numbers)
        if end > len(self._kept.ids):
            kept, self._kept = self._kept, _room(self._kept, max(end, 2 * self._filled, _LEAST_ROWS))
            self._kept.put(slice(self._filled), kept.at(slice(self._filled)))
        self._kept.put(slice(self._filled, end), self._arrays().at(numbers))
        self._places[numbers] = np.arange(self._filled + 1, end + 1)
        self._filled = end

    def pieces(self) -> Iterator[Rows]:
        """Yield copies of all rows, once."""
        for first in range(0, self.count, PIECE):
            with self._lock:
                if self.closed:
                    return
                some = slice(first, min(first + PIECE, self.count))
                found = self._arrays().at(some).copy()
                places = self._places[some]
                changed = np.flatnonzero(places)
                found.put(changed, self._kept.at(places[changed] - 1))
                self._done = some.stop
            yield found

    @property
    def kept(self) -> int:
        """Rows that were copied because they changed."""
        return self._filled

    @property
    def closed(self) -> bool:
        """True if all rows were read, or none will be."""
        return self._done == self.count

    def close(self) -> None:
        """Keep no more rows; nothing is read any more."""
        with self._lock:
            self._done = self.count
            self._kept = _room(self._kept, 0)


def _room(like: Rows, rows: int) -> Rows:
    return Rows(
        np.empty(rows, np.int64), np.empty((rows, like.data.shape[1]), np.float32), np.empty(rows, np.int64)
    )
