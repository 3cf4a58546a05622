"""Copies of the rows that some minibatches read, for steps on them away from their tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edl.embeddings.model_tables import Fetched, Need
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.table import Floats, Ids, distinct_ids
from edl.embeddings.update import RowUpdater


class LocalRows:
    """Rows by table, (u, dim), that are updated by an optimizer of their own, and the sum of all their gradients.

    The ids of the needs are positions among the rows (`Tables.need_together`). The steps of `before` are added to its
    rows.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        ids: Mapping[str, Ids],
        blocks: Mapping[str, Floats],
        before: LocalRows | None = None,
    ) -> None:
        self.ids = ids
        self._updater = RowUpdater(optimizer)
        self._steps = 0
        self._first = dict(blocks) if before is None else before._carry(ids, blocks)
        self._data: dict[str, Floats] = {}  # rows with their slots
        for name, block in self._first.items():
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

    def _carry(self, ids: Mapping[str, Ids], blocks: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return rows of other ids, to which the steps of the same ids are added."""
        found = dict[int, tuple[Ids, Ids]]()  # tables that are read alike share an array of ids
        carried = {}
        for name, block in blocks.items():
            mine, others = self.ids[name], ids[name]
            if id(others) not in found:
                _, places = distinct_ids(np.concatenate([mine, others]))  # in order of first appearance
                at = places[len(mine) :]
                found[id(others)] = np.flatnonzero(at < len(mine)), at[at < len(mine)]
            where, at = found[id(others)]
            carried[name] = block.copy()
            carried[name][where] += self._data[name][at, : block.shape[1]] - self._first[name][at]
        return carried
