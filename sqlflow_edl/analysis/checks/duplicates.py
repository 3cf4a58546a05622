"""Detection of validation rows that are also training rows: rows with equal feature values, compared by hash.

Validation rows are hashed first, up to `HELD_OUT_ROWS`; then each training row is looked up among them. The most
distinct columns distinguish most rows, so only these are hashed for every row.

Id columns are no features, but are known only after the pass. Columns that may be ids (no value occurs twice in the
validation rows) are therefore compared one by one, with the first validation row that is equal in all other columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from edl.features.arrays import Bools, Ints, is_text, plain_array, valid_mask
from edl.features.hashing import Hashes, combine
from sqlflow_edl.analysis.checks.warning import HELD_OUT_ROWS
from sqlflow_edl.analysis.statistics.accumulators import hashes

_TELLING = 3  # columns that are hashed for every training row
_BITS = 1 << 21  # entries of a filter of training rows, 2 MiB; at 100,000 validation rows 1 in 20 passes
_MOST_IDS = 4  # columns compared one by one; each doubles the size of the index
_MISSING = np.uint64(0x6E756C6C)


class Duplicates:
    """Counter of validation rows that are also training rows: `hold_out` takes those, then `add` the others.

    columns: the features, each of one value a row.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = list(columns)
        self._held: list[list[Hashes]] = [[] for _ in columns]
        self._may_be_id = [True] * len(self._columns)
        self._index: _Index | None = None
        self.rows = 0  # validation rows that are looked up

    def hold_out(self, batch: pa.RecordBatch) -> None:
        batch = batch.slice(0, HELD_OUT_ROWS - self.rows)
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        for position, name in enumerate(self._columns):
            array = plain_array(batch.column(name))
            whole = is_text(array.type) or types.is_integer(array.type)
            self._may_be_id[position] = self._may_be_id[position] and whole
            self._held[position].append(_hash_values(array))

    def add(self, batch: pa.RecordBatch) -> None:
        """Look up a batch of training rows among the validation rows."""
        if not self.rows:
            return
        if self._index is None:
            of_columns = {
                name: np.concatenate(parts) for name, parts in zip(self._columns, self._held, strict=True)
            }
            whole = [name for name, may in zip(self._columns, self._may_be_id, strict=True) if may]
            self._index = _Index(of_columns, whole)
            self._held = []
        self._index.look_for(batch)

    def found(self, columns: Collection[str]) -> int:
        """Return the number of validation rows, out of `rows`, that equal a training row.

        columns: the final feature columns.
        """
        return self._index.found(columns) if self._index is not None else 0


class _Index:
    """Index of the validation rows by the hash of their values.

    of_columns: column -> hashes of its values. whole: columns of text or whole numbers.
    """

    def __init__(self, of_columns: dict[str, Hashes], whole: Collection[str]) -> None:
        distinct = {name: _count_distinct(column_hashes) for name, column_hashes in of_columns.items()}
        rows = len(next(iter(of_columns.values())))
        self._ids = [name for name in whole if distinct[name] == rows][: min(_MOST_IDS, len(of_columns) - 1)]
        others = (name for name in of_columns if name not in self._ids)
        self._others = sorted(others, key=lambda name: -distinct[name])
        telling = combine([of_columns[name] for name in self._others[:_TELLING]])
        self._table: Bools = np.zeros(_BITS, dtype=np.bool_)
        self._table[_place(telling)] = True
        keys = combine([of_columns[name] for name in self._others])
        self._keys, first, self._of_row = np.unique(keys, return_index=True, return_inverse=True)
        self._of_ids = [of_columns[name][first] for name in self._ids]
        # Indexed by key and a bit set of the equal ids: true if a training row matched so.
        self._seen: npt.NDArray[np.bool_] = np.zeros((len(self._keys), 1 << len(self._ids)), dtype=np.bool_)

    def look_for(self, batch: pa.RecordBatch) -> None:
        telling = [_hash_values(batch.column(name)) for name in self._others[:_TELLING]]
        rows = np.flatnonzero(self._table[_place(combine(telling))])
        if not len(rows):
            return
        rest = (_hash_rows(batch, name, rows) for name in self._others[_TELLING:])
        keys = combine([*(column_hashes[rows] for column_hashes in telling), *rest])
        places = np.clip(np.searchsorted(self._keys, keys), 0, len(self._keys) - 1)
        equal = np.flatnonzero(self._keys[places] == keys)
        rows, places = rows[equal], places[equal]
        bits = np.zeros(len(rows), dtype=np.int64)
        for bit, (name, held) in enumerate(zip(self._ids, self._of_ids, strict=True)):
            bits += (_hash_rows(batch, name, rows) == held[places]).astype(np.int64) << bit
        self._seen[places, bits] = True

    def found(self, columns: Collection[str]) -> int:
        mask = sum(1 << bit for bit, name in enumerate(self._ids) if name in columns)
        enough = [bits for bits in range(self._seen.shape[1]) if bits & mask == mask]
        equal = np.flatnonzero(self._seen[:, enough].any(axis=1))
        return int(np.isin(self._of_row, equal).sum())


def row_hashes(batch: pa.RecordBatch, columns: Sequence[str]) -> Hashes:
    """Return a hash of each row's values in the columns, each of one value a row."""
    return combine([_hash_values(batch.column(name)) for name in columns])


def _count_distinct(values: Hashes) -> int:
    """Count different values by sorting, which is several times faster here than the hash table of `numpy.unique`."""
    return int(np.count_nonzero(np.diff(np.sort(values)))) + 1


def _hash_rows(batch: pa.RecordBatch, name: str, rows: Ints) -> Hashes:
    return _hash_values(batch.column(name).take(pa.array(rows)))


def _hash_values(array: pa.Array) -> Hashes:
    """Return a hash of each value that does not depend on the width of its type; NULL and NaN are one value."""
    array = plain_array(array)
    if types.is_integer(array.type) or types.is_null(array.type):
        array = array.cast(pa.float64(), safe=False)
    is_known = valid_mask(array)
    if types.is_floating(array.type):
        array = array.cast(pa.float64())
        is_known = is_known & ~np.isnan(array.to_numpy(zero_copy_only=False))
    result = hashes(array)
    return result if is_known.all() else np.where(is_known, result, _MISSING)


def _place(values: Hashes) -> Ints:
    places: Ints = (values & np.uint64(_BITS - 1)).astype(np.int64)
    return places
