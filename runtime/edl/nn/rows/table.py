"""A table of rows: any int64 id to a vector of float32, with the slots of an optimizer behind it.

A row exists from the first time that it is trained with. Before that it reads as its first value, a function of (seed,
table, id) alone: whoever makes it, in whatever order, makes the same. So the order of work never shows in a model, and
what is stored is sorted by id. One lock guards a table; the kernels release the interpreter's.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.nn.initial import EMBEDDING_SCALE, Initial
from edl.nn.rows.moving import Mover
from edl.nn.rows.rules import Optimizer

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

_KINDS: dict[Initial, int] = {"zeros": 0, "uniform": 1, "normal": 2}
_LEAST_ROWS = 1024
_U64 = 2**64


class TableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a table is, as a message says it. initial: of its rows, in [-scale, scale) or of the deviation scale.

    num_ids: ids lie in [0, num_ids) where that is known, which an exported model needs; 0 where it is not.
    """

    name: str
    dim: int
    initial: Initial = "uniform"
    scale: float = EMBEDDING_SCALE
    num_ids: int = 0


class Stored(NamedTuple):
    """A table's rows by ascending id: int64 (n,), float32 (n, dim) and (n, slots, dim); and the steps it has taken."""

    ids: Ids
    rows: Floats
    slots: Floats
    steps: int


class Copied(NamedTuple):
    """A table as it lies in memory: int64 ids (n,) in the order in which their rows were made, float32 data
    (n, dim x (1 + slots)), each row with its slots behind it; and the steps it has taken."""

    ids: Ids
    data: Floats
    steps: int


