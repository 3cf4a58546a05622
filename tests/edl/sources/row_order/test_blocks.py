"""Blocks of rows that validate in turn: units in turn, and parts of time."""

from __future__ import annotations

import datetime as dt

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.sources.row_order import blocks
from edl.sources.row_order.blocks import TEST, Assigned
from edl.sources.row_order.order import find_places
from edl.sources.row_order.units import Units, ValidationRows
from edl.spec import Split, SplitFolds, ValidationBlocks


def assign_sizes(sizes: list[int], kinds: list[int] | None = None, number: int = 5) -> list[int]:
    count = len(sizes)
    hashes = np.arange(count, dtype=np.uint64)
    units = Units(hashes, np.array(sizes), None if kinds is None else np.array(kinds))
    drawn = np.random.default_rng(1).permutation(count).astype(np.uint64)
    return blocks.assign_units(units, drawn, np.zeros(count, np.bool_), number).numbers.tolist()


def assign(times: pa.Array, **folds: float) -> Assigned:
    with duckdb.connect() as connection:
        return blocks.assign_times(times, connection, SplitFolds(**{"number": 4, **folds}))  # type: ignore[arg-type]


def test_units_of_one_size_are_assigned_evenly() -> None:
    assert np.bincount(assign_sizes([1] * 103)).tolist() in ([21, 21, 21, 20, 20], [20, 20, 21, 21, 21])


@pytest.mark.parametrize("seed", range(5))
def test_units_of_different_sizes_make_blocks_of_about_equal_size(seed: int) -> None:
    sizes = (np.random.default_rng(seed).pareto(2, 200) * 10 + 1).astype(int)
    numbers = assign_sizes(sizes.tolist())
    totals = np.bincount(numbers, sizes)
    assert totals.max() <= sizes.sum() / 5 + sizes.max()
    assert totals.min() >= sizes.sum() / 5 - sizes.max()


def test_each_block_has_its_share_of_each_class() -> None:
    kinds = [int(at % 10 == 0) for at in range(200)]
    numbers = np.array(assign_sizes([1] * 200, kinds))
    assert np.bincount(numbers[np.array(kinds) == 1]).tolist() == [4] * 5


def test_the_class_of_a_group_is_more_frequent_in_it_than_elsewhere() -> None:
    groups = np.repeat(np.arange(10, dtype=np.uint64), 10)
    classes = np.zeros(100, np.int64)
    classes[:30:10] = 1  # one row in ten of groups 0, 1 and 2, none elsewhere
    units = blocks.group_rows(groups, classes)
    assert units.kinds is not None
    assert units.kinds.tolist() == [1, 1, 1] + [0] * 7
    assert units.sizes is not None
    assert units.sizes.tolist() == [10] * 10


def test_a_label_of_many_values_has_no_classes() -> None:
    groups = np.repeat(np.arange(150, dtype=np.uint64), 2)
    assert blocks.group_rows(groups, np.arange(300) // 2).kinds is None


def test_rows_of_the_only_unit_of_a_class_are_assigned_one_by_one() -> None:
    of_rows = np.array([0, 0, 0, 1, 2, 2])
    units = Units(np.array([7, 8, 9], np.uint64), np.array([3, 1, 2]), np.array([0, 1, 1]), of_rows)
    separate = blocks.separate_lone_units(units, np.arange(6, dtype=np.uint64))
    assert separate.of_rows is not None
    assert separate.sizes is not None
    assert separate.kinds is not None
    assert len(np.unique(separate.of_rows[:3])) == 3
    assert separate.of_rows[4] == separate.of_rows[5]
    assert separate.sizes[separate.of_rows].tolist() == [1, 1, 1, 1, 2, 2]
    assert separate.kinds[separate.of_rows].tolist() == [0, 0, 0, 1, 1, 1]


def test_blocks_of_time_are_one_after_another_and_the_earliest_rows_are_in_none() -> None:
    numbers = assign(pa.array(range(100))).numbers
    assert numbers.tolist() == [4] * 20 + [3] * 20 + [2] * 20 + [1] * 20 + [0] * 20
    numbers = assign(pa.array(range(100)), test=0.1).numbers
    assert numbers.tolist() == [4] * 18 + [3] * 18 + [2] * 18 + [1] * 18 + [0] * 18 + [TEST] * 10


def test_rows_of_one_time_are_in_one_block_and_rows_without_a_time_are_in_none() -> None:
    numbers = assign(pa.array([None] * 10 + [at // 7 for at in range(90)])).numbers
    assert set(numbers[:10].tolist()) == {4}
    for time in range(13):
        assert len(set(numbers[10 + 7 * time : 17 + 7 * time].tolist())) == 1


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        (pa.array(range(100)), 3),
        (pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=at) for at in range(100)]), 3),
        (pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(hours=at) for at in range(100)]), 3 / 24),
    ],
    ids=["numbers", "dates", "timestamps"],
)
def test_rows_less_than_the_gap_before_a_block_are_marked(times: pa.Array, gap: float) -> None:
    near = assign(times, gap=gap).near
    assert near is not None
    assert np.flatnonzero(near).tolist() == [at for end in (20, 40, 60, 80) for at in (end - 2, end - 1)]


def test_a_gap_that_is_longer_than_a_block_is_an_error() -> None:
    with pytest.raises(SemanticError, match="longer than a fold"):
        assign(pa.array(range(100)), gap=25)


def test_blocks_are_in_the_order_of_the_rows_with_the_rows_of_the_gap_at_their_ends() -> None:
    order = np.array([3, 1, 5, 0, 4, 2])
    assigned = Assigned(np.array([2, 2, 1, 1, 0, TEST]), np.array([0, 1, 1, 0, 0, 0], np.bool_), True)
    arranged, validation = blocks.arrange_rows(order, assigned)
    assert arranged.tolist() == [0, 1, 3, 2, 4, 5]
    assert validation == ValidationRows(2, ValidationBlocks(5, (1, 2), True, (1, 1)))


def test_one_group_makes_no_blocks() -> None:
    near = pa.array(range(20), pa.uint64())
    keys = {"near": near, "exact": near, "unit": pa.array([1] * 20, pa.uint64())}
    _, validation = find_places(keys, 1, Split("group", "g", folds=SplitFolds(5)))
    assert validation == ValidationRows(0)


def test_more_rows_than_folds_are_for_are_split_as_without_folds() -> None:
    near = pa.array(range(50), pa.uint64())
    for most, blocked in ((50, True), (49, False), (0, True)):
        keys = {"near": near, "exact": near, "features": near}
        _, validation = find_places(keys, 1, Split("random", folds=SplitFolds(5, most=most)))
        assert validation is not None
        assert validation.rows == (10 if blocked else 5)
        assert bool(validation.blocks) is blocked
