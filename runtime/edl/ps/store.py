"""What one server holds of a model: its flat parameters and its rows of every table.

Each has its own lock, and the kernels release the interpreter's, so calls about different tables go on side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edl.embeddings import Copied, Optimizer, RowTable, TableSpec, added
from edl.embeddings.table import Floats, Ids
from edl.errors import JobError, did_you_mean
from edl.ps.dense import FlatCopy, FlatParameters
from edl.ps.messages import Definition
from edl.ps.partitioning import Layout, Placement, owned


class RowGradients(NamedTuple):
    """Distinct ids, int64 (n,), and their gradients, float32 (n, dim)."""

    ids: Ids
    values: Floats


class Gradients(NamedTuple):
    """Of one push, or the mean of several. flat: of size 0 for none. rows: how many they are the mean over."""

    flat: Floats
    tables: dict[str, RowGradients]
    rate: float
    rows: int


class StoreCopy(NamedTuple):
    """Everything that a store holds. tables: in the order of the definition."""

    flat: FlatCopy
    tables: tuple[Copied, ...]


class Store:
    """The share of server `index` of `servers`. values: its flat parameters. JobError: no such model can be."""

    def __init__(self, definition: Definition, index: int, servers: int, values: Floats | None) -> None:
        self.definition = definition
        self.layout = Placement(definition.dense, servers).layout(index)
        if values is None:
            values = np.zeros(self.layout.size, np.float32)
        if values.shape != (self.layout.size,):
            raise JobError(f"server {index} has {self.layout.size:,} parameters, given are {values.size:,}")
        self.flat = FlatParameters(values, definition.optimizer)
        self.tables = {
            spec.name: RowTable(spec, definition.seed, definition.optimizer) for spec in definition.tables
        }
        self.state_layout = Layout(definition.state if index == 0 else ())

    @property
    def nbytes(self) -> int:
        """Of parameters, rows and slots."""
        return self.flat.nbytes + sum(table.nbytes for table in self.tables.values())

    def table(self, name: str) -> RowTable:
        """JobError: there is none of the name."""
        if name not in self.tables:
            raise JobError(f"there is no table {name}", hint=did_you_mean(name, self.tables))
        return self.tables[name]

    def check(self, gradients: Gradients) -> None:
        """JobError: they are not of this model. So none of them is applied when one cannot be."""
        flat = gradients.flat
        if flat.dtype != np.float32 or flat.shape not in ((0,), (self.layout.size,)):
            raise JobError(f"a push has {flat.size:,} gradients for {self.layout.size:,} parameters")
        for name, (ids, values) in gradients.tables.items():
            wanted = (len(ids), self.table(name).spec.dim) if ids.ndim == 1 else ()
            if ids.dtype != np.int64 or values.dtype != np.float32 or values.shape != wanted:
                raise JobError(f"gradients of the table {name} are {values.shape} for {ids.shape} ids")

    def apply(self, gradients: Gradients) -> None:
        """One step of the optimizer."""
        if gradients.flat.size:
            self.flat.update(gradients.flat, gradients.rate)
        for name, (ids, values) in gradients.tables.items():
            self.tables[name].update(ids, values, gradients.rate, distinct=True)

    def room(self) -> StoreCopy:
        """Memory for a copy."""
        return StoreCopy(self.flat.room(), tuple(table.room() for table in self.tables.values()))

    def copied(self, room: StoreCopy) -> StoreCopy:
        """A copy of everything, as quick as memory is."""
        tables = zip(self.tables.values(), room.tables, strict=True)
        return StoreCopy(self.flat.copied(room.flat), tuple(table.copied(own) for table, own in tables))

    def adopt(self, copied: StoreCopy) -> None:
        """Take over what `copied` gave; the arrays are the store's from now on."""
        self.flat.adopt(copied.flat)
        for table, own in zip(self.tables.values(), copied.tables, strict=True):
            table.adopt(own)


def mean(pushes: Sequence[Gradients]) -> Gradients:
    """The mean of pushes, weighted by their rows; one is its own mean, to the bit."""
    if len(pushes) == 1:
        return pushes[0]
    rows = sum(push.rows for push in pushes)
    shares = [np.float32(push.rows / rows) for push in pushes]
    flats = [push.flat * share for push, share in zip(pushes, shares, strict=True) if push.flat.size]
    names = dict.fromkeys(name for push in pushes for name in push.tables)
    tables = {}
    for name in names:
        parts = [
            (push.tables[name].ids, push.tables[name].values * share)
            for push, share in zip(pushes, shares, strict=True)
            if name in push.tables
        ]
        tables[name] = RowGradients(*added(parts))
    return Gradients(sum(flats[1:], flats[0]) if flats else pushes[0].flat, tables, pushes[0].rate, rows)


def warm_up() -> None:
    """Load the compiled kernels, for arrays that came over the wire: those are not to be written to."""
    table = RowTable(TableSpec("", 1), 0, Optimizer("torch", "sgd", {"momentum": 0.0}))
    ids, gradients = np.arange(2), np.zeros((2, 1), np.float32)
    for array in (ids, gradients):
        array.flags.writeable = False
    table.update(ids, gradients, 0.0, distinct=True)
    table.read(ids)
    table.adopt(table.copied())
    owned(ids, 0, 2)
