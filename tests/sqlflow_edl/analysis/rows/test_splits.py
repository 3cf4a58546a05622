"""Times of rows, which decide if the latest rows validate, and the folds of rows that are not pinned."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edl.spec import Split, SplitFolds, ValidationBlocks
from sqlflow_edl.analysis.rows.splits import Times, estimate_blocks


def watch_rows(array: pa.Array) -> Times:
    """Return the observer of one column that has seen the rows."""
    times = Times("t")
    assert [*times.watch([pa.record_batch({"t": array})])]
    return times


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()], ids=str)
def test_infinite_times_and_years_that_python_does_not_have_are_counted(kind: pa.DataType) -> None:
    integer = np.int32 if pa.types.is_date32(kind) else np.int64
    days = np.arange(200, dtype=integer) * (1 if integer is np.int32 else 86_400_000_000)
    days[-2:] = np.iinfo(integer).max, np.iinfo(integer).max - 1
    times = watch_rows(pa.array(days).view(kind))
    assert times.order_rows(0.1)


def test_rows_that_mostly_have_the_latest_time_are_not_ordered_by_it() -> None:
    days = pa.array([*range(60), *[60] * 140], pa.int32()).view(pa.date32())
    assert not watch_rows(days).order_rows(0.1)


def test_numbers_are_times_too() -> None:
    assert watch_rows(pa.array(range(200))).order_rows(0.1)
    assert not watch_rows(pa.array([None] * 100 + [*range(100)], pa.int64())).order_rows(0.1)


@pytest.mark.parametrize(
    ("total", "split", "wanted"),
    [
        (103, Split("random", folds=SplitFolds(5)), ValidationBlocks(103, (21, 21, 21, 20, 20))),
        (100, Split("group", "g", folds=SplitFolds(3, test=0.1)), ValidationBlocks(90, (30, 30, 30))),
        (60, Split("time", "t", folds=SplitFolds(5)), ValidationBlocks(60, (10,) * 5, is_forward=True)),
        (3, Split("random", folds=SplitFolds(5)), ValidationBlocks(3, (1, 1, 1))),
        (1, Split("random", folds=SplitFolds(5)), None),
        (101, Split("random", folds=SplitFolds(5, most=100)), None),
        (100, Split("random"), None),
        (100, None, None),
    ],
)
def test_rows_that_are_not_pinned_have_blocks_of_about_equal_size(
    total: int, split: Split | None, wanted: ValidationBlocks | None
) -> None:
    assert estimate_blocks(split, total) == wanted
