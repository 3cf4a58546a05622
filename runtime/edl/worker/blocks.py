"""Blocks: the arrays that a program makes of a run of rows, ready to be cut into minibatches.

A training task is one block, because its rows are permuted together; evaluation and prediction stream their tasks
block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edl.data import Reader
from edl.nn.structure import (
    Array,
    Features,
    arrays,
    checked_features,
    checked_labels,
    checked_weights,
    map_arrays,
)
from edl.program import Mode, Program
from edl.tasks.ranges import LEAST_ROWS, generator
from edl.tasks.task import Task
from edl.worker.inputs import given
from edl.worker.kept import Kept

if TYPE_CHECKING:
    import pyarrow as pa

_NO_LABELS = np.empty(0, dtype=np.float32)


class Arrays(NamedTuple):
    """What the program gives of some rows. labels: of no rows in prediction. weights: None counts each row once."""

    features: Features
    labels: Array
    weights: Array | None

    @property
    def weight(self) -> float:
        """How much the rows count together."""
        return len(self.labels) if self.weights is None else float(self.weights.sum(dtype=np.float64))

    @property
    def nbytes(self) -> int:
        """Of all of them together."""
        weights = () if self.weights is None else (self.weights,)
        return sum(array.nbytes for _, array in arrays((self.features, self.labels, *weights)))

    def take(self, order: Array) -> Arrays:
        """A copy with the rows in another order."""
        return Arrays(
            map_arrays(lambda array: array.take(order, axis=0), self.features),
            self.labels.take(order, axis=0),
            None if self.weights is None else self.weights.take(order),
        )


class Block(NamedTuple):
    """Rows as arrays; batch: as the reader gave them, which prediction needs."""

    rows: int
    arrays: Arrays
    batch: pa.RecordBatch | None

    def part(self, first: int, last: int) -> Arrays:
        """The arrays of the rows [first, last), without a copy."""
        if first == 0 and last == self.rows:
            return self.arrays
        features, labels, weights = self.arrays
        return Arrays(
            map_arrays(lambda array: array[first:last], features),
            labels[first:last],
            None if weights is None else weights[first:last],
        )


@dataclass(frozen=True)
class Blocks:
    """Reads rows and has the program make arrays of them.

    kept: those of training tasks, for the next epochs. rows: that there are to train on; None: nobody says.
    """

    program: Program
    reader: Reader
    kept: Kept = field(default_factory=Kept)
    rows: int | None = None

    @property
    def all_kept(self) -> bool:
        """Whether no row has to be read for training any more."""
        return self.kept.rows == self.rows

    def whole(self, task: Task, *, seed: int | None) -> Block:
        """A training task's rows, permuted by (seed, epoch, task) unless `seed` is None."""
        if seed is None:
            return self.read(task.start, task.end, "train")
        order = generator(seed, task.number, task.start).permutation(task.end - task.start)
        return Block(len(order), self._made(task.start, task.end).take(order), None)

    def stream(self, task: Task, mode: Mode, rows: int = LEAST_ROWS) -> Iterator[Block]:
        """A task's rows in order, `rows` at a time."""
        for start in range(task.start, task.end, rows):
            yield self.read(start, min(start + rows, task.end), mode)

    def read(self, start: int, end: int, mode: Mode) -> Block:
        """The rows [start, end). JobError: the reader or the program gives another number of rows, or no arrays."""
        fed = given(self.program, self.reader, start, end, mode, self._columns(mode))
        rows, by = end - start, fed.by
        features = checked_features(fed.features, rows, by)
        if mode == "predict":
            return Block(rows, Arrays(features, _NO_LABELS, None), fed.batch)
        labels = checked_labels(fed.labels, rows, by)
        return Block(rows, Arrays(features, labels, checked_weights(fed.weights, rows, by)), fed.batch)

    def _made(self, start: int, end: int) -> Arrays:
        """The arrays of rows to train on, which nobody may write into."""
        found = self.kept.get(start, end)
        if found is None:
            found = self.read(start, end, "train").arrays
            if not self.program.edited and self.program.spec.training.epochs > 1:
                self.kept.put(start, end, found)
        return found

    def _columns(self, mode: Mode) -> Sequence[str] | None:
        """The columns that the compiler's program reads; an edited one may read any."""
        spec = self.program.spec
        if self.program.edited:
            return None
        names = spec.columns
        if mode == "predict":
            return list(dict.fromkeys([*names, *spec.output.keep]))
        weight = spec.weights.column if spec.weights else ""
        return list(dict.fromkeys([*names, spec.label.column, *([weight] if weight else [])]))
