"""Content of one server: its flat parameters and its rows of every table.

Each has its own lock, and the kernels release the interpreter's, so calls for different tables run in parallel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edl.embeddings import Optimizer, RowTable, TableCopy, TableCut, TableSpec
from edl.embeddings.limits import share
from edl.embeddings.table import Floats
from edl.errors import JobError, did_you_mean
from edl.ps.checkpoint.content import ModelDefinition, Shard
from edl.ps.dense import FlatCopy, FlatParameters
from edl.ps.gradients import Gradients
from edl.ps.partitioning import Layout, Placement, owned_mask

MOST_CHANGES = 8  # files with changes that follow a whole one
LARGEST_CHANGE = 0.5  # rows in them, relative to the tables' rows


class StoreMark(NamedTuple):
    """Written shard: the checkpoint's name, the steps of the tables, and how many rows its changes have."""

    name: str
    shard: Shard
    steps: tuple[int, ...]
    changed: int


class StoreCut(NamedTuple):
    """Content of a store at one moment. `tables` are in the order of the definition, read while training goes on.

    If it follows a written shard, they have the rows that changed since.
    """

    flat: FlatCopy
    tables: tuple[TableCut, ...]
    follows: StoreMark | None = None

    @property
    def changed_rows(self) -> int:
        """Number of changed rows, including the rows of the earlier files."""
        return sum(table.rows for table in self.tables) + self.follows.changed if self.follows else 0

    def whole(self) -> StoreCut:
        """Return all of the content, before any of it is read."""
        for table in self.tables:
            table.widen()
        return self._replace(follows=None)

    def close(self) -> None:
        for table in self.tables:
            table.close()


class StoreCopy(NamedTuple):
    """Copy of a store. `tables` are in the order of the definition."""

    flat: FlatCopy
    tables: tuple[TableCopy, ...]


class ParameterStore:
    """Part of a model on server `index` of `servers`. `values` are its flat parameters, zeros if None.

    Raises JobError if they do not fit the definition.
    """

    def __init__(self, definition: ModelDefinition, index: int, servers: int, values: Floats | None) -> None:
        self.definition = definition
        self.layout = Placement(definition.dense, servers).layout(index)
        if values is None:
            values = np.zeros(self.layout.size, np.float32)
        if values.shape != (self.layout.size,):
            raise JobError(f"server {index} has {self.layout.size:,} parameters, not {values.size:,}")
        self.flat = FlatParameters(values, definition.optimizer)
        limits = share(definition.limits, servers)
        self.tables = {
            spec.name: RowTable(spec, definition.seed, definition.optimizer, limits)
            for spec in definition.tables
        }
        self.state_layout = Layout(definition.state if index == 0 else ())

    @property
    def nbytes(self) -> int:
        """Bytes of parameters, rows and slots."""
        return self.flat.nbytes + sum(table.nbytes for table in self.tables.values())

    def table(self, name: str) -> RowTable:
        """Return the table. Raises JobError if none has the name."""
        if name not in self.tables:
            raise JobError(f"there is no table {name}", hint=did_you_mean(name, self.tables))
        return self.tables[name]

    def check(self, gradients: Gradients) -> None:
        """Raise JobError if the gradients do not fit the model, before any of them is applied."""
        flat = gradients.flat
        if flat.dtype != np.float32 or flat.shape not in ((0,), (self.layout.size,)):
            raise JobError(f"a push has {flat.size:,} gradients for {self.layout.size:,} parameters")
        for name, (ids, values) in gradients.tables.items():
            shape = (len(ids), self.table(name).spec.dim) if ids.ndim == 1 else ()
            if ids.dtype != np.int64 or values.dtype != np.float32 or values.shape != shape:
                raise JobError(
                    f"gradients of the table {name} have shape {values.shape} for ids of shape {ids.shape}"
                )

    def apply(self, gradients: Gradients) -> None:
        """Apply one step of the optimizer."""
        if gradients.flat.size:
            self.flat.update(gradients.flat, gradients.rate)
        for name, (ids, values) in gradients.tables.items():
            self.tables[name].update(ids, values, gradients.rate, distinct=True)

    def cut(self, room: FlatCopy, after: StoreMark | None = None) -> StoreCut:
        """Return the present content; flat parameters are copied into `room`. Close it.

        With `after`, tables have what changed since, unless that is too much or not known any more.
        """
        tables = self.tables.values()
        if after is None or len(after.shard.earlier) == MOST_CHANGES:
            return StoreCut(self.flat.copy(room), tuple(table.cut() for table in tables))
        cuts = tuple(table.cut(step) for table, step in zip(tables, after.steps, strict=True))
        store_cut = StoreCut(self.flat.copy(room), cuts, after)
        rows = sum(table.count for table in cuts)
        whole = (
            not rows
            or any(table.is_whole for table in cuts)
            or store_cut.changed_rows > rows * LARGEST_CHANGE
        )
        return store_cut.whole() if whole else store_cut

    def forget(self, mark: StoreMark) -> None:
        """Forget what cuts after this shard do not need."""
        for table, step in zip(self.tables.values(), mark.steps, strict=True):
            table.forget(step)

    def adopt(self, copied: StoreCopy) -> None:
        """Restore a copy, and take ownership of its arrays."""
        self.flat.adopt(copied.flat)
        for table, table_copy in zip(self.tables.values(), copied.tables, strict=True):
            table.adopt(table_copy)


def warm_up() -> None:
    """Load the compiled kernels for read-only arrays, as they arrive over the wire."""
    table = RowTable(TableSpec("", 1), 0, Optimizer("torch", "sgd", {"momentum": 0.0}))
    ids, gradients = np.arange(2), np.zeros((2, 1), np.float32)
    for array in (ids, gradients):
        array.flags.writeable = False
    table.update(ids, gradients, 0.0, distinct=True)
    table.read(ids)
    table.adopt(table.copy())
    owned_mask(ids, 0, 2)