class RowTable:
    """Rows by id; `optimizer` moves them, None for a table that is only read."""

    def __init__(self, spec: TableSpec, seed: int, optimizer: Optimizer | None = None) -> None:
        if spec.dim < 1 or spec.initial not in _KINDS:
            known = ", ".join(_KINDS)
            raise JobError(f"the table {spec.name} cannot have {spec.dim} columns that start as {spec.initial}",
                           hint=f"at least one column, and one of {known}")  # fmt: skip
        self._kernels = _compiled()
        self.spec = spec
        self.seed = seed
        self._mover = Mover(optimizer) if optimizer is not None else None
        self._slots = np.array(self._mover.slots if self._mover else (), np.float32)
        self._lock = threading.Lock()
        self.steps = 0
        self._count = 0
        self._known: Ids
        self._data: Floats
        self._index: Ids
        self._order: Ids  # of the rows by ascending id, as of the last `chunk`
        self._clear()

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Of rows and slots."""
        return self._count * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Of a row with its slots."""
        return int(self._data.strides[0])

    @property
    def seed(self) -> int:
        return self._seed

    @seed.setter
    def seed(self, seed: int) -> None:
        """Of the rows that are not there yet."""
        name = hashlib.blake2b(self.spec.name.encode(), digest_size=8).digest()
        mixed = hashlib.blake2b((seed % _U64).to_bytes(8, "little") + name, digest_size=8).digest()
        self._seed = seed
        self._first = _KINDS[self.spec.initial], np.uint64(int.from_bytes(mixed, "little")), self.spec.scale

    def read(self, ids: Ids) -> Floats:
        """The rows of the ids, float32 (n, dim); first values of those that are not there, which stay so."""
        with self._lock:
            numbers, _ = self._find(ids)
            return self._gathered(numbers, ids)

    def gather(self, ids: Ids) -> Floats:
        """The rows of the ids, float32 (n, dim), to be trained with; those that are not there are made."""
        with self._lock:
            return self._gathered(self._found(ids), ids)

    def update(self, ids: Ids, gradients: Floats, rate: float, *, distinct: bool = False) -> None:
        """One step of the optimizer, with the gradients (n, dim) of the rows of these ids; others stay.

        An id that comes more than once has the sum of its gradients. distinct: none does. JobError: the table has no
        optimizer.
        """
        if self._mover is None:
            raise JobError(f"the table {self.spec.name} has no optimizer")
        gradients = np.ascontiguousarray(gradients, np.float32)
        if not distinct:
            ids, places = distinct_ids(ids)
            gradients = self._summed(gradients, places, len(ids))
        with self._lock:
            numbers = self._found(ids)
            self.steps += 1
            self._mover.move(self._data, self.spec.dim, numbers, gradients, rate, self.steps)

    def export(self) -> Stored:
        """Copies of everything, the same bytes for the same table."""
        with self._lock:
            order = np.argsort(self._known[: self._count])
            data = self._data[order]
            dim = self.spec.dim
            slots = data[:, dim:].reshape(len(order), len(self._slots), dim)
            return Stored(self._known[order], data[:, :dim].copy(), slots.copy(), self.steps)

    def chunk(self, after: int | None, limit: int) -> tuple[Ids, Floats, bool]:
        """Rows by ascending id, those above `after`, `limit` at most: ids, rows (n, dim), and whether more follow."""
        with self._lock:
            known = self._known[: self._count]
            if len(self._order) != self._count:  # rows are made and never lost
                self._order = np.argsort(known)
            start = 0
            if after is not None:
                start = int(np.searchsorted(known, after, side="right", sorter=self._order))
            numbers = self._order[start : start + limit]
            return known[numbers], self._data[numbers, : self.spec.dim], start + limit < self._count

    def room(self) -> Copied:
        """Arrays for a copy, larger than it takes now, and written to: the system is slow to give memory at first."""
        rows = self._count + self._count // 16 + _LEAST_ROWS
        room = Copied(np.empty(rows, np.int64), np.empty((rows, self._data.shape[1]), np.float32), 0)
        room.ids.fill(0)
        room.data.fill(0)
        return room

    def copied(self, room: Copied | None = None) -> Copied:
        """A copy of everything, into `room` where it is large enough."""
        with self._lock:
            known, data = self._known[: self._count], self._data[: self._count]
            if room is None or len(room.ids) < self._count:
                return Copied(known.copy(), data.copy(), self.steps)
            copied = Copied(room.ids[: self._count], room.data[: self._count], self.steps)
            np.copyto(copied.ids, known)
            np.copyto(copied.data, data)
            return copied

    def adopt(self, copied: Copied) -> None:
        """Take over everything; the arrays are the table's from now on. JobError: they are not those of such a table.

        Ids are distinct.
        """
        self._check_copied(copied.ids, copied.data)
        with self._lock:
            self._clear()
            self._known, self._data, self._count = copied.ids, copied.data, len(copied.ids)
            self._index = self._filled(self._count)
            self.steps = copied.steps

    def put(self, ids: Ids, rows: Floats) -> None:
        """Set these rows, which are distinct: (n, dim) to start from, or (n, dim x (1 + slots)) with their slots.

        JobError: they are not those of such a table.
        """
        if rows.shape != (len(ids), self.spec.dim):
            self._check_copied(ids, rows)
        with self._lock:
            numbers = self._found(ids)
            self._data[numbers, : rows.shape[1]] = rows

    def load(self, stored: Stored) -> None:
        """Take over all rows; slots start anew where `stored` has none of them, (n, 0, dim).

        JobError, and nothing changed: the arrays are not those of such a table.
        """
        self.check(stored)
        with self._lock:
            self._clear()
            self._found(stored.ids)
            self._data[: self._count, : self.spec.dim] = stored.rows
            if stored.slots.shape[1]:
                width = self._data.shape[1] - self.spec.dim
                self._data[: self._count, self.spec.dim :] = stored.slots.reshape(self._count, width)
            self.steps = stored.steps

    def check(self, stored: Stored) -> None:
        """JobError: the arrays are not those of such a table."""
        ids, rows, slots, _ = stored
        dim, kept = self.spec.dim, len(self._slots)
        fits = ids.ndim == 1 and ids.dtype == np.int64 and rows.dtype == slots.dtype == np.float32
        if not fits or rows.shape != (len(ids), dim) or slots.shape not in (
            (len(ids), 0, dim), (len(ids), kept, dim)):  # fmt: skip
            raise JobError(
                f"the table {self.spec.name} takes (n, {dim}) rows and (n, {kept}, {dim}) slots, "
                f"not {rows.shape} and {slots.shape}"
            )
        if not (ids[1:] > ids[:-1]).all():
            raise JobError(f"the ids of the table {self.spec.name} do not ascend")

    def _check_copied(self, ids: Ids, data: Floats) -> None:
        width = self._data.shape[1]
        if ids.dtype != np.int64 or data.dtype != np.float32 or data.shape != (len(ids), width):
            raise JobError(f"the table {self.spec.name} keeps {width} numbers a row, given are {data.shape}")

    # With the lock held --------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self.steps = 0
        self._count = 0
        self._known = np.empty(_LEAST_ROWS, np.int64)
        self._data = np.empty((_LEAST_ROWS, self.spec.dim * (1 + len(self._slots))), np.float32)
        self._index = np.zeros((2 * _LEAST_ROWS, 2), np.int64)
        self._order = np.empty(0, np.int64)

    def _find(self, ids: Ids) -> tuple[Ids, int]:
        numbers = np.empty(len(ids), np.int64)
        return numbers, self._kernels.find(self._index, ids, numbers)

    def _found(self, ids: Ids) -> Ids:
        """The numbers of the ids' rows; those that are missing are made."""
        numbers, missing = self._find(ids)
        if missing:
            self._make_room(self._count + missing)
            before = self._count
            self._count = self._kernels.add(self._index, self._known, before, ids, numbers)
            self._kernels.first_rows(
                self._data, self.spec.dim, self._known, before, self._count, *self._first, self._slots
            )
        return numbers

    def _make_room(self, rows: int) -> None:
        if rows > len(self._known):
            room = max(rows, 2 * len(self._known))
            self._known = _grown(self._known, self._count, room)
            self._data = _grown(self._data, self._count, room)
        if 4 * rows > 3 * len(self._index):
            self._index = self._filled(rows)

    def _filled(self, rows: int) -> Ids:
        """An index of the rows that there are, with room for `rows`."""
        index = np.zeros((1 << (2 * max(rows, _LEAST_ROWS) - 1).bit_length(), 2), np.int64)
        self._kernels.fill_index(index, self._known, self._count)
        return index

    def _gathered(self, numbers: Ids, ids: Ids) -> Floats:
        rows = np.empty((len(ids), self.spec.dim), np.float32)
        self._kernels.gather(self._data, numbers, ids, *self._first, rows)
        return rows

    def _summed(self, gradients: Floats, places: npt.NDArray[np.int32], count: int) -> Floats:
        if count == len(places):
            return gradients
        sums = np.zeros((count, self.spec.dim), np.float32)
        self._kernels.summed(gradients, places, sums)
        return sums


def distinct_ids(ids: Ids) -> tuple[Ids, npt.NDArray[np.int32]]:
    """The distinct ids in the order they first appear, and the place of each id among them."""
    kernels = _compiled()
    found, places = np.empty(len(ids), np.int64), np.empty(len(ids), np.int32)
    count = kernels.distinct(ids, places, found)
    return found[:count], places


def added(parts: Sequence[tuple[Ids, Floats]]) -> tuple[Ids, Floats]:
    """Gradients (n, dim) of ids (n,), distinct within each part: those of all parts, each id once, added in order."""
    ids, places = distinct_ids(np.concatenate([ids for ids, _ in parts]))
    sums = np.zeros((len(ids), parts[0][1].shape[1]), np.float32)
    at = 0
    for own, gradients in parts:
        sums[places[at : at + len(own)]] += gradients
        at += len(own)
    return ids, sums


def _compiled() -> Any:
    """The kernels; numba is imported here, with the first table."""
    from edl.nn.rows import kernels

    return kernels


def _grown(array: Any, used: int, rows: int) -> Any:
    grown = np.empty((rows, *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown
