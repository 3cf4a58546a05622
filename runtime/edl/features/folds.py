"""Folds of the rows of a training, for features that are statistics of the label.

A training row must not find its own label in its features. So the training rows are divided into folds by their place
in the pinned order, and the statistics are kept for each fold: a row has the statistics of all other folds.

A search with several folds validates on one block of the rows after another (`edl.data.readers`), so that its rows are
divided into as many blocks first, and each block into folds. A row of a trial has the statistics without its own fold
and without the block that validates the trial, if one does.

`FoldReader` adds the column `FOLD` to the rows of a training, with a code of the folds that a row's statistics leave
out. Rows without the column, as those to predict, have the statistics of all folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from edl.features.arrays import Bools, Ints
from edl.spec import Feature, JobSpec, Rows, TargetMean

FOLD = "edl.fold"


class _FoldReader(Protocol):
    rows: int
    schema: pa.Schema

    def read(
        self, start: int, end: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]: ...


class Folds(NamedTuple):
    """Division of the first `rows` rows of the pinned order into `number` folds, as many in each of the `blocks`."""

    number: int
    rows: int
    blocks: int = 1

    def codes(self, rows: Rows, start: int, end: int) -> Ints:
        """Return the code of each of the rows [start, end) of a training, by their places in its order."""
        rotated = rows.training + rows.validation
        places = np.arange(start, end)
        pinned = np.where(places < rotated, (places + rows.rotation) % max(rotated, 1), places)
        counted = (places < rows.training) & (pinned < self.rows)
        codes = np.where(counted, self.of(np.minimum(pinned, self.rows - 1)), self.number)
        if self.blocks > 1 and rows.validation:
            validates = self._block(np.array([(rows.training + rows.rotation) % rotated]))[0]
            codes = np.where(places < rotated, codes + (self.number + 1) * (validates + 1), codes)
        return codes

    def of(self, pinned: Ints) -> Ints:
        """Return the folds of rows by their places in the pinned order."""
        per_block = self.number // self.blocks
        return self._block(pinned) * per_block + pinned % per_block

    def _block(self, pinned: Ints) -> Ints:
        """Return the blocks of rows; block 0 are the last ones."""
        if self.blocks == 1:
            return np.zeros_like(pinned)
        return np.minimum((self.rows - 1 - pinned) // (self.rows // self.blocks), self.blocks - 1)

    def statistics_mask(self, code: int) -> Bools:
        """Return a mask of the folds that the statistics of rows with that code contain."""
        block, fold = divmod(code, self.number + 1)
        folds = np.arange(self.number)
        per_block = self.number // self.blocks
        kept: Bools = (folds != fold) & (folds // per_block != block - 1)
        return kept


def folds_of(features: Sequence[Feature]) -> Folds | None:
    """Return the folds of features that are statistics of the label; None without any."""
    encodings = (feature for feature in features if isinstance(feature, TargetMean) and feature.folds)
    return next((Folds(feature.folds, feature.rows, feature.blocks) for feature in encodings), None)


class FoldReader:
    """Reader that adds the column `FOLD` to the rows of another one."""

    def __init__(self, reader: _FoldReader, folds: Folds, rows: Rows) -> None:
        self._reader, self._folds, self._of = reader, folds, rows
        self.rows: int = reader.rows
        self.schema: pa.Schema = reader.schema

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order."""
        for batch in self._reader.read(start, end, columns):
            codes = self._folds.codes(self._of, start, start + batch.num_rows)
            start += batch.num_rows
            yield batch.append_column(FOLD, pa.array(codes))


def with_folds(reader: _FoldReader, spec: JobSpec) -> _FoldReader:
    """Return the reader of a job's rows, with the column `FOLD` where the job is a training that needs it."""
    folds = folds_of(spec.features) if spec.kind == "train" else None
    return FoldReader(reader, folds, spec.rows) if folds else reader
