"""Rows of the folds of a search."""

from __future__ import annotations

import pytest

from edl.spec import Rows, ValidationBlocks

ROWS = 100


def of_search(blocks: ValidationBlocks) -> Rows:
    return Rows(True, ROWS, blocks.rows - blocks.sizes[0], blocks.sizes[0], blocks=blocks)


def list_places(rows: Rows) -> list[int]:
    return [place for start, end in rows.list_parts() for place in range(start, end)]


@pytest.mark.parametrize("sizes", [(30, 30, 30), (20, 45, 25), (1, 89)], ids=str)
def test_each_fold_validates_on_its_block_and_trains_on_all_others(sizes: tuple[int, ...]) -> None:
    rows = of_search(ValidationBlocks(90, sizes))
    validated: list[int] = []
    for fold, size in enumerate(sizes):
        of_fold = rows.select_fold(fold)
        places = list_places(of_fold)
        assert sorted(places) == list(range(ROWS))
        assert (of_fold.training, of_fold.validation, of_fold.test) == (90 - size, size, 10)
        assert places[90:] == list(range(90, ROWS)), "test rows stay last"
        validated = places[90 - size : 90] + validated
    assert validated == list(range(90)), "the last block belongs to the first fold"
    assert rows.scored_rows == 90


def test_rows_before_all_blocks_validate_no_fold() -> None:
    rows = of_search(ValidationBlocks.make_equal(92, 3))
    assert rows.scored_rows == 90
    assert list_places(rows.select_fold(2))[62:92] == list(range(2, 32))


def test_a_fold_by_time_trains_only_on_rows_before_its_block_and_before_the_gap() -> None:
    rows = of_search(ValidationBlocks(90, (20, 20, 20), is_forward=True, gaps=(3, 0, 5)))
    found = [rows.select_fold(fold) for fold in range(3)]
    assert [(fold.training, fold.validation, fold.total) for fold in found] == [
        (67, 20, 97),
        (50, 20, 80),
        (25, 20, 55),
    ]
    assert list_places(found[0]) == [*range(67), *range(70, ROWS)]
    assert list_places(found[2]) == [*range(25), *range(30, 50), *range(90, ROWS)]


def test_rows_without_blocks_have_no_fold() -> None:
    rows = Rows(True, ROWS, 80, 10)
    assert (rows.scored_rows, rows.test, list_places(rows)) == (10, 10, list(range(ROWS)))
    with pytest.raises(ValueError, match="have no blocks"):
        rows.select_fold(0)
