"""Table of rows: int64 ids mapped to float32 vectors, each followed by the slots of an optimizer.

A row is created when it is first trained with, or as its `limits` say (`edl.embeddings.limits`). Until then, and after
its eviction, it reads as its initial value, a function of (seed, table, id) alone, which is the same for every process
and order. So the order of work does not affect a model, and stored rows are sorted by id. One lock guards a table; the
kernels release the GIL.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from edl.embeddings.cut import ALL, NO_IDS, CutRows, Evictions, TableCut
from edl.embeddings.initializers import EMBEDDING_SCALE, Initial
from edl.embeddings.limits import Cells, CountingFilter, find_expired_rows, surplus
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.recent import RecentLookups
from edl.embeddings.update import RowUpdater
from edl.errors import ClusterError, JobError
from edl.spec import RowLimits

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

_NO_CELLS: Cells = np.empty(0, np.uint8)
_KINDS: dict[Initial, int] = {"zeros": 0, "uniform": 1, "normal": 2}
_LEAST_ROWS = 1024
_U64 = 2**64


class TableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Definition of a table, as sent in messages.

    `initial` is the distribution of initial values: in [-scale, scale), or with standard deviation scale. Ids lie in
    [0, num_ids), which an exported model needs; num_ids is 0 if unknown.
    """

    name: str
    dim: int
    initial: Initial = "uniform"
    scale: float = EMBEDDING_SCALE
    num_ids: int = 0


class StoredTable(NamedTuple):
    """Rows of a table by ascending id: int64 (n,), float32 (n, dim) and (n, slots, dim), and the number of its
    steps; the last step of each row, int64 (n,), or None if they are unknown; counts of ids without a row.
    """

    ids: Ids
    rows: Floats
    slots: Floats
    steps: int
    used: Ids | None = None
    counts: Cells = _NO_CELLS


class TableCopy(NamedTuple):
    """Table in memory order: int64 ids (n,), float32 data (n, dim x (1 + slots)), each row followed by its slots, the
    number of its steps, the last step of each row, int64 (n,), and counts of ids without a row, of size 0 for none.
    """

    ids: Ids
    data: Floats
    steps: int
    used: Ids
    counts: Cells = _NO_CELLS


