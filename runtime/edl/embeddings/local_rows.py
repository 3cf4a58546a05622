"""Copies of the rows that some minibatches read, for steps on them away from their tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edl.embeddings.model_tables import Fetched, Need
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.table import Floats, Ids
from edl.embeddings.update import RowUpdater


class LocalRows:
    """Rows by table, (u, dim), that are updated by an optimizer of their own, and the sum of all their gradients.

    The ids of the needs are positions among the rows (`Tables.need_together`).
    """

    def __init__(self, optimizer: Optimizer, blocks: Mapping[str, Floats]) -> None:
        self._updater = RowUpdater(optimizer)
        self._steps = 0
        self._data: dict[str, Floats] = {}  # rows with their slots
        for name, block in blocks.items():
            slots = [np.full_like(block, start) for start in self._updater.slots]
            self._data[name] = np.hstack([block, *slots]) if slots else block.copy()
        self.sums = {name: np.zeros_like(block) for name, block in blocks.items()}

    def fetch(self, need: Need) -> Fetched:
        """Return the rows of a minibatch."""
        blocks = {name: self._data[name][at, : self.sums[name].shape[1]] for name, at in need.ids.items()}
        return Fetched(need.ids, blocks, need.places)

    def add(self, positions: Mapping[str, Ids], gradients: Mapping[str, Floats]) -> None:
        """Add the gradients of a minibatch to the sums."""
        for name, at in positions.items():
            self.sums[name][at] += gradients[name]  # positions are distinct

    def step(self, positions: Mapping[str, Ids], gradients: Mapping[str, Floats], rate: float) -> None:
        """Take a step with the gradients of a minibatch."""
        self._steps += 1
        for name, at in positions.items():
            dim = self.sums[name].shape[1]
            self._updater.move(self._data[name], dim, at, gradients[name], rate, self._steps)
