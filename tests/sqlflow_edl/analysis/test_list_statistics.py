"""Statistics of cells that hold several values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sqlflow_edl.analysis.list_statistics import Cells, ListColumn, ListStatistics


def statistics(values: Any, cuts: tuple[int, ...] = (), size: int = 0) -> ListStatistics:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    gathered = ListColumn(Cells("x", ",", size))
    for first, last in pairwise([0, *cuts, len(array)]):
        gathered.add(array[first:last])
    return gathered.ends()


@pytest.mark.parametrize("cuts", [(), (1,), (3,), (1, 2, 2, 4)])
def test_each_place_has_the_mean_and_deviation_of_its_numbers(cuts: tuple[int, ...]) -> None:
    found = statistics([None, "1,10,5", ",20,5", "3,inf,5", ""], cuts)
    assert found.mean == (2, 15, 5)
    assert found.std == (1, 5, 0)
    assert found.error is None


def test_far_from_zero_a_deviation_is_that_of_the_population() -> None:
    drawn = np.random.default_rng(5).normal([1e9, -3.0], [1.0, 1e-3], (1000, 2))
    found = statistics(pa.array(drawn.tolist()), (10, 500))
    np.testing.assert_allclose(found.mean, drawn.mean(axis=0))
    np.testing.assert_allclose(found.std, drawn.std(axis=0), rtol=1e-6)


def test_batches_do_not_change_a_digit() -> None:
    drawn = pa.array(np.random.default_rng(6).normal(size=(999, 3)).tolist())
    assert statistics(drawn) == statistics(drawn, (1, 77, 500))


def test_numbers_at_the_end_of_their_range_have_finite_statistics() -> None:
    found = statistics([[1.7e308], [-1.7e308], [1.7e308]], (1,))
    assert np.isfinite([*found.mean, *found.std]).all()


@pytest.mark.parametrize("values", [[None, ""], pa.nulls(2)])
def test_a_column_that_holds_nothing_has_no_size_but_a_written_one(values: Any) -> None:
    assert statistics(values).mean == ()
    assert statistics(values, size=2) == ListStatistics((0, 0), (0, 0))


@pytest.mark.parametrize(
    ("values", "size", "message"),
    [
        (["1,2", "1,2,3", "x"], 0, "column x holds '1,2,3', not 2 numbers"),
        (["1,2", "1,2"], 3, "column x holds '1,2', not 3 numbers"),
        (["1,2", "1,x"], 0, "column x holds '1,x', and 'x' is no number"),
    ],
)
def test_the_first_cell_that_cannot_be_read_is_kept(values: list[str], size: int, message: str) -> None:
    for cuts in ((), (1,)):
        error = statistics(values, cuts, size).error
        assert error is not None
        assert error.message == message
