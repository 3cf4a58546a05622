"""Admission of ids to a row table, and eviction of rows from it, as `edl.spec.RowLimits` say.

Ids without a row are counted in a counting Bloom filter (Fan et al. 2000) with conservative update (Estan and Varghese
2002) and double hashing (Kirsch and Mitzenmacher 2008): memory is bounded, and a count is never too small. It is too
large for an id if all its four cells are shared. When more than half of the cells are in use, all counts are halved, as
in TinyLFU (Einziger et al. 2017), so at most one new id in 16 begins with a count.

Rows are evicted after a step: those not trained for `ttl_steps` steps, and the least recently trained beyond
`max_rows`. Both happen for a sixteenth of the bound at a time, since each pass reads the last step of every row. Rows
of the same step are evicted by ascending id, so what remains does not depend on the order of rows in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.spec import RowLimits
from edl.spec.job import MOST_COUNT

Ids = npt.NDArray[np.int64]
Cells = npt.NDArray[np.uint8]

_CELLS_OF_ID, _LEAST_CELLS, _MOST_CELLS = 8, 1 << 10, 1 << 23
_PARTS = 16  # of a bound, one of which is evicted at a time


class CountingFilter:
    """Counts of ids without a row, for a table with ids in [0, num_ids), 0 if that is unknown."""

    def __init__(self, least: int, num_ids: int, kernels: Any) -> None:
        if least > MOST_COUNT:
            raise JobError(f"embedding_min_count is {least:,}; ids are counted up to {MOST_COUNT}")
        cells = min(max(_CELLS_OF_ID * num_ids, _LEAST_CELLS), _MOST_CELLS) if num_ids else _MOST_CELLS
        self.cells: Cells = np.zeros(1 << (cells - 1).bit_length(), np.uint8)
        self._least = least
        self._kernels = kernels
        self._filled = 0

    def admit(self, ids: Ids, numbers: Ids) -> None:
        """Count the ids with the row number -1, and make the number -2 for ids that get no row yet."""
        self._filled += self._kernels.admit(self.cells, ids, numbers, self._least)
        if 2 * self._filled > len(self.cells):
            self.cells >>= 1
            self._filled = int(np.count_nonzero(self.cells))

    def merge(self, cells: Cells) -> None:
        """Take over the counts of another filter of the same table; the larger one of each cell counts.

        Raises JobError if it has another size.
        """
        if cells.shape != self.cells.shape or cells.dtype != np.uint8:
            raise JobError(f"counts of ids have shape {cells.shape}, not {self.cells.shape}")
        np.maximum(self.cells, cells, out=self.cells)
        self._filled = int(np.count_nonzero(self.cells))


def share(limits: RowLimits, servers: int) -> RowLimits:
    """Return the limits of a table's part on one of so many servers."""
    return RowLimits(limits.min_count, -(-limits.max_rows // servers), limits.ttl_steps)


def find_expired_rows(limits: RowLimits, used: Ids, step: int) -> Ids:
    """Return the ascending numbers of the rows that were last trained `ttl_steps` steps ago or more.

    `used` has the last step of each row. Nothing is due between the passes.
    """
    if not limits.ttl_steps or step % max(1, limits.ttl_steps // _PARTS):
        return np.empty(0, np.int64)
    return np.flatnonzero(used <= step - limits.ttl_steps)


def surplus(limits: RowLimits, used: Ids, row_ids: Ids) -> Ids:
    """Return the ascending numbers of the least recently trained rows, if there are more than `max_rows`."""
    most = limits.max_rows
    if not most or len(used) <= most:
        return np.empty(0, np.int64)
    count = len(used) - most + most // _PARTS
    last = np.partition(used, count - 1)[count - 1]
    older, ties = np.flatnonzero(used < last), np.flatnonzero(used == last)
    chosen = ties[np.argsort(row_ids[ties])[: count - len(older)]]
    return np.sort(np.concatenate([older, chosen]))
