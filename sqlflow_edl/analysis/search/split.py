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


def divide(
    rows: spec.Rows, test: int, *, is_written: bool, folds: int | None, columns: int = NARROW
) -> Division:
    """Divide the rows of a search. rows: with all rows that are not trained on as validation rows.

    test: number of test rows, if there are any; is_written: by the statement. folds: None for the default.
    """
    total = rows.training + rows.validation
    if not is_written and total <= SMALL:
        test = 0
    if folds is None:
        folds = FOLDS if narrow_rows(total, columns) <= SMALL else 1
    validation = (total - test) // folds if folds > 1 else rows.validation - test
    training = total - test - validation
    return Division(msgspec.structs.replace(rows, training=training, validation=validation), test, folds)
