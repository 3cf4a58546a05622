"""Arrays that are made once and trained on in every epoch, as far as they have room.

Reading and transforming rows takes a core, and of a database its time, as often as there are epochs; most tables that
are trained on are small. Only what the compiler's own `feed` makes may be kept: another one may draw random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edl.worker.blocks import Arrays

ROOM = 256 << 20  # bytes


class Kept:
    """Arrays of ranges of rows, at most `room` bytes of them, or ROOM; what comes first, stays. Nobody may write into
    them.
    """

    def __init__(self, room: int | None = None) -> None:
        self._room = ROOM if room is None else room
        self._of: dict[tuple[int, int], Arrays] = {}
        self.rows = 0  # that they are of

    def get(self, start: int, end: int) -> Arrays | None:
        return self._of.get((start, end))

    def put(self, start: int, end: int, made: Arrays) -> None:
        """Keep them, unless they have no room."""
        if made.nbytes <= self._room:
            self._room -= made.nbytes
            self._of[start, end] = made
            self.rows += end - start