class RowTable:
    """Rows by id. `optimizer` updates them; it is None for a read-only table.

    `evicted` counts rows that were evicted, `refused` gradients of ids that had no row yet.
    """

    def __init__(
        self,
        spec: TableSpec,
        seed: int,
        optimizer: Optimizer | None = None,
        limits: RowLimits = RowLimits(),  # noqa: B008 - it is immutable
    ) -> None:
        if spec.dim < 1 or spec.initial not in _KINDS:
            kinds = ", ".join(_KINDS)
            raise JobError(f"the table {spec.name} cannot have {spec.dim} columns that start as {spec.initial}",
                           hint=f"at least one column, and one of {kinds}")  # fmt: skip
        self._kernels = _import_kernels()
        self.spec = spec
        self.seed = seed
        self.limits = limits
        self.evicted = self.refused = 0
        self._mover = RowUpdater(optimizer) if optimizer is not None else None
        self._slots = np.array(self._mover.slots if self._mover else (), np.float32)
        self._lock = threading.Lock()
        self.steps = 0
        self._count = 0
        self._known: Ids
        self._used: Ids  # last step of each row
        self._data: Floats
        self._index: Ids
        self._cuts: list[TableCut]
        self._evictions: Evictions
        self._order: Ids  # rows by ascending id, as of the last `chunk`
        self._cuts = []
        self._clear()

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of all rows and slots."""
        return self._count * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row with its slots."""
        return int(self._data.strides[0])

    @property
    def seed(self) -> int:
        return self._seed

    @seed.setter
    def seed(self, seed: int) -> None:
        """Seed of the rows that are not created yet."""
        name = hashlib.blake2b(self.spec.name.encode(), digest_size=8).digest()
        mixed = hashlib.blake2b((seed % _U64).to_bytes(8, "little") + name, digest_size=8).digest()
        self._seed = seed
        self._first = _KINDS[self.spec.initial], np.uint64(int.from_bytes(mixed, "little")), self.spec.scale

    def read(self, ids: Ids) -> Floats:
        """Return the rows of the ids, float32 (n, dim); a missing row reads as its initial value and is not created."""
        with self._lock:
            numbers, _ = self._find(ids)
            return self._gather_rows(numbers, ids)

    def read_at(self, cut: TableCut, ids: Ids) -> Floats:
        """Return the rows of the ids as they were when the cut was made; see `read`. `pieces` of it must not be read.

        If the table has got another content meanwhile, they are the present rows.
        """
        with self._lock:
            numbers, _ = self._find(ids)
            if cut.count and cut.is_closed:
                return self._gather_rows(numbers, ids)
            rows = self._gather_rows(cut.find_unchanged(numbers), ids)
            cut.replace_changed(ids, numbers, rows)
            return rows

    def gather(self, ids: Ids) -> Floats:
        """Return the rows of the ids, float32 (n, dim), for training; missing rows are created, unless ids are counted
        first.
        """
        with self._lock:
            return self._gather_rows(self._find(ids)[0] if self._filter else self._found(ids), ids)

    def update(self, ids: Ids, gradients: Floats, rate: float, *, distinct: bool = False) -> None:
        """Take one optimizer step with the gradients (n, dim) of the rows of these ids; other rows stay.

        Gradients of a repeated id are summed. `distinct` asserts that no id is repeated. Raises JobError if the
        table has no optimizer.
        """
        if self._mover is None:
            raise JobError(f"the table {self.spec.name} has no optimizer")
        gradients = np.ascontiguousarray(gradients, np.float32)
        if not distinct:
            ids, places = distinct_ids(ids)
            gradients = self._sum_rows(gradients, places, len(ids))
        with self._lock:
            numbers = self._found(ids, self._filter)
            if self._filter is not None and (numbers < 0).any():
                kept = numbers >= 0
                self.refused += len(numbers) - int(np.count_nonzero(kept))
                numbers, gradients = numbers[kept], gradients[kept]
            self.steps += 1
            self._keep(numbers)
            self._used[numbers] = self.steps
            self._mover.move(self._data, self.spec.dim, numbers, gradients, rate, self.steps)
            self._evict(find_expired_rows(self.limits, self._used[: self._count], self.steps))
            self._evict(surplus(self.limits, self._used[: self._count], self._known[: self._count]))

    def export(self) -> StoredTable:
        """Return copies of everything, bitwise equal for equal tables."""
        with self._lock:
            rows = self._arrays().at(slice(self._count))
            return self._copy_rows(rows, self.steps, self._counts().copy())

    def read_cut(self, cut: TableCut) -> StoredTable:
        """Return the content of a cut, as `export` would have at its moment, and close it.

        Raises ClusterError if the table has got another content meanwhile.
        """
        pieces = [*cut.pieces()]
        cut.close()
        rows = CutRows(*map(np.concatenate, zip(*pieces, strict=True))) if pieces else cut.like
        if len(rows.ids) != cut.count:
            raise ClusterError(f"the table {self.spec.name} was replaced while it was read")
        return self._copy_rows(rows, cut.steps, cut.counts)

    def chunk(self, after: int | None, limit: int) -> tuple[Ids, Floats, bool]:
        """Return rows by ascending id, above `after`, at most `limit`: ids, rows (n, dim), and True if more follow."""
        with self._lock:
            row_ids = self._known[: self._count]
            if len(self._order) != self._count:
                self._order = np.argsort(row_ids)
            start = 0
            if after is not None:
                start = int(np.searchsorted(row_ids, after, side="right", sorter=self._order))
            numbers = self._order[start : start + limit]
            return row_ids[numbers], self._data[numbers, : self.spec.dim], start + limit < self._count

    def cut(self, since: int = ALL) -> TableCut:
        """Return the present content, to be read while the table changes. Close it.

        `since`: only what changed after that step, the one of an earlier cut, as far as that is known.
        """
        with self._lock:
            self._cuts = [cut for cut in self._cuts if not cut.is_closed]
            gone = self._evictions.after(since, self.steps)
            since, gone = (ALL, NO_IDS) if gone is None else (since, gone)
            counts = self._counts().copy()
            cut = TableCut(self._lock, self._arrays, self._count, self.steps, counts, since, gone)
            self._cuts.append(cut)
            return cut

    def forget(self, step: int) -> None:
        """Forget the evictions up to a step: no cut asks for changes since an earlier one."""
        with self._lock:
            self._evictions.forget(step)

    def drop(self, ids: Ids) -> None:
        """Remove the rows of these distinct ids, as far as there are any."""
        with self._lock:
            numbers, _ = self._find(ids)
            self._remove(np.sort(numbers[numbers >= 0]))

    def copy(self) -> TableCopy:
        """Return a copy of everything."""
        with self._lock:
            ids, data, used = self._arrays().at(np.arange(self._count))
            return TableCopy(ids, data, self.steps, used, self._counts().copy())

    def adopt(self, copied: TableCopy) -> None:
        """Replace everything by these arrays. The table then owns them. Ids are distinct.

        Raises JobError if they don't match the table.
        """
        self._check_copied(copied.ids, copied.data)
        with self._lock:
            self._clear()
            self._known, self._data, self._count = copied.ids, copied.data, len(copied.ids)
            self._used = copied.used
            self._index = self._index_present_rows(self._count)
            self.steps = copied.steps
            self._merge(copied.counts)

    def put(self, ids: Ids, rows: Floats, used: Ids | None = None) -> None:
        """Set these distinct rows: (n, dim) initial rows, or (n, dim x (1 + slots)) with their slots, and the last step
        of each.

        Raises JobError if they don't match the table.
        """
        if rows.shape != (len(ids), self.spec.dim):
            self._check_copied(ids, rows)
        with self._lock:
            numbers = self._found(ids)
            self._keep(numbers)
            self._data[numbers, : rows.shape[1]] = rows
            self._used[numbers] = self.steps if used is None else used

    def merge_counts(self, counts: Cells) -> None:
        """Take over counts of ids without a row, see `CountingFilter.merge`."""
        with self._lock:
            self._merge(counts)

    def load(self, stored: StoredTable) -> None:
        """Replace all rows; slots are initialized if `stored` has none, (n, 0, dim).

        Raises JobError, without any change, if the arrays don't match the table.
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
            self._used[: self._count] = stored.steps if stored.used is None else stored.used
            self._merge(stored.counts)

    def check(self, stored: StoredTable) -> None:
        """Raise JobError if the arrays don't match the table."""
        ids, rows, slots = stored[:3]
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
        for cut in self._cuts:
            cut.void()
        self.steps = 0
        self._count = 0
        self._known = np.empty(_LEAST_ROWS, np.int64)
        self._used = np.empty(_LEAST_ROWS, np.int64)
        self._data = np.empty((_LEAST_ROWS, self.spec.dim * (1 + len(self._slots))), np.float32)
        self._index = np.zeros((2 * _LEAST_ROWS, 2), np.int64)
        self._order = np.empty(0, np.int64)
        self._recent = RecentLookups()
        self._cuts = []
        self._evictions = Evictions()
        least = self.limits.min_count
        self._filter = CountingFilter(least, self.spec.num_ids, self._kernels) if least > 1 else None

    def _copy_rows(self, rows: CutRows, steps: int, counts: Cells) -> StoredTable:
        """Return copies of these rows by ascending id."""
        order, dim = np.argsort(rows.ids), self.spec.dim
        data = rows.data[order]
        slots = data[:, dim:].reshape(len(order), len(self._slots), dim)
        return StoredTable(
            rows.ids[order], data[:, :dim].copy(), slots.copy(), steps, rows.used[order], counts
        )

    def _arrays(self) -> CutRows:
        return CutRows(self._known, self._data, self._used)

    def _keep(self, numbers: Ids, *, moved: bool = False) -> None:
        """Let cuts copy the rows with these distinct numbers before they change, or move."""
        for cut in self._cuts:
            cut.keep(numbers, moved=moved)

    def _counts(self) -> Cells:
        return _NO_CELLS if self._filter is None else self._filter.cells

    def _merge(self, counts: Cells) -> None:
        if self._filter is not None and counts.size:
            self._filter.merge(counts)

    def _evict(self, numbers: Ids) -> None:
        """Remove the rows with these ascending numbers, and remember their ids for the next cut."""
        if not len(numbers):
            return
        self._evictions.add(self.steps, self._known[numbers], self._count)
        self._remove(numbers)
        self.evicted += len(numbers)

    def _remove(self, numbers: Ids) -> None:
        """Remove the rows with these ascending numbers, with their slots."""
        if len(numbers):
            if self._cuts:  # the last rows take the places of the removed ones
                moved = np.union1d(numbers, np.arange(self._count - len(numbers), self._count))
                self._keep(moved, moved=True)
            self._count = self._kernels.remove(
                self._index, self._known, self._data, self._used, self._count, numbers
            )
            self._order = np.empty(0, np.int64)
            self._recent.clear()

    def _find(self, ids: Ids) -> tuple[Ids, int]:
        """Return the row numbers of the ids, -1 of an id without a row, and the number of these."""
        if (earlier := self._recent.find(ids)) is not None:
            return earlier, 0
        numbers = np.empty(len(ids), np.int64)
        missing = self._kernels.find(self._index, ids, numbers)
        if not missing:
            self._recent.add(ids, numbers)
        return numbers, missing

    def _found(self, ids: Ids, admission: CountingFilter | None = None) -> Ids:
        """Return the row numbers of the ids; missing rows are created if `admission` admits them, else their number is
        negative.
        """
        numbers, missing = self._find(ids)
        if missing and admission is not None:
            admission.admit(ids, numbers)
            missing = int(np.count_nonzero(numbers == -1))
        if missing:
            self._make_room(self._count + missing)
            before = self._count
            self._count = self._kernels.add(self._index, self._known, before, ids, numbers)
            self._kernels.first_rows(
                self._data, self.spec.dim, self._known, before, self._count, *self._first, self._slots
            )
            self._used[before : self._count] = self.steps
            if admission is None:  # all of them have a row now
                self._recent.add(ids, numbers)
        return numbers

    def _make_room(self, rows: int) -> None:
        if rows > len(self._known):
            room = max(rows, 2 * len(self._known))
            self._known = _grow_array(self._known, self._count, room)
            self._used = _grow_array(self._used, self._count, room)
            self._data = _grow_array(self._data, self._count, room)
        if 4 * rows > 3 * len(self._index):
            self._index = self._index_present_rows(rows)

    def _index_present_rows(self, rows: int) -> Ids:
        """Return an index of the present rows, with room for `rows`."""
        index = np.zeros((1 << (2 * max(rows, _LEAST_ROWS) - 1).bit_length(), 2), np.int64)
        self._kernels.fill_index(index, self._known, self._count)
        return index

    def _gather_rows(self, numbers: Ids, ids: Ids) -> Floats:
        rows = np.empty((len(ids), self.spec.dim), np.float32)
        self._kernels.gather(self._data, numbers, ids, *self._first, rows)
        return rows

    def _sum_rows(self, gradients: Floats, places: npt.NDArray[np.int32], count: int) -> Floats:
        if count == len(places):
            return gradients
        sums = np.zeros((count, self.spec.dim), np.float32)
        self._kernels.sum_gradients(gradients, places, sums)
        return sums


def distinct_ids(ids: Ids) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return the distinct ids in order of appearance, and the position of each id among them."""
    kernels = _import_kernels()
    unique, places = np.empty(len(ids), np.int64), np.empty(len(ids), np.int32)
    count = kernels.find_distinct(ids, places, unique)
    return unique[:count], places


def sum_parts(parts: Sequence[tuple[Ids, Floats]]) -> tuple[Ids, Floats]:
    """Sum gradients (n, dim) of ids (n,), distinct within each part, over all parts, in order; each id appears once."""
    ids, places = distinct_ids(np.concatenate([ids for ids, _ in parts]))
    sums = np.zeros((len(ids), parts[0][1].shape[1]), np.float32)
    at = 0
    for part_ids, gradients in parts:
        sums[places[at : at + len(part_ids)]] += gradients
        at += len(part_ids)
    return ids, sums


def _import_kernels() -> Any:
    """Return the kernels; imports numba with the first table."""
    from edl.embeddings import kernels

    return kernels


def _grow_array(array: Any, used: int, rows: int) -> Any:
    grown = np.empty((rows, *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown
