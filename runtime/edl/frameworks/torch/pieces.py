"""Forward passes over pieces of a block, on several cores.

A layer reads what the one before it has written. The activations of a small piece stay in the cache of a core, those
of a block do not: a network of 340 inputs and three layers took 0.72 of the time. Threads that compute a piece each
never wait for each other, as the threads of one operation do.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from edl.arrays import Array, Features, map_arrays

PIECE = 1024  # rows


class ScoredPieces:
    """Pieces of `PIECE` rows, computed by `threads` at a time. The outputs do not depend on the number of threads."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "edl-pieces") if threads > 1 else None

    def map(self, features: Features, rows: int, compute: Callable[[Features], Array]) -> Array:
        """Return the outputs of all pieces, concatenated."""
        torch.set_num_threads(1)

        def compute_piece(start: int) -> Array:
            with torch.no_grad():
                return compute(map_arrays(lambda array: array[start : start + PIECE], features))

        outputs = (self._pool.map if self._pool else map)(compute_piece, range(0, rows, PIECE))
        return np.concatenate([*outputs])
