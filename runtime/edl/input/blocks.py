"""Blocks: the arrays that a program makes of a range of rows, from which minibatches are sliced.

A training task is one block, because its rows are permuted together. Evaluation and prediction stream their tasks block
by block.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edl.arrays import Array, Features, arrays, checked_features, checked_labels, checked_weights, map_arrays
from edl.data import Reader
from edl.files import disk_folder
from edl.input.cache import ArrayCache
from edl.input.feed import convert_rows
from edl.input.unseen import UnseenIds
from edl.program import Mode, Program
from edl.spec import ONNX, SCORED, TREES, label_columns
from edl.tasks.ranges import LEAST_ROWS, generator
from edl.tasks.task import Task

if TYPE_CHECKING:
    import pyarrow as pa

_NO_LABELS = np.empty(0, dtype=np.float32)


class Arrays(NamedTuple):
    """Model input for some rows. `labels` is None in prediction; `weights` is None if each row counts once.

    Labels are float32 or int64; those to measure are float64 where the program gives float64.
    """

    features: Features
    labels: Array
    weights: Array | None

    @property
    def weight(self) -> float:
        """Sum of the row weights."""
        return len(self.labels) if self.weights is None else float(self.weights.sum(dtype=np.float64))

    @property
    def nbytes(self) -> int:
        """Size in bytes of all arrays."""
        weights = () if self.weights is None else (self.weights,)
        return sum(array.nbytes for _, array in arrays((self.features, self.labels, *weights)))

    def take(self, order: Array) -> Arrays:
        """Return a copy with the rows at the positions in `order`."""
        return Arrays(
            map_arrays(lambda array: array.take(order, axis=0), self.features),
            self.labels.take(order, axis=0),
            None if self.weights is None else self.weights.take(order),
        )


class Block(NamedTuple):
    """Rows as arrays. `batch` holds the rows as they were read, which prediction needs."""

    rows: int
    arrays: Arrays
    batch: pa.RecordBatch | None

    def part(self, first: int, last: int) -> Arrays:
        """Return views of the arrays of the rows [first, last)."""
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
    """Reader of rows that calls the program to make arrays of them.

    `kept` caches the arrays of training tasks for later epochs, and `measured` the arrays of validation rows; None
    reads these every time. `rows` is the number of training rows, or None if it is unknown. `part` returns the part of
    a training task to read: its number and the number of parts. `on_disk`: the one array of features of training rows
    is a file, mapped into memory.
    """

    program: Program
    reader: Reader
    kept: ArrayCache = field(default_factory=ArrayCache)
    rows: int | None = None
    measured: ArrayCache | None = None
    part: Callable[[], tuple[int, int]] = lambda: (0, 1)
    on_disk: bool = False

    @functools.cached_property
    def _unseen(self) -> UnseenIds:
        return UnseenIds(self.program)

    @property
    def keeps_all_rows(self) -> bool:
        """True if every training row is cached."""
        return self.kept.rows == self.rows

    def whole(self, task: Task, *, seed: int | None) -> Block:
        """Return the rows of a training task, permuted by (seed, epoch, task) unless `seed` is None.

        A part of a task stands for the whole of it, and keeps its order.
        """
        number, parts = self.part()
        rows = task.end - task.start
        first, last = (task.start + rows * share // parts for share in (number, number + 1))
        converted, places = self._make_arrays(first, last), np.arange(first, last)
        if seed is not None and parts == 1:
            order = generator(seed, task.number, task.start).permutation(rows)
            converted, places = converted.take(order), places[order]
        features = self._unseen.replace(converted.features, task.number, places)
        return Block(rows, converted._replace(features=features), None)

    def are_kept(self, task: Task, rows: int = LEAST_ROWS) -> bool:
        """Return True if the first block of an evaluation task is cached, and so are, probably, the others."""
        if self.measured is None:
            return False
        return self.measured.get(task.start, min(task.start + rows, task.end)) is not None

    def stream(self, task: Task, mode: Mode, rows: int = LEAST_ROWS) -> Iterator[Block]:
        """Yield the rows of a task in order, in blocks of `rows` rows."""
        for start in range(task.start, task.end, rows):
            end = min(start + rows, task.end)
            yield (
                self.read(start, end, mode)
                if self.measured is None
                else self._get_validation_block(start, end, mode)
            )

    def read(self, start: int, end: int, mode: Mode) -> Block:
        """Return the rows [start, end).

        Raises JobError if the reader or the program gives another number of rows, or no arrays.
        """
        fed = convert_rows(self.program, self.reader, start, end, mode, self._columns(mode))
        rows, by = end - start, fed.by
        framework = self.program.spec.framework
        exact, texts = self._has_trees or framework in SCORED, framework in (ONNX, "keras")
        features = checked_features(fed.features, rows, by, exact=exact, texts=texts)
        if mode == "predict":
            return Block(rows, Arrays(features, _NO_LABELS, None), fed.batch)
        ranking = bool(self.program.spec.label.group)
        labels = checked_labels(
            fed.labels,
            rows,
            by,
            ranking=ranking,
            exact=mode == "evaluate",
            any_shape=not self.program.checks_shapes,
        )
        return Block(rows, Arrays(features, labels, checked_weights(fed.weights, rows, by)), fed.batch)

    @property
    def _has_trees(self) -> bool:
        """True if the model is one of trees: all rounds of boosting need the same arrays."""
        return self.program.spec.framework in TREES

    def _get_validation_block(self, start: int, end: int, mode: Mode) -> Block:
        """Return validation rows, from the cache if they are in it."""
        cache = self.measured or ArrayCache(0)
        converted = cache.get(start, end)
        if converted is None:
            converted = self.read(start, end, mode).arrays
            cache.put(start, end, converted)
        return Block(end - start, converted, None)

    def _make_arrays(self, start: int, end: int) -> Arrays:
        """Return the arrays of training rows. They may be cached and must not be written to."""
        converted = self.kept.get(start, end)
        if converted is None:
            convert = self._convert_to_file if self.on_disk else self._convert
            converted = convert(start, end)
            if self._has_trees or (not self.program.edited and self.program.spec.training.epochs > 1):
                self.kept.put(start, end, converted)
        return converted

    def _convert(self, start: int, end: int) -> Arrays:
        return self.read(start, end, "train").arrays

    def _convert_to_file(self, start: int, end: int) -> Arrays:
        """Return the arrays of training rows, with the features in a file without a name, which ends with its map."""
        places = [(first, min(first + LEAST_ROWS, end)) for first in range(start, end, LEAST_ROWS)]
        with tempfile.TemporaryFile(dir=disk_folder(self.program.folder)) as file:
            blocks: list[Arrays] = []
            for first, last in places:
                block = self._convert(first, last)
                [(_, matrix)] = arrays(block.features)
                file.write(np.ascontiguousarray(matrix).data)
                blocks.append(block._replace(features=map_arrays(lambda array: array[:0], block.features)))
            file.flush()
            mapped = np.memmap(file, matrix.dtype, "r", shape=(end - start, matrix.shape[1]))
        weights = [block.weights for block in blocks if block.weights is not None]
        return Arrays(
            map_arrays(lambda _: mapped, blocks[0].features),
            np.concatenate([block.labels for block in blocks]),
            np.concatenate(weights) if weights else None,
        )

    def _columns(self, mode: Mode) -> Sequence[str] | None:
        """Columns that a compiled program reads, or None for an edited program, which may read any column."""
        spec = self.program.spec
        if self.program.edited:
            return None
        names = spec.columns
        if mode == "predict":
            return list(dict.fromkeys([*names, *spec.output.keep]))
        weight = [spec.weights.column] if spec.weights else []
        return list(dict.fromkeys([*names, *label_columns(spec.label), *weight]))
