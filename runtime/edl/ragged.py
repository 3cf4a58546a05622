"""Lists of ids, a list for each row: features returned by `feed` for a column of tags or of clicked items.

    Ragged(values=[7, 7, 2, 5], offsets=[0, 3, 3, 4])    rows: [7, 7, 2], [] and [5]

A row table reads them: `Embedding("tags", 8, "mean")`. The model itself sees the number of ids of each row, int64
(n,).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edl.errors import JobError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Ragged:
    """Lists of ids: `values`, int64 (t,), concatenated, and `offsets`, int64 (n + 1,), their starts and the end.

    `weights` is the weight of each id in its row, float32 (t,); None is 1 for each. Raises JobError for inconsistent
    arrays.
    """

    __slots__ = ("offsets", "values", "weights")
    dtype = np.dtype(np.int64)  # of the model's input
    ndim = 1

    def __init__(self, values: Any, offsets: Any, weights: Any = None) -> None:
        self.values: Ints = np.ascontiguousarray(values, np.int64)
        self.offsets: Ints = np.ascontiguousarray(offsets, np.int64)
        self.weights: Floats | None = None if weights is None else np.ascontiguousarray(weights, np.float32)
        self._check()

    @classmethod
    def of(cls, lists: pa.ListArray) -> Ragged:
        """Convert a column of lists of integers; a NULL list is empty. Raises JobError if a list holds a NULL."""
        if not hasattr(lists, "flatten"):  # a column of NULLs, which has no type
            return cls([], np.zeros(len(lists) + 1))
        ids = lists.flatten()
        if ids.null_count:
            raise JobError(f"{ids.null_count} ids in lists are NULL", hint="leave them out in the query")
        counts = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        return cls(ids.to_numpy(), np.concatenate([[0], np.cumsum(counts)]))

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """Concatenate the rows. Raises JobError if only some parts have weights."""
        weighted = [part.weights for part in parts if part.weights is not None]
        if weighted and len(weighted) != len(parts):
            raise JobError("some lists of ids have weights and some have none")
        counts = np.concatenate([part.counts for part in parts])
        return cls(
            np.concatenate([part.values for part in parts]),
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate(weighted) if weighted else None,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, {len(self.values)} ids)"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self),)

    @property
    def nbytes(self) -> int:
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.values.nbytes + self.offsets.nbytes + weights

    @property
    def counts(self) -> Ints:
        """Number of ids of each row, int64 (n,)."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> npt.NDArray[np.int32]:
        """Row of each id, (t,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.counts)

    def pad(self) -> npt.NDArray[Any]:
        """Return the input of an exported model: ids int64 (n, k), padded with -1, k at least 2.

        With weights float64 (n, k, 2), each id with its weight.
        """
        widest = max(2, int(self.counts.max(initial=0)))
        places = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], self.counts)
        ids = np.full((len(self), widest), -1)
        ids[self.rows, places] = self.values
        if self.weights is None:
            return ids
        weights = np.zeros(ids.shape)
        weights[self.rows, places] = self.weights
        return np.stack([ids.astype(np.float64), weights], axis=2)

    def __getitem__(self, rows: slice) -> Ragged:
        """Return consecutive rows, without a copy of their ids."""
        first, last, _ = rows.indices(len(self))
        offsets = self.offsets[first : max(first, last) + 1]
        ids = slice(offsets[0], offsets[-1])
        weights = None if self.weights is None else self.weights[ids]
        return Ragged(self.values[ids], offsets - offsets[0], weights)

    def take(self, order: Ints, axis: int = 0) -> Ragged:
        """Return the rows with these numbers, in this order; `axis` exists for compatibility with arrays."""
        counts = self.counts[order]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        picked = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][order] - offsets[:-1], counts)
        return Ragged(self.values[picked], offsets, None if self.weights is None else self.weights[picked])

    def _check(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or not len(offsets) or self.values.ndim != 1:
            raise JobError("a Ragged has values (t,) and offsets (n + 1,)")
        if offsets[0] != 0 or offsets[-1] != len(self.values) or (np.diff(offsets) < 0).any():
            raise JobError(
                f"the offsets of a Ragged of {len(self.values)} values do not rise from 0 to that number"
            )
        if self.weights is not None and self.weights.shape != self.values.shape:
            raise JobError(f"a Ragged has {len(self.values)} values and {len(self.weights)} weights")
