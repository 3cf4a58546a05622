"""Row tables of one model, as its adapter uses them.

    keys = tables.keys(features)              the ids that are read, of as many rows as there are
    need = tables.need(keys, 0, 512)          the distinct ids of a minibatch
    rows = tables.fetch(need, train=True)     and their rows
    …                                         loss and gradients, the blocks being arguments
    tables.update(gradients, rate)            a step

This module determines the rows of a minibatch; a source provides them: the tables themselves, or another one that a
strategy sets. Tables that are read with the same ids, as the two of DeepFM, share one computation of distinct ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from edl.arrays import Array, Features, arrays
from edl.embeddings.lookup import BoundLookup, Discovery, Read, flat_ids, reading, shape_positions
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.table import Floats, Ids, RowTable, StoredTable, distinct_ids
from edl.errors import JobError
from edl.ragged import Ragged
from edl.spec import RowLimits

Keys = Mapping[Read, Ids | Ragged]
Places = npt.NDArray[np.int32]
Cut = Callable[[], tuple[dict[str, Array], dict[str, Array]]]  # weights and state of one moment


class RowGradients(NamedTuple):
    """Gradients of a table: distinct ids, int64 (u,), and a gradient for each, (u, dim)."""

    ids: Ids
    values: Any


class Need(NamedTuple):
    """Rows that a minibatch reads. `ids` has the distinct ids by table, (u,); tables that are read alike share an
    array. `places` has the positions of each read as `reading.shaped` returns them, group by group.
    """

    ids: dict[str, Ids]
    places: list[Any]


class Fetched(NamedTuple):
    """Need with its rows. `blocks` has them by table, (u, dim)."""

    ids: Mapping[str, Ids]
    blocks: dict[str, Floats]
    places: list[Any]


class RowSource(Protocol):
    """Source of rows."""

    def rows(self, ids: Mapping[str, Ids], *, train: bool) -> dict[str, Floats]:
        """Return the rows (u, dim) of the ids (u,), by table. `train` means that they are about to be trained."""
        ...


class _Group(NamedTuple):
    """Tables that are read alike."""

    reads: tuple[Read, ...]
    tables: tuple[str, ...]


class Walk:
    """Sequence of minibatches: fetch the rows of one, update them, fetch the rows of the next."""

    def __init__(self, tables: Tables, keys: Keys, size: int) -> None:
        self._tables = tables
        self._keys = keys
        self._size = size
        self._fetched = Fetched({}, {}, [])

    def fetch(self, number: int) -> Fetched:
        start = number * self._size
        need = self._tables.need(self._keys, start, start + self._size)
        self._fetched = self._tables.fetch(need, train=True)
        return self._fetched

    def move(self, gradients: Mapping[str, Any], rate: float) -> None:
        """Update the last fetched rows by their gradients, by table."""
        ids = self._fetched.ids
        self._tables.update({name: RowGradients(ids[name], gradients[name]) for name in ids}, rate)


class Tables:
    """Row tables, empty until `discovered` has observed a call of the model; a model without row layers has none.

    `limits` are the job's limits. `source` provides fetched rows, at first from the tables themselves. `listed` has the
    tables that are read by lists of ids, with True if these have weights.
    """

    def __init__(self, seed: int, limits: RowLimits = RowLimits()) -> None:  # noqa: B008 - it is immutable
        self._seed = seed
        self.limits = limits
        self.tables: dict[str, RowTable] = {}
        self.source: RowSource = self
        self._groups: tuple[_Group, ...] = ()
        self.listed: Mapping[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self.tables)

    @property
    def largest(self) -> int:
        """Bytes of the rows of all ids with their slots, over the tables with a known number of ids."""
        return sum(table.spec.num_ids * table.row_bytes for table in self.tables.values())

    @contextmanager
    def discover(self, features: Features, tensors: Features) -> Iterator[None]:
        """Provide a context in which the model is called with `tensors`, to find out what its layers read."""
        discovery = Discovery(features, tensors, self.tables, self._seed)
        with reading(discovery):
            yield
        self.tables, self.listed = discovery.tables, discovery.listed
        alike: dict[tuple[Read, ...], list[str]] = {}
        for name, reads in discovery.reads.items():
            alike.setdefault(tuple(sorted(reads)), []).append(name)
        self._groups = tuple(_Group(reads, tuple(names)) for reads, names in alike.items())

    @contextmanager
    def bound(self, tensors: Features, blocks: Mapping[str, Any], places: Sequence[Any]) -> Iterator[None]:
        """Provide a context in which the model is called with `tensors`, and its layers read blocks and positions of
        `fetch`.
        """
        following = iter(places)
        by_table: dict[str, tuple[Any, Mapping[Read, Any]]] = {}
        for group in self._groups:
            places_of_reads = {read: next(following) for read in group.reads}
            by_table |= {name: (blocks[name], places_of_reads) for name in group.tables}
        with reading(BoundLookup(tensors, by_table)):
            yield

    def follow(self, optimizer: Optimizer, limits: RowLimits) -> None:
        """Use this optimizer and these limits for the rows from now on."""
        self.tables = {
            name: RowTable(table.spec, table.seed, optimizer, limits) for name, table in self.tables.items()
        }

    # Minibatches -------------------------------------------------------------------------------------------

    def keys(self, features: Features) -> Keys:
        """Return the ids of all reads."""
        by_path = dict(arrays(features))
        reads = dict.fromkeys(read for group in self._groups for read in group.reads)
        return {read: read.ids(by_path) for read in reads}

    def need(self, keys: Keys, start: int, end: int, some: slice | None = None) -> Need:
        """Return what the minibatch [start, end) reads, with the positions of the rows of `some`, or of all rows."""
        ids: dict[str, Ids] = {}
        places: list[Any] = []
        for group in self._groups:
            parts = [keys[read][start:end] for read in group.reads]
            shown = parts if some is None else [keys[read][some] for read in group.reads]
            distinct, where = _find_distinct(parts if some is None else [*parts, *shown])
            places += _split(where[len(where) - sum(len(flat_ids(part)) for part in shown) :], shown)
            ids |= dict.fromkeys(group.tables, distinct)
        return Need(ids, places)

    def need_together(self, keys: Keys, start: int, end: int, size: int) -> tuple[dict[str, Ids], list[Need]]:
        """Return the distinct ids that the rows [start, end) read, by table, and what each minibatch of `size` of them
        reads. The ids of these needs are positions among the distinct ids.
        """
        ids: dict[str, Ids] = {}
        needs = [Need({}, []) for _ in range(start, end, size)]
        for group in self._groups:
            parts = [keys[read][start:end] for read in group.reads]
            distinct, where = _find_distinct(parts)
            ids |= dict.fromkeys(group.tables, distinct)
            positions = [
                _replace_ids(part, piece) for part, piece in zip(parts, _pieces(where, parts), strict=True)
            ]
            for number, need in enumerate(needs):
                some = [part[number * size : (number + 1) * size] for part in positions]
                numbers, places = _find_distinct(some)
                need.ids.update(dict.fromkeys(group.tables, numbers))
                need.places.extend(_split(places, some))
        return ids, needs

    def fetch(self, need: Need, *, train: bool) -> Fetched:
        """Return the rows from the source. `train` means that they are about to be trained."""
        return Fetched(need.ids, self.source.rows(need.ids, train=train), need.places)

    def rows(self, ids: Mapping[str, Ids], *, train: bool) -> dict[str, Floats]:
        """Return the tables' own rows. With `train`, missing ones are created."""
        return {
            name: self.tables[name].gather(ids_of_table) if train else self.tables[name].read(ids_of_table)
            for name, ids_of_table in ids.items()
        }

    def walk(self, features: Features, size: int) -> Walk:
        """Return the sequence of minibatches of these rows."""
        return Walk(self, self.keys(features), size)

    def update(self, gradients: Mapping[str, RowGradients], rate: float) -> None:
        """Take one step of each table with the gradients of its rows."""
        for name, row_gradients in gradients.items():
            self.tables[name].update(row_gradients.ids, row_gradients.values, rate, distinct=True)

    # Weights -----------------------------------------------------------------------------------------------

    def get_weights(self) -> dict[str, Array]:
        """Return `<table>:ids` and `<table>:rows` of the trained rows by ascending id, and `<table>:seed` of all
        others.
        """
        weights: dict[str, Array] = {}
        for name, table in self.tables.items():
            weights |= _weights(name, table.export(), table.seed)
        return weights

    def get_state(self) -> dict[str, Array]:
        """Return `<table>:slots` of the rows of `get_weights`, in their order, and the number `<table>:steps`.

        Tables with limits have also the last step of each row, `<table>:used`, and `<table>:counts` of ids without one.
        """
        state: dict[str, Array] = {}
        for name, table in self.tables.items():
            state |= _state(name, table.export(), table.limits)
        return state

    def cut(self) -> Cut:
        """Return a function that reads the present weights and state while the tables change, once and in any thread.

        It raises ClusterError if a table has got another content meanwhile.
        """
        cuts = [(name, table, table.cut(), table.seed) for name, table in self.tables.items()]

        def read() -> tuple[dict[str, Array], dict[str, Array]]:
            weights, state = dict[str, Array](), dict[str, Array]()
            for name, table, cut, seed in cuts:
                stored = table.read_cut(cut)
                weights |= _weights(name, stored, seed)
                state |= _state(name, stored, table.limits)
            return weights, state

        return read

    def set_state(self, state: Mapping[str, Array]) -> None:
        """Load the slots of the rows that `set_weights` got. Raises JobError if they don't match."""
        for name, table in self.tables.items():
            slots, steps = (state.get(f"{name}:{part}") for part in ("slots", "steps"))
            if slots is None or steps is None:
                raise JobError(f"the state has no slots of the table {name}")
            used, counts = (state.get(f"{name}:{part}") for part in ("used", "counts"))
            stored = table.export()._replace(slots=slots, steps=int(steps[0]), used=used)
            table.load(stored if counts is None else stored._replace(counts=counts))

    def own_shapes(self, weights: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
        """Return the shapes that the tables' weights must have, for as many rows as given."""
        shapes: dict[str, tuple[int, ...]] = {}
        for name, table in self.tables.items():
            ids = weights.get(f"{name}:ids", np.empty(0))
            shapes |= {
                f"{name}:ids": (ids.size,),
                f"{name}:rows": (ids.size, table.spec.dim),
                f"{name}:seed": (1,),
            }
        return shapes

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        """Load the tables' weights and check their shapes; slots are initialized.

        Raises JobError, without any change, if they are no table's.
        """
        stored_rows = {name: self._copy_table(name, weights) for name in self.tables}
        for name, stored in stored_rows.items():
            self.tables[name].check(stored)
        for name, stored in stored_rows.items():
            self.tables[name].load(stored)
            self.tables[name].seed = int(weights[f"{name}:seed"][0])

    def _copy_table(self, name: str, weights: Mapping[str, Array]) -> StoredTable:
        ids, rows, seed = (weights[f"{name}:{part}"] for part in ("ids", "rows", "seed"))
        if seed.dtype != np.int64:
            raise JobError(f"the seed of the table {name} is {seed.dtype}, not int64")
        return StoredTable(ids, rows, np.empty((len(ids), 0, self.tables[name].spec.dim), np.float32), 0)

    def whole(self, name: str) -> Floats:
        """Return all rows of a table with ids in [0, num_ids). Raises JobError if num_ids is unknown."""
        table = self.tables[name]
        if not table.spec.num_ids:
            raise JobError(
                f"the table {name} takes any id, an exported model needs to know how many",
                hint="give its layer num_ids=…, or ElasticDL's input_dim=… (ids 0, 1, …, num_ids - 1)",
            )
        return table.read(np.arange(table.spec.num_ids))


def _weights(name: str, stored: StoredTable, seed: int) -> dict[str, Array]:
    return {
        f"{name}:ids": stored.ids,
        f"{name}:rows": stored.rows,
        f"{name}:seed": np.array([seed], np.int64),
    }


def _state(name: str, stored: StoredTable, limits: RowLimits) -> dict[str, Array]:
    state: dict[str, Array] = {
        f"{name}:slots": stored.slots,
        f"{name}:steps": np.array([stored.steps], np.int64),
    }
    if limits != RowLimits() and stored.used is not None:
        state |= {f"{name}:used": stored.used, f"{name}:counts": stored.counts}
    return state


def _find_distinct(parts: Sequence[Ids | Ragged]) -> tuple[Ids, Places]:
    """Return the distinct ids of the parts in order of first appearance, and the position of each id among them."""
    every = [flat_ids(part) for part in parts]
    return distinct_ids(every[0] if len(every) == 1 else np.concatenate(every))


def _pieces(places: Places, parts: Sequence[Ids | Ragged]) -> list[Places]:
    """Return the positions of each part."""
    return np.split(places, np.cumsum([len(flat_ids(part)) for part in parts])[:-1])


def _split(places: Places, parts: Sequence[Ids | Ragged]) -> list[Any]:
    """Return the positions of each part, in its shape."""
    return [shape_positions(piece, part) for piece, part in zip(_pieces(places, parts), parts, strict=True)]


def _replace_ids(part: Ids | Ragged, ids: Places) -> Ids | Ragged:
    """Return a part with other ids in place of its own."""
    values = ids.astype(np.int64)
    return (
        Ragged(values, part.offsets, part.weights) if isinstance(part, Ragged) else values.reshape(part.shape)
    )
