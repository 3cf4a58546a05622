"""Row lookup of a model's layers.

A layer is called with tensors of ids and reads rows that were fetched before the model ran: the ids of a minibatch
are known from `feed`. So the tensors must be features as `feed` returns them, and are recognized by identity. The
first call of a model, on a few rows, finds out which layer reads which arrays (`Discovery`). Every later call is
given a block of rows for each table, and for each read the positions of its ids in that block (`BoundLookup`).

    Read        arrays that one layer is called with: a layer over (f0, f1) reads both with the table's ids beginning
                at `first` of each
    look_up     function that a layer calls
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from edl.arrays import Array, Features, arrays
from edl.embeddings.table import Ids, RowTable, TableSpec
from edl.errors import JobError
from edl.ragged import Ragged

Tensor = Any


class Read(NamedTuple):
    """Paths of arrays among the features, and the offset that is added to the ids of each."""

    paths: tuple[str, ...]
    first: tuple[int, ...]

    def ids(self, features: Mapping[str, Array | Ragged]) -> Ids | Ragged:
        """Return the table's ids: of one array in its shape, of several (n,) as (n, arrays), of lists as lists."""
        array = features[self.paths[0]]
        if isinstance(array, Ragged):
            return Ragged(array.values + self.first[0], array.offsets, array.weights)
        if len(self.paths) == 1:
            return np.ascontiguousarray(array + self.first[0], np.int64)
        stacked: Ids = np.stack([np.asarray(features[path]) for path in self.paths], axis=1)
        stacked += np.array(self.first, np.int64)
        return stacked


class ListPlaces(NamedTuple):
    """Positions of ids in lists: position, row and weight of each id, all (t,)."""

    places: Tensor
    rows: Tensor
    weights: Tensor


class LookedUp(NamedTuple):
    """Result of a read: rows (u, dim), and the position of each id among them, in the shape of the ids or as lists."""

    block: Tensor
    places: Tensor | ListPlaces


def flat_ids(ids: Ids | Ragged) -> Ids:
    """Return all ids, (t,)."""
    return ids.values if isinstance(ids, Ragged) else ids.ravel()


def shape_positions(places: npt.NDArray[np.int32], ids: Ids | Ragged) -> Any:
    """Return the positions of `flat(ids)` in the form that a layer gets."""
    if not isinstance(ids, Ragged):
        return places.reshape(ids.shape)
    weights = np.ones(len(places), np.float32) if ids.weights is None else ids.weights.copy()
    return ListPlaces(places, ids.rows, weights)


class LookupReading(Protocol):
    def look_up(self, spec: TableSpec, tensors: Sequence[Tensor], first: Sequence[int]) -> LookedUp: ...


_current: ContextVar[LookupReading | None] = ContextVar("edl_row_tables", default=None)


def look_up(spec: TableSpec, tensors: Sequence[Tensor], first: Sequence[int]) -> LookedUp:
    """Return the rows for a layer. Raises JobError if the model is called outside of edl, or the ids are no feature."""
    reading = _current.get()
    if reading is None:
        raise JobError(
            f"the layer of the table {spec.name} was called outside of a job",
            hint="its rows are not in the model; `sqlflow export` writes a model that holds them",
        )
    return reading.look_up(spec, tensors, first)


@contextlib.contextmanager
def reading(source: LookupReading) -> Iterator[None]:
    """Provide a context in which layers read from `source`."""
    token = _current.set(source)
    try:
        yield
    finally:
        _current.reset(token)


class Discovery:
    """Recorder of the layers' reads. It answers with initial values. `features` are the NumPy forms of the tensors."""

    def __init__(
        self, features: Features, tensors: Features, tables: Mapping[str, RowTable], seed: int
    ) -> None:
        self.tables: dict[str, RowTable] = dict(tables)
        self.reads: dict[str, list[Read]] = {name: [] for name in tables}
        self.listed: dict[str, bool] = {}  # tables that are read by lists -> True if these have weights
        self._features = dict(arrays(features))
        self._paths = _paths(tensors)
        self._seed = seed

    def look_up(self, spec: TableSpec, tensors: Sequence[Tensor], first: Sequence[int]) -> LookedUp:
        read = _read(spec, self._paths, tensors, first)
        for path in read.paths:
            _check_ids(spec, path, self._features[path], len(read.paths))
        table = self.tables.setdefault(spec.name, RowTable(spec, self._seed))
        if table.spec != spec:
            raise JobError(
                f"two layers of the model have a table {spec.name}, and differ in what it is",
                hint="layers that share a table have the same dim, initial and num_ids",
            )
        reads = self.reads.setdefault(spec.name, [])
        if read not in reads:
            reads.append(read)
        ids = read.ids(self._features)
        every = flat_ids(ids)
        if isinstance(ids, Ragged):
            self.listed[spec.name] = ids.weights is not None
        return LookedUp(table.read(every), shape_positions(np.arange(len(every), dtype=np.int32), ids))


class BoundLookup:
    """Rows of one call of the model: the block of each table, and the positions by read. `tensors` are its features."""

    def __init__(self, tensors: Features, tables: Mapping[str, tuple[Tensor, Mapping[Read, Tensor]]]) -> None:
        self._paths = _paths(tensors)
        self._tables = tables

    def look_up(self, spec: TableSpec, tensors: Sequence[Tensor], first: Sequence[int]) -> LookedUp:
        read = _read(spec, self._paths, tensors, first)
        block, places = self._tables.get(spec.name, (None, {}))
        if read not in places:
            raise JobError(
                f"the table {spec.name} is read in a way in which the model did not read it at first",
                hint="a layer reads the same features in training and in prediction",
            )
        return LookedUp(block, places[read])


def _paths(tensors: Features) -> dict[int, str]:
    return {id(tensor): path for path, tensor in arrays(tensors)}


def _read(spec: TableSpec, paths: Mapping[int, str], tensors: Sequence[Tensor], first: Sequence[int]) -> Read:
    if any(id(tensor) not in paths for tensor in tensors):
        raise JobError(
            f"the table {spec.name} is read with ids that the model computes",
            hint="rows are fetched before the model runs: let feed give the ids as a feature of their own",
        )
    return Read(tuple(paths[id(tensor)] for tensor in tensors), tuple(first))


def _check_ids(spec: TableSpec, path: str, ids: npt.NDArray[Any] | Ragged, count: int) -> None:
    if ids.dtype != np.int64:
        raise JobError(
            f"the table {spec.name} is read with {path}, which is {ids.dtype}", hint="ids are int64"
        )
    if count > 1 and (ids.ndim != 1 or isinstance(ids, Ragged)):
        raise JobError(f"the table {spec.name} is read with several arrays, of which {path} is not (n,)")
