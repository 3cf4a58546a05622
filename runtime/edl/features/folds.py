"""Folds of the rows of a training, for features that are statistics of the label.

A training row must not find its own label in its features. So the training rows are divided into folds by their place
in the pinned order, and the statistics are kept for each fold: a row has the statistics of all other folds.

A search with several folds validates on one block of the rows after another (`edl.spec.ValidationBlocks`), so that its
rows are divided by the blocks first, and each block into folds. A row of a trial has the statistics without its own
fold, and without the blocks that the trial does not train on. The rows in the gap before a block are a fold of their
own.

`FoldReader` adds the column `FOLD` to the rows of a training: the folds that a row's statistics leave out, as bits.
Rows without the column, as those to predict, have the statistics of all folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from edl.features.arrays import Bools, Ints
from edl.spec import Feature, JobSpec, Rows, TargetMean, ValidationBlocks

FOLD = "edl.fold"


class _FoldReader(Protocol):
    rows: int
    schema: pa.Schema

    def read(
        self, start: int, end: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]: ...


class Folds(NamedTuple):
    """Division of the first `rows` rows of the pinned order into `number` folds, as many in each of the blocks.

    blocks: of a search that validates on several parts, else None.
    """

    number: int
    rows: int
    blocks: ValidationBlocks | None = None

    @property
    def per_block(self) -> int:
        return self.number // count_blocks(self.blocks)

    def list_left_out(self, rows: Rows, start: int, end: int) -> Ints:
        """Return the bits of the folds that each of the rows [start, end) of a training leaves out."""
        places = np.arange(start, end)
        pinned = _find_pinned(rows, places)
        counted = (places < rows.training) & (pinned < self.rows)
        bits = np.where(counted, 1 << self.find_folds(np.minimum(pinned, self.rows - 1)), 0)
        is_tested = places >= rows.training + rows.validation
        return np.where(is_tested, bits, bits | self._list_untrained(rows))

    def find_folds(self, pinned: Ints) -> Ints:
        """Return the folds of rows by their places in the pinned order."""
        blocks, size = self.blocks, self.per_block
        if blocks is None:
            return pinned % size
        starts = np.array([blocks.find_block(block)[0] for block in range(len(blocks.sizes))])
        of_rows = len(starts) - np.searchsorted(starts[::-1], pinned, side="right")
        of_rows = np.minimum(of_rows, count_blocks(blocks) - 1)
        if not blocks.gaps:
            return of_rows * size + pinned % size
        next_start = np.append(starts, blocks.rows)[
            of_rows - 1
        ]  # of the later block, before which the gap is
        gaps = np.append(np.array(blocks.gaps), 0)[of_rows - 1]
        within = np.where(pinned >= next_start - gaps, size - 1, pinned % (size - 1))
        return of_rows * size + within

    def _list_untrained(self, rows: Rows) -> int:
        """Return the bits of the folds that a training of a search does not read."""
        blocks, size = self.blocks, self.per_block
        if blocks is None or not isinstance(rows.fold, int):
            return 0
        first = 0 if blocks.is_forward else rows.fold
        folds = list(range(first * size, (rows.fold + 1) * size))
        if blocks.gaps:
            folds.append((rows.fold + 2) * size - 1)
        return sum(1 << fold for fold in folds)


def count_blocks(blocks: ValidationBlocks | None) -> int:
    """Return the number of blocks, with the rows before all blocks as one of them."""
    return 1 if blocks is None else len(blocks.sizes) + blocks.is_forward


def keep_folds(number: int, left_out: int) -> Bools:
    """Return a mask of so many folds without those that the bits name."""
    kept: Bools = (left_out >> np.arange(number)) & 1 == 0
    return kept


def _find_pinned(rows: Rows, places: Ints) -> Ints:
    """Return the places in the pinned order of rows by their places in the order of a training."""
    parts = np.array([part for part in rows.list_parts() if part[0] < part[1]]).reshape(-1, 2)
    sizes = parts[:, 1] - parts[:, 0]
    ends = np.cumsum(sizes)
    shifts = np.append(parts[:, 0] - (ends - sizes), 0)
    pinned: Ints = places + shifts[np.searchsorted(ends, places, side="right")]
    return pinned


def folds_of(features: Sequence[Feature], rows: Rows) -> Folds | None:
    """Return the folds of features that are statistics of the label; None without any."""
    for feature in features:
        if isinstance(feature, TargetMean) and feature.folds:
            blocks = rows.blocks or None
            if blocks is None and feature.blocks > 1:
                blocks = ValidationBlocks.make_equal(feature.rows, feature.blocks)
            return Folds(feature.folds, feature.rows, blocks)
    return None


class FoldReader:
    """Reader that adds the column `FOLD` to the rows of another one."""

    def __init__(self, reader: _FoldReader, folds: Folds, rows: Rows) -> None:
        self._reader, self._folds, self._of = reader, folds, rows
        self.rows: int = reader.rows
        self.schema: pa.Schema = reader.schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order."""
        for batch in self._reader.read(start, end, columns):
            left_out = self._folds.list_left_out(self._of, start, start + batch.num_rows)
            start += batch.num_rows
            yield batch.append_column(FOLD, pa.array(left_out))


def with_folds(reader: _FoldReader, spec: JobSpec) -> _FoldReader:
    """Return the reader of a job's rows, with the column `FOLD` where the job is a training that needs it."""
    folds = folds_of(spec.features, spec.rows) if spec.kind == "train" else None
    return FoldReader(reader, folds, spec.rows) if folds else reader
