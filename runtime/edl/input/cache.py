"""Cache of training arrays that are made once and used in every epoch, up to a size limit.

Reading and converting rows costs a core, and load on the database, in every epoch; most training tables are small. Only
arrays made by the compiler's own `feed` may be cached: an edited one may draw random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edl.input.blocks import Arrays

ROOM = 256 << 20  # bytes


class ArrayCache:
    """Cache of arrays by range of rows, at most `room` bytes (default ROOM), without eviction. The arrays are
    read-only.
    """

    def __init__(self, room: int | None = None) -> None:
        self._room = ROOM if room is None else room
        self._of: dict[tuple[int, int], Arrays] = {}
        self.rows = 0  # total of the cached ranges

    def get(self, start: int, end: int) -> Arrays | None:
        return self._of.get((start, end))

    def put(self, start: int, end: int, arrays: Arrays) -> None:
        """Add the arrays unless they exceed the remaining room."""
        if arrays.nbytes <= self._room:
            self._room -= arrays.nbytes
            self._of[start, end] = arrays
            self.rows += end - start
