"""The rows of a search: folds of small tables, and test rows of large ones."""

from __future__ import annotations

import pytest

from edl.spec import Rows
from sqlflow_edl.analysis.search.split import divide


@pytest.mark.parametrize(
    ("total", "training", "validation", "test", "folds"),
    [
        (4, 4, 0, 0, 5),
        (5, 4, 1, 0, 5),
        (103, 83, 20, 0, 5),
        (5_000, 4_000, 1_000, 0, 5),
        (10_000, 8_000, 1_000, 1_000, 1),
        (50_000, 40_000, 5_000, 5_000, 1),
    ],
)
def test_small_tables_have_folds_and_large_ones_test_rows(
    total: int, training: int, validation: int, test: int, folds: int
) -> None:
    held_out = 2 * total // 10
    rows = Rows(False, total, total - held_out, held_out)
    found = divide(rows, total // 10, is_written=False, folds=None)
    assert (found.rows.training, found.rows.validation, found.test, found.folds) == (
        training, validation, test, folds,
    )  # fmt: skip
    assert found.rows.training + found.rows.validation + found.test == total


def test_few_rows_of_many_columns_have_no_folds() -> None:
    rows = Rows(False, 2_000, 1_600, 400)
    found = [
        divide(rows, 200, is_written=False, folds=None, columns=columns).folds for columns in (3, 500, 600)
    ]
    assert found == [5, 5, 1]
    assert divide(rows, 200, is_written=False, folds=5, columns=600).folds == 5


@pytest.mark.parametrize(
    ("folds", "written", "wanted"),
    [
        (2, False, (50, 50, 0, 2)),
        (2, True, (40, 40, 20, 2)),
        (1, False, (70, 30, 0, 1)),
        (1, True, (70, 10, 20, 1)),
        (7, True, (69, 11, 20, 7)),
    ],
)
def test_what_is_written_about_folds_and_test_rows_holds(
    folds: int, written: bool, wanted: tuple[int, ...]
) -> None:
    found = divide(Rows(True, 100, 70, 30, "digest"), 20, is_written=written, folds=folds)
    assert (found.rows.training, found.rows.validation, found.test, found.folds) == wanted
    assert found.rows.digest == "digest"
