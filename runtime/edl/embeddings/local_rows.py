"""Copies of the rows that some minibatches read, for steps on them away from their tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from edl.embeddings.model_tables import Fetched, Need
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.table import Floats, Ids, distinct_ids
from edl.embeddings.update import RowUpdater

Positions = npt.NDArray[np.int64]


class LocalRows:
    """Rows by table, (u, dim), that are updated by an optimizer of their own, and the sums of their gradients.

    The ids of the needs are positions among the rows (`Tables.need_together`). Rows that replace others are written
    into their memory: a first write to new memory takes longer than the steps.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        from edl.embeddings import kernels  # imports numba

        self._kernels = kernels
        self._updater = RowUpdater(optimizer)
        self._tables: dict[str, _RowMemory] = {}
        self._steps = 0
        self.ids: Mapping[str, Ids] = {}

    def replace(self, ids: Mapping[str, Ids], blocks: Mapping[str, Floats], *, adds_own: bool) -> None:
        """Take other rows in place of the present ones. `adds_own`: the steps of rows that stay are added to them."""
        steps_of_rows = self._list_own_steps(ids) if adds_own else {}
        self.ids, self._steps = ids, 0
        for name, block in blocks.items():
            if name not in self._tables or len(self._tables[name].data) < len(block):
                self._tables[name] = _RowMemory(2 * len(block), block.shape[1], len(self._updater.slots))
            table = self._tables[name]
            table.fill(block, self._updater.slots)
            if name in steps_of_rows:
                places, changes = steps_of_rows[name]
                table.first[places] += changes
                table.data[places, : table.dim] += changes

    def fetch(self, need: Need) -> Fetched:
        """Return the rows of a minibatch."""
        blocks = {name: self._gather(self._tables[name].data, name, at) for name, at in need.ids.items()}
        return Fetched(need.ids, blocks, need.places)

    def add(self, positions: Mapping[str, Positions], gradients: Mapping[str, Floats]) -> None:
        """Add the gradients of a minibatch to the sums."""
        for name, at in positions.items():
            self._kernels.sum_gradients(gradients[name], at.astype(np.int32), self._tables[name].sums)

    def step(self, positions: Mapping[str, Positions], gradients: Mapping[str, Floats], rate: float) -> None:
        """Take a step with the gradients of a minibatch."""
        self._steps += 1
        for name, at in positions.items():
            table = self._tables[name]
            self._updater.move(table.data, table.dim, at, gradients[name], rate, self._steps)

    def sums(self) -> dict[str, Floats]:
        """Return the sums of the gradients by table, (u, dim): views, until the rows are replaced."""
        return {name: self._tables[name].sums[: len(ids)] for name, ids in self.ids.items()}

    def _list_own_steps(self, ids: Mapping[str, Ids]) -> dict[str, tuple[Positions, Floats]]:
        """Return which of these ids are among the present ones, and how their rows have changed by steps."""
        shared = dict[int, tuple[Positions, Positions]]()  # tables that are read alike share an array of ids
        steps = {}
        for name, others in ids.items():
            mine = self.ids[name]
            if id(others) not in shared:
                _, places = distinct_ids(np.concatenate([mine, others]))  # in order of first appearance
                at = places[len(mine) :].astype(np.int64)
                shared[id(others)] = np.flatnonzero(at < len(mine)), at[at < len(mine)]
            where, at = shared[id(others)]
            table = self._tables[name]
            steps[name] = where, self._gather(table.data, name, at) - self._gather(table.first, name, at)
        return steps

    def _gather(self, data: Floats, name: str, at: Positions) -> Floats:
        rows = np.empty((len(at), self._tables[name].dim), np.float32)
        self._kernels.gather(data, at, at, 0, np.uint64(0), 0.0, rows)
        return rows


class _RowMemory:
    """Memory for so many rows with their slots, their values before the first step, and the sums of gradients."""

    def __init__(self, rows: int, dim: int, slots: int) -> None:
        self.dim = dim
        self.data = np.empty((rows, dim * (1 + slots)), np.float32)
        self.first, self.sums = np.empty((2, rows, dim), np.float32)

    def fill(self, block: Floats, slots: tuple[float, ...]) -> None:
        rows = len(block)
        self.first[:rows] = block
        self.data[:rows, : self.dim] = block
        for number, start in enumerate(slots, 1):
            self.data[:rows, number * self.dim : (number + 1) * self.dim] = start
        self.sums[:rows] = 0
