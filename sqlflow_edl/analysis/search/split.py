"""Rows of a search: training, validation and test rows, and folds."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from edl import spec

VALIDATION, TEST = 0.1, 0.1  # shares of the rows that no model is trained on, if they are not written
# rows up to which none are tested on, and the folds of as many, if they are not written
SMALL, FOLDS = 5_000, 5
NARROW = 200  # columns up to which a row counts as one


class Division(NamedTuple):
    """Division of the rows. rows: training and validation rows of each candidate, before the `test` rows."""

    rows: spec.Rows
    test: int
    folds: int


def narrow_rows(rows: int, columns: int) -> int:
    """Return the number of narrow rows that take as long to train on: a row of 1,000 columns counts five times."""
    return rows * max(columns, NARROW) // NARROW


def count_folded_rows(columns: int) -> int:
    """Return the number of rows up to which candidates are trained in folds by default."""
    return SMALL * NARROW // max(columns, NARROW)


def divide(
    rows: spec.Rows, test: int, *, is_written: bool, allows_folds: bool = True, columns: int = NARROW
) -> Division:
    """Divide the rows of a search. rows: with all rows that are not trained on as validation rows.

    test: number of test rows without folds, if there are any; is_written: by the statement. allows_folds: False if
    there is no time for the blocks of the rows.
    """
    replace = msgspec.structs.replace
    if rows.blocks and allows_folds:
        first = rows.select_fold(0)
        counted = replace(rows, training=first.training, validation=first.validation)
        return Division(counted, rows.test, len(rows.blocks.sizes))
    if rows.blocks:
        test = rows.test
    elif not is_written and narrow_rows(rows.training + rows.validation, columns) <= SMALL:
        test = 0
    return Division(replace(rows, validation=rows.validation - test, blocks=msgspec.UNSET), test, 1)


def estimate_blocks(split: spec.Split | None, total: int) -> spec.ValidationBlocks | None:
    """Return the blocks of a split with folds if each has its share of the rows; None without folds."""
    folds = split.folds if split is not None else None
    if split is None or not folds or not folds.divides(total):
        return None
    rows = total - int(total * folds.test + 0.5)
    is_forward = split.by == "time"
    number = min(folds.number, rows - is_forward)
    if number < 2:
        return None
    size, more = divmod(rows, number + is_forward)
    sizes = tuple(size + (block < more) for block in range(number))
    return spec.ValidationBlocks(rows, sizes, is_forward)
