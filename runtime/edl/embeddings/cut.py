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
ALL = -1  # step before which no row changed
_LEAST_ROWS = 1024
NO_IDS: Ids = np.empty(0, np.int64)


class CutRows(NamedTuple):
    """Rows in memory order: int64 ids (n,), float32 data (n, dim x (1 + slots)), each row followed by its slots, and
    the last step of each, int64 (n,).
    """

    ids: Ids
    data: Floats
    used: Ids

    def at(self, where: Any) -> CutRows:
        """Return the rows at an index of NumPy: views for a slice, copies for numbers."""
        return CutRows(self.ids[where], self.data[where], self.used[where])

    def put(self, where: Any, rows: CutRows) -> None:
        """Overwrite the rows at an index of NumPy."""
        self.ids[where], self.data[where], self.used[where] = rows


class TableCut:
    """Cut of a table with `count` rows and so many steps, and its counts of ids without a row.

    `pieces` yields `rows` of them: all, or the rows changed after the step `since`. `gone` are the ids of rows evicted
    after it; they may be there again. `arrays` returns the table's present arrays; it and `keep` are called with `lock`
    held.
    """

    def __init__(
        self,
        lock: threading.Lock,
        arrays: Callable[[], CutRows],
        count: int,
        steps: int,
        counts: Cells,
        since: int = ALL,
        gone: Ids = NO_IDS,
    ) -> None:
        self.count, self.steps, self.counts = count, steps, counts
        self.gone = gone
        self._since = since
        self._lock = lock
        self._arrays = arrays
        self._done = 0  # rows before it were read
        self.rows = count if since == ALL else int(np.count_nonzero(arrays().used[:count] > since))
        self.like = _room(arrays(), 0)  # arrays of the types and widths of those
        self._places = np.zeros(count, np.int32)  # of each row in `_kept`, + 1; 0 if it is unchanged
        self._kept = _room(arrays(), 0)
        self._filled = 0  # rows of `_kept`
        self._moved = False  # True if rows have left their places

    def keep(self, numbers: Ids, *, moved: bool = False) -> None:
        """Copy the rows with these distinct numbers before they change, as far as they are to be read. `moved`: they
        leave their places.
        """
        self._moved |= moved
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

    def replace_changed(self, ids: Ids, numbers: Ids, rows: Floats) -> None:
        """Replace present rows of these ids that have changed since the cut, in `rows`, float32 (n, dim).

        `numbers` are their places as `find_unchanged` got them. Called with the lock held.
        """
        kept_at = self._places[np.where(self._covers(numbers), numbers, 0)] - 1 if self.count else numbers
        kept_at = np.where(self._covers(numbers), kept_at, -1)
        kept_at[kept_at >= 0] = np.where(
            self._kept.ids[kept_at[kept_at >= 0]] == ids[kept_at >= 0], kept_at[kept_at >= 0], -1
        )
        if self._moved:
            kept_at = np.where(kept_at < 0, self._search_kept(ids), kept_at)
        changed = kept_at >= 0
        rows[changed] = self._kept.data[kept_at[changed], : rows.shape[1]]

    def find_unchanged(self, numbers: Ids) -> Ids:
        """Return the places, or -1 for a row that has changed since the cut, or was not there. Called with the lock
        held.
        """
        unchanged = self._covers(numbers)
        if self.count:
            unchanged &= self._places[np.where(unchanged, numbers, 0)] == 0
        return np.where(unchanged, numbers, -1)

    def _covers(self, numbers: Ids) -> Any:
        return (numbers >= 0) & (numbers < self.count)

    def _search_kept(self, ids: Ids) -> Ids:
        """Return the places of the ids among the copied rows, -1 for others."""
        kept = self._kept.ids[: self._filled]
        order = np.argsort(kept)
        at = np.searchsorted(kept, ids, sorter=order)
        places = order[np.minimum(at, self._filled - 1)] if self._filled else np.zeros(len(ids), np.int64)
        is_kept = kept[places] == ids if self._filled else np.zeros(len(ids), bool)
        return np.where(is_kept, places, -1)

    def pieces(self) -> Iterator[CutRows]:
        """Yield copies of the rows, once."""
        for first in range(0, self.count, PIECE):
            with self._lock:
                if self.is_closed:
                    return
                end = min(first + PIECE, self.count)
                places, used = self._places[first:end], self._arrays().used[first:end].copy()
                changed = np.flatnonzero(places)
                used[changed] = self._kept.used[places[changed] - 1]
                selected = np.flatnonzero(used > self._since)
                piece = self._arrays().at(first + selected)
                places = places[selected]
                changed = np.flatnonzero(places)
                piece.put(changed, self._kept.at(places[changed] - 1))
                self._done = end
            if len(selected):
                yield piece

    @property
    def is_whole(self) -> bool:
        """True if all rows are yielded, whatever has changed."""
        return self._since == ALL

    def widen(self) -> None:
        """Yield all rows, before the first of them."""
        self._since, self.rows, self.gone = ALL, self.count, NO_IDS

    @property
    def copied_rows(self) -> int:
        """Rows that were copied because they changed."""
        return self._filled

    @property
    def is_closed(self) -> bool:
        """True if all rows were read, or none will be."""
        return self._done == self.count

    def close(self) -> None:
        """Keep no more rows; nothing is read any more."""
        with self._lock:
            self.void()

    def void(self) -> None:
        """Close the cut of a table that gets another content. Called with the lock held."""
        self._done = self.count
        self._kept = _room(self._kept, 0)


class Evictions:
    """Ids of evicted rows, by step, from the first cut on. Called with the table's lock held."""

    def __init__(self) -> None:
        self._found: list[tuple[int, Ids]] = []
        self._count = 0  # ids of them
        self._since: int | None = None  # the evictions after this step are known

    def add(self, step: int, ids: Ids, rows: int) -> None:
        """Remember ids. If they are more than the rows of the table, the next cut has to be whole in any case."""
        if self._since is not None:
            self._found.append((step, ids))
            self._count += len(ids)
            if self._count > rows:
                self._found, self._count, self._since = [], 0, None

    def after(self, since: int, now: int) -> Ids | None:
        """Return the ids evicted after a step, each once, or None if that is not known. All from `now` on will be."""
        if self._since is None:
            self._since = now
        if since < self._since:
            return None
        return np.unique(np.concatenate([NO_IDS, *(ids for step, ids in self._found if step > since)]))

    def forget(self, step: int) -> None:
        """Forget the evictions up to a step."""
        self._found = [(at, ids) for at, ids in self._found if at > step]
        self._count = sum(len(ids) for _, ids in self._found)
        if self._since is not None:
            self._since = max(self._since, step)


def _room(like: CutRows, rows: int) -> CutRows:
    return CutRows(
        np.empty(rows, np.int64), np.empty((rows, like.data.shape[1]), np.float32), np.empty(rows, np.int64)
    )
