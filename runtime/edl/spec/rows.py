"""Rows of a job: their numbers, the choice of the validation rows, and the blocks that validate in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

SplitBy = Literal["random", "time", "group", "stratified", "column"]


class SplitFolds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Folds of a search in a split: blocks of the pinned order that validate in turn.

    There are `number` of them if the query has at most `most` rows; 0 is any number. `test` is the share of the rows
    that are in no fold. By time, the rows before all blocks are as many as the rows of a block, and a training does
    not read the rows less than `gap` before its block: days of a date or timestamp, units of a number. `label` is a
    column of the rows of groups: if it has few values, all folds have them in about the same shares.
    """

    number: int
    most: int = 0
    test: float = 0.0
    gap: float = 0.0
    label: str = ""

    def divides(self, total: int) -> bool:
        """Return True if so many rows are divided into folds."""
        return not self.most or total <= self.most


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Choice of the validation rows among a query's rows; they come last in the pinned order.

    `by` time, they are the rows with the latest values of `column`; by group, all rows of some values of `column`;
    stratified, the same share of each class of the label `column`, at least one row of two; by column, those in which
    `column` is true (not 0) or NULL, without regard to `fraction`. At random, `column` may be the label. Rows that are
    equal in all columns are on one side, unless they are observations of their own, as `edl.sources.row_order` says.
    `fraction` is the share of the rows if there are at least `fewest`; of fewer there are none. `since` is the
    first value of `column` among the validation rows by time, as text, once rows are pinned. With `folds` the rows are
    divided into blocks in the same way.
    """

    by: SplitBy
    column: str = ""
    fraction: float = 0.1
    fewest: int = 0
    since: str = ""
    folds: SplitFolds | msgspec.UnsetType = msgspec.UNSET

    def rows(self, total: int) -> int:
        """Return the number of validation rows among `total` that is aimed at, never all."""
        return 0 if total < self.fewest else min(int(total * self.fraction + 0.5), max(total - 1, 0))


class ValidationBlocks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Blocks of rows that validate in turn: the last of the first `rows` rows of the pinned order.

    `sizes` are the rows of each block; the first one is the last in the order. A training reads all rows outside of its
    block, or with `is_forward` only those before it, without the `gaps` rows directly before it, if there are any.
    """

    rows: int
    sizes: tuple[int, ...]
    is_forward: bool = False
    gaps: tuple[int, ...] = ()

    @classmethod
    def make_equal(cls, rows: int, number: int) -> ValidationBlocks:
        """Return blocks of equal size; rows that remain are in no block."""
        return cls(rows, (rows // number,) * number)

    @property
    def scored_rows(self) -> int:
        """Number of rows that validate a training."""
        return sum(self.sizes)

    def find_block(self, fold: int) -> tuple[int, int]:
        """Return the range of the rows of a block."""
        end = self.rows - sum(self.sizes[:fold])
        return end - self.sizes[fold], end

    def find_training(self, fold: int) -> tuple[tuple[int, int], ...]:
        """Return the ranges of the training rows of a fold, in their order."""
        start, end = self.find_block(fold)
        before = 0, start - (self.gaps[fold] if self.gaps else 0)
        return (before,) if self.is_forward else (before, (end, self.rows))


class FoldValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metric of a model on the rows of each fold that did not train it, the first fold first.

    None stands for a fold without a value, as of the AUC of rows of one class.
    """

    metric: str
    values: tuple[float | None, ...]


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fixed rows from which statistics were computed and which the job reads.

    `pinned` is False if the query was only analysed (compile, EXPLAIN); then the job pins the rows when it starts.
    The first `training` rows of the pinned order are training rows, the `validation` rows after them are only
    measured. With `blocks` these are the numbers of the `fold`, whose training rows come first in its own order, and
    then its block; without `fold` they are the numbers of the first block. `rotation` is of earlier versions, which had
    blocks of equal size only.
    """

    pinned: bool
    total: int
    training: int
    validation: int = 0
    digest: str = ""  # of schema and values, in the pinned order
    rotation: int = 0
    blocks: ValidationBlocks | msgspec.UnsetType = msgspec.UNSET
    fold: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def test(self) -> int:
        """Number of rows that are neither trained on nor validated on, the last ones."""
        if self.blocks and not isinstance(self.fold, int):
            return self.total - self.blocks.rows
        return self.total - self.training - self.validation

    @property
    def scored_rows(self) -> int:
        """Number of rows that validate a training of a search."""
        return self.blocks.scored_rows if self.blocks else self.validation

    def select_fold(self, fold: int) -> Rows:
        """Return the rows of one fold. Raises ValueError without blocks."""
        if not self.blocks:
            raise ValueError("the rows have no blocks")
        training = sum(end - start for start, end in self.blocks.find_training(fold))
        validation = self.blocks.sizes[fold]
        total = training + validation + self.test
        return msgspec.structs.replace(self, total=total, training=training, validation=validation, fold=fold)

    def list_parts(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the pinned rows in the order of the fold: training rows, its block, test rows."""
        if not self.blocks or not isinstance(self.fold, int):
            yield 0, self.total
            return
        yield from self.blocks.find_training(self.fold)
        yield self.blocks.find_block(self.fold)
        yield self.blocks.rows, self.blocks.rows + self.test
