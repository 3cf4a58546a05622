"""Compile the kernels and keep the machine code in the folder NUMBA_CACHE_DIR: `python -m edl.ps.compile_kernels`.

An image is built with it, so that servers and workers in pods save the seconds of compilation; see
`edl.embeddings.numba_cache`.
"""

from __future__ import annotations

import numpy as np

from edl.embeddings import Optimizer, RowTable, TableSpec, optimizer_kernels
from edl.ps.kernels import split
from edl.spec import RowLimits

_DIM = 2
_MOST_SLOTS = 4
_MOST_CONSTANTS = 16
_OTHERS = ("decay", "penalty")  # kernels that take one number


def main() -> None:
    """Call every kernel once, with arrays of the types that tables have."""
    ids = np.array([3, 1, 3], np.int64)
    sgd, limits = Optimizer("keras", "sgd", {"momentum": 0.0}), RowLimits(min_count=2, max_rows=1)
    limited = RowTable(TableSpec("limited", _DIM, num_ids=4), 0, sgd, limits)
    for _ in range(2):
        limited.update(np.arange(2), np.zeros((2, _DIM), np.float32), 0.1)
    table = RowTable(TableSpec("warm", _DIM), 0, sgd)
    table.update(ids, np.zeros((len(ids), _DIM), np.float32), 0.1)
    table.read(ids)
    table.adopt(table.copy())
    split(ids, np.empty_like(ids), np.empty_like(ids), np.zeros(2, np.int64))
    _steps()


def _steps() -> None:
    data = np.ones((2, _DIM * (1 + _MOST_SLOTS)), np.float32)
    numbers, gradients = np.arange(2), np.ones((2, _DIM), np.float32)
    constants = np.ones(_MOST_CONSTANTS, np.float32)
    optimizer_kernels.decay(data, _DIM, numbers, np.float32(1))
    optimizer_kernels.penalty(data, _DIM, numbers, gradients, np.float32(0))
    for name in _compile_module(optimizer_kernels):
        if name not in _OTHERS:
            getattr(optimizer_kernels, name)(data, _DIM, numbers, gradients, constants)


def _compile_module(module: object) -> list[str]:
    return [name for name, value in vars(module).items() if hasattr(value, "py_func")]


if __name__ == "__main__":
    main()
