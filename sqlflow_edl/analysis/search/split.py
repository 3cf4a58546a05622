"""Rows of a search: training, validation and test rows, and folds."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import msgspec

from edl import spec
from sqlflow_edl.analysis.rows.splits import Splitting
from sqlflow_edl.analysis.search.limits import NARROW

VALIDATION, TEST = 0.1, 0.1  # shares of the rows that no model is trained on, if they are not written
# rows up to which none are tested on, and the folds of as many, if they are not written
SMALL, FOLDS = 5_000, 5


class Division(NamedTuple):
    """Division of the rows. rows: training and validation rows of each candidate, before the `test` rows."""

    rows: spec.Rows
    test: int
    folds: int


def add_folds(
    splitting: Splitting, number: int | None, columns: int, *, label: str, test: float = 0.0, gap: float = 0.0
) -> Splitting:
    """Return the split with folds of the rows. number: as written; None for the default, which rows by time lack.

    test: share of the test rows. gap: as of `spec.SplitFolds`.
    """
    split, otherwise = splitting.split, splitting.otherwise
    if otherwise is not None:
        otherwise = add_folds(otherwise, number, columns, label=label, test=test, gap=gap)
    if split is not None and (number is not None or split.by != "time"):
        most = 0 if number is not None else SMALL * NARROW // max(columns, NARROW)
        of_groups = label if split.by == "group" else ""
        folds = spec.SplitFolds(number or FOLDS, most, test, gap, of_groups)
        split = msgspec.structs.replace(split, folds=folds)
    return dataclasses.replace(splitting, split=split, otherwise=otherwise)


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
    elif not is_written and rows.training + rows.validation <= SMALL * NARROW // max(columns, NARROW):
        test = 0
    return Division(replace(rows, validation=rows.validation - test, blocks=msgspec.UNSET), test, 1)
