"""Blocks: the arrays that `feed` makes of a run of rows, ready to be cut into minibatches.

A training task is one block, because its rows are permuted together; evaluation and prediction stream their tasks
block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edl.data import Reader
from edl.errors import JobError
from edl.nn.structure import Array, Features, checked_features, checked_labels, map_arrays
from edl.program import Mode, Program
from edl.spec import source_columns
from edl.worker.tasks import LEAST_ROWS, Task, generator

if TYPE_CHECKING:
    import pyarrow as pa

_NO_LABELS = np.empty(0, dtype=np.float32)


class Block(NamedTuple):
    """Rows as arrays, and as the reader gave them. labels: of no rows in prediction."""

    rows: int
    features: Features
    labels: Array
    batch: pa.RecordBatch

    def arrays(self, first: int, last: int) -> tuple[Features, Array]:
        """Features and labels of the rows [first, last), without a copy."""
        if first == 0 and last == self.rows:
            return self.features, self.labels
        return map_arrays(lambda array: array[first:last], self.features), self.labels[first:last]


@dataclass(frozen=True)
class Blocks:
    """Reads rows and feeds them to the program."""

    program: Program
    reader: Reader

    def whole(self, task: Task, *, seed: int | None) -> Block:
        """A training task's rows, permuted by (seed, epoch, task) unless `seed` is None."""
        block = self.read(task.start, task.end, "train")
        if seed is None:
            return block
        order = generator(seed, task.epoch, task.start).permutation(block.rows)
        features = map_arrays(lambda array: array.take(order, axis=0), block.features)
        return block._replace(features=features, labels=block.labels.take(order, axis=0))

    def stream(self, task: Task, mode: Mode, rows: int = LEAST_ROWS) -> Iterator[Block]:
        """A task's rows in order, `rows` at a time."""
        for start in range(task.start, task.end, rows):
            yield self.read(start, min(start + rows, task.end), mode)

    def read(self, start: int, end: int, mode: Mode) -> Block:
        """The rows [start, end). JobError: the reader gives another number of rows, or feed no arrays of that many."""
        batch = _one_batch(self.reader, start, end, self._columns(mode))
        given = self.program.call("feed", batch, mode)
        if not isinstance(given, tuple) or len(given) != 2:
            raise JobError(
                f"feed in {self.program.file} gives {_described(given)}; it must return (features, labels)",
                hint="labels are None in the mode predict",
            )
        rows = end - start
        labels = _NO_LABELS if mode == "predict" else checked_labels(given[1], rows)
        return Block(rows, checked_features(given[0], rows), labels, batch)

    def _columns(self, mode: Mode) -> Sequence[str] | None:
        """The columns that the compiler's program reads; an edited one may read any."""
        spec = self.program.spec
        if self.program.edited:
            return None
        names = [name for feature in spec.features for name in source_columns(feature)]
        extra = spec.output.keep if mode == "predict" else (spec.label.column,)
        return list(dict.fromkeys([*names, *extra]))


def _described(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"


def _one_batch(reader: Reader, start: int, end: int, columns: Sequence[str] | None) -> pa.RecordBatch:
    import pyarrow as pa

    batches = list(reader.read(start, end, columns))
    rows = sum(batch.num_rows for batch in batches)
    if rows != end - start:
        raise JobError(f"the reader gave {rows} rows for the range [{start}, {end})")
    return (
        batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    )
