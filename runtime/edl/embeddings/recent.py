"""Row numbers of ids that were looked up lately: a push names the same ids as a pull before it.

A look-up of an id reads a random place of a large index, which takes longer than an optimizer's step with its row.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

LOOKUPS = 32  # two of each worker of a larger job
MOST_IDS = 1 << 16


class RecentLookups:
    """Last look-ups of a table in which every id had a row. Forget them when rows get other numbers."""

    def __init__(self) -> None:
        self._lookups: deque[tuple[Ids, Ids]] = deque(maxlen=LOOKUPS)

    def add(self, ids: Ids, numbers: Ids) -> None:
        if 0 < len(ids) <= MOST_IDS:
            self._lookups.appendleft(
                (ids.copy(), numbers)
            )  # a copy, so that a message with the ids can be freed

    def find(self, ids: Ids) -> Ids | None:
        """Return the row numbers of the ids, which must not be changed, or None."""
        for earlier_ids, numbers in self._lookups:
            if (
                len(earlier_ids) == len(ids)
                and len(ids)
                and earlier_ids[0] == ids[0]
                and np.array_equal(earlier_ids, ids)
            ):
                return numbers
        return None

    def clear(self) -> None:
        self._lookups.clear()
