"""The rows of a search: folds of small tables, and test rows of large ones."""

from __future__ import annotations

import pytest

from edl.spec import Rows, Split, SplitFolds, ValidationBlocks
from sqlflow_edl.analysis.rows.splits import Splitting
from sqlflow_edl.analysis.search.split import Division, add_folds, divide


def numbers(division: Division) -> tuple[int, ...]:
    return division.rows.training, division.rows.validation, division.test, division.folds


@pytest.mark.parametrize(
    ("total", "training", "validation", "test"),
    [(5_000, 4_000, 1_000, 0), (10_000, 8_000, 1_000, 1_000), (50_000, 40_000, 5_000, 5_000)],
)
def test_large_tables_have_test_rows(total: int, training: int, validation: int, test: int) -> None:
    held_out = 2 * total // 10
    rows = Rows(False, total, total - held_out, held_out)
    assert numbers(divide(rows, total // 10, is_written=False)) == (training, validation, test, 1)


def test_rows_of_many_columns_count_several_times() -> None:
    split = Splitting(Split("random", "y"))
    folded = [add_folds(split, None, columns, label="y").split for columns in (3, 200, 400, 1_000)]
    assert [how.folds.most for how in folded if how and how.folds] == [5_000, 5_000, 2_500, 1_000]
    rows = Rows(False, 2_000, 1_600, 400)
    assert [divide(rows, 200, is_written=False, columns=columns).test for columns in (500, 600)] == [0, 200]


def test_blocks_of_the_rows_are_folds() -> None:
    rows = Rows(True, 100, 60, 40, "digest", blocks=ValidationBlocks(80, (20, 30, 30)))
    division = divide(rows, 0, is_written=True)
    assert numbers(division) == (60, 20, 20, 3)
    assert division.rows.digest == "digest"


def test_the_training_rows_of_a_block_by_time_are_before_its_gap() -> None:
    blocks = ValidationBlocks(100, (20, 20), is_forward=True, gaps=(5, 5))
    assert numbers(divide(Rows(True, 100, 80, 20, blocks=blocks), 0, is_written=False)) == (75, 20, 0, 2)


def test_without_time_for_folds_the_first_block_validates() -> None:
    rows = Rows(True, 100, 60, 40, blocks=ValidationBlocks(80, (20, 30, 30)))
    division = divide(rows, 0, is_written=False, allows_folds=False)
    assert numbers(division) == (60, 20, 20, 1)
    assert not division.rows.blocks


@pytest.mark.parametrize(("written", "wanted"), [(False, (70, 30, 0, 1)), (True, (70, 10, 20, 1))])
def test_written_test_rows_are_there_in_small_tables_too(written: bool, wanted: tuple[int, ...]) -> None:
    assert numbers(divide(Rows(True, 100, 70, 30), 20, is_written=written)) == wanted


def test_rows_by_time_have_folds_only_if_they_are_written() -> None:
    by_time, at_random = Split("time", "day"), Split("random", "y")
    split = Splitting(by_time, otherwise=Splitting(at_random))
    default = add_folds(split, None, 3, label="y")
    assert default.split == by_time
    assert default.otherwise is not None
    assert default.otherwise.split == Split("random", "y", folds=SplitFolds(5, 5_000))
    written = add_folds(split, 3, 3, label="y", test=0.2, gap=7.0)
    assert written.split == Split("time", "day", folds=SplitFolds(3, 0, 0.2, 7.0))


def test_folds_of_groups_know_the_label() -> None:
    split = add_folds(Splitting(Split("group", "shop")), 3, 3, label="y").split
    assert split == Split("group", "shop", folds=SplitFolds(3, label="y"))
