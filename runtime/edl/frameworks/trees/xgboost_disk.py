"""Training rows of XGBoost on disk: its external memory, over a matrix that is mapped from a file.

XGBoost reads the matrix by parts, and keeps the intervals of each part in a file of its own, which it reads again in
each round. So it holds a few parts in memory, whatever the number of rows.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edl.arrays import Array
from edl.frameworks.imports import without_extras

with without_extras():
    import xgboost

PART = 32 << 20  # bytes of a part


class MatrixOnDisk(xgboost.DataIter):  # type: ignore[misc]  # XGBoost is untyped
    """Rows of a matrix that is mapped from a file, by parts. folder: for XGBoost's files, by default the usual one."""

    def __init__(
        self,
        matrix: np.memmap[Any, Any],
        labels: Array,
        weights: Array | None,
        kinds: Sequence[str],
        folder: str | None,
    ) -> None:
        files = tempfile.mkdtemp(prefix="xgboost-", dir=folder)
        weakref.finalize(self, shutil.rmtree, files, ignore_errors=True)
        self._matrix, self._labels, self._weights, self._kinds = matrix, labels, weights, list(kinds)
        self._rows_of_part = max(1, PART // max(1, matrix.shape[1] * matrix.itemsize))
        self._first = 0
        super().__init__(cache_prefix=str(Path(files) / "rows"))

    def quantize(self, bins: int, threads: int) -> xgboost.DMatrix:
        """Return the rows in intervals, on disk."""
        quantized = xgboost.ExtMemQuantileDMatrix(
            self, max_bin=bins, nthread=threads, enable_categorical=True
        )
        quantized.files = self  # they last as long as the matrix
        return quantized

    def next(self, input_data: Callable[..., None]) -> bool:
        """Give the next part to XGBoost, and return False if there is none."""
        last = min(self._first + self._rows_of_part, len(self._matrix))
        if self._first >= last:
            return False
        here = slice(self._first, last)
        weight = {} if self._weights is None else {"weight": self._weights[here]}
        part = clip_to_float32(np.array(self._matrix[here])).astype(np.float32)
        self._forget_pages()
        input_data(data=part, label=self._labels[here], feature_types=self._kinds, **weight)
        self._first = last
        return True

    def reset(self) -> None:
        self._first = 0

    def _forget_pages(self) -> None:
        """Give the memory of what was read back to the system, which may keep it while nobody needs it."""
        mapped = getattr(self._matrix, "_mmap", None)
        if isinstance(mapped, mmap.mmap):
            mapped.madvise(mmap.MADV_DONTNEED)


def clip_to_float32(matrix: Array) -> Array:
    """Return the matrix with finite numbers that float32 does not hold as its largest one. NaN stays."""
    largest = float(np.finfo(np.float32).max)
    if (
        matrix.size
        and np.fmax(np.fmax.reduce(matrix, axis=None), -np.fmin.reduce(matrix, axis=None)) > largest
    ):
        return np.clip(matrix, -largest, largest)
    return matrix
