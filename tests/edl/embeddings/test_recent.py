"""Row numbers of ids that were looked up lately, and a table that uses them."""

from __future__ import annotations

import numpy as np

from edl.embeddings import Optimizer, RowTable, TableSpec
from edl.embeddings.recent import LOOKUPS, MOST_IDS, RecentLookups
from edl.spec import RowLimits

SGD = Optimizer("torch", "sgd", {"momentum": 0.0})


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_ids_are_found_by_their_values_and_order() -> None:
    lookups = RecentLookups()
    lookups.add(ids(7, 8, 9), ids(0, 1, 2))
    lookups.add(ids(7, 9, 8), ids(0, 2, 1))
    assert lookups.find(ids(7, 8, 9)).tolist() == [0, 1, 2]
    assert lookups.find(ids(7, 9, 8)).tolist() == [0, 2, 1]
    for others in (ids(), ids(7, 8), ids(8, 8, 9), ids(7, 8, 1)):
        assert lookups.find(others) is None
    lookups.clear()
    assert lookups.find(ids(7, 8, 9)) is None


def test_ids_that_change_after_their_look_up_are_not_found() -> None:
    lookups, given = RecentLookups(), ids(7, 8)
    lookups.add(given, ids(0, 1))
    given[1] = 9
    assert lookups.find(given) is None


def test_few_look_ups_are_kept_and_none_of_very_many_ids() -> None:
    lookups = RecentLookups()
    for number in range(LOOKUPS + 1):
        lookups.add(ids(number), ids(number))
    assert lookups.find(ids(0)) is None
    assert lookups.find(ids(1)).tolist() == [1]
    many = np.arange(MOST_IDS + 1)
    lookups.add(many, many)
    assert lookups.find(many) is None


def test_rows_that_move_when_others_are_evicted_are_found_where_they_are() -> None:
    """The last row takes the place of a removed one."""
    table = RowTable(TableSpec("t", 2), 1, SGD, RowLimits(ttl_steps=3))
    ones = np.ones((2, 2), np.float32)
    table.update(ids(1, 2), ones, 1.0, distinct=True)
    for _ in range(4):
        table.update(ids(3, 4), ones, 1.0, distinct=True)
    assert table.evicted == 2
    other = RowTable(TableSpec("t", 2), 1, SGD)
    for _ in range(4):
        other.update(ids(3, 4), ones, 1.0, distinct=True)
    np.testing.assert_array_equal(table.read(ids(3, 4)), other.read(ids(3, 4)))
    np.testing.assert_array_equal(table.read(ids(1, 2)), other.read(ids(1, 2)))  # initial values again
