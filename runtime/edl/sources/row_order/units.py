"""Units of a split, which are on one side of it, and the rows that it chooses."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from edl.spec import ValidationBlocks

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Units(NamedTuple):
    """Units of a split. sizes: their rows, None for one each. kinds: numbers of their classes, None for one class.

    of_rows: the unit of each row, None if each row is the unit of its number.
    """

    hashes: Hashes
    sizes: Ints | None
    kinds: Ints | None
    of_rows: Ints | None = None


class ValidationRows(NamedTuple):
    """Rows of a pinned order that are not trained on, the last ones. blocks: of a split with folds, else unset.

    With blocks, `rows` are the rows of the first block and the test rows.
    """

    rows: int
    blocks: ValidationBlocks | msgspec.UnsetType = msgspec.UNSET
