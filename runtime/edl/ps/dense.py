"""Flat parameters of one server, and the slots of their optimizer.

They form a single row as wide as all of them, so that the kernels of `edl.embeddings` update them too.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from edl.embeddings import Optimizer
from edl.embeddings.table import Floats
from edl.embeddings.update import RowUpdater

_ONLY = np.zeros(1, np.int64)


class FlatCopy(NamedTuple):
    """Parameters and slots, float32 (1 + slots, size), and the number of applied steps."""

    data: Floats
    steps: int


class FlatParameters:
    """Vector of parameters, float32 (size,), with its optimizer. Thread-safe."""

    def __init__(self, values: Floats, optimizer: Optimizer) -> None:
        self._mover = RowUpdater(optimizer, whole=True)
        self._lock = threading.Lock()
        self._data = np.empty((1 + len(self._mover.slots), len(values)), np.float32)
        self._data[0] = values
        self._data[1:] = np.array(self._mover.slots, np.float32)[:, None]
        self.steps = 0

    def __len__(self) -> int:
        return int(self._data.shape[1])

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def read(self) -> Floats:
        """Return a copy, (size,)."""
        with self._lock:
            values: Floats = self._data[0].copy()
            return values

    def update(self, gradient: Floats, rate: float) -> None:
        """Apply one step with the gradient (size,)."""
        with self._lock:
            self.steps += 1
            whole = self._data.reshape(1, -1)
            self._mover.move(whole, len(self), _ONLY, gradient[None], rate, self.steps)

    def room(self) -> FlatCopy:
        """Return an array for a copy, written once: the first write to new memory is slow."""
        room = FlatCopy(np.empty_like(self._data), 0)
        room.data.fill(0)
        return room

    def copy(self, room: FlatCopy) -> FlatCopy:
        """Copy everything into the array of `room` and return it."""
        with self._lock:
            np.copyto(room.data, self._data)
            return FlatCopy(room.data, self.steps)

    def adopt(self, copied: FlatCopy) -> None:
        """Restore a result of `copied`, and take ownership of its array."""
        if copied.data.shape != self._data.shape:
            raise ValueError(
                f"the copy has shape {copied.data.shape}, the flat parameters {self._data.shape}"
            )
        with self._lock:
            self._data, self.steps = copied.data, copied.steps
