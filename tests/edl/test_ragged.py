"""Lists of ids."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import edl
from edl.errors import JobError

RAGGED = edl.Ragged([7, 7, 2, 5, 9], [0, 3, 3, 4, 5], [1, 2, 3, 4, 5])


def lists(ragged: edl.Ragged) -> list[list[tuple[int, float]]]:
    assert ragged.weights is not None
    pairs = list(zip(ragged.values.tolist(), ragged.weights.tolist(), strict=True))
    return [pairs[first:last] for first, last in itertools.pairwise(ragged.offsets.tolist())]


def test_rows_are_counted_and_named() -> None:
    assert len(RAGGED) == 4
    assert RAGGED.counts.tolist() == [3, 0, 1, 1]
    assert RAGGED.rows.tolist() == [0, 0, 0, 2, 3]
    assert repr(RAGGED) == "Ragged(4 rows, 5 ids)"


@pytest.mark.parametrize(
    "rows", [slice(0, 4), slice(1, 3), slice(2, 99), slice(1, 1), slice(3, 2), slice(4, 9)]
)
def test_neighbouring_rows_equal_the_lists(rows: slice) -> None:
    assert lists(RAGGED[rows]) == lists(RAGGED)[rows]


@pytest.mark.parametrize("order", [[3, 0, 1, 2], [1], [], [0, 0, 2]])
def test_rows_are_taken_in_any_order(order: list[int]) -> None:
    taken = RAGGED.take(np.array(order, np.int64))
    assert lists(taken) == [lists(RAGGED)[row] for row in order]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [0, 1]), "do not rise from 0"),
        (([1, 2], [1, 2]), "do not rise from 0"),
        (([1, 2, 3], [0, 2, 1, 3]), "do not rise from 0"),
        (([1, 2], []), "has values"),
        (([[1, 2]], [0, 1]), "has values"),
        (([1, 2], [0, 2], [1.0]), "2 values and 1 weights"),
    ],
)
def test_lists_that_do_not_fit_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        edl.Ragged(*arguments)


def test_the_package_loads_numpy_only_for_lists() -> None:
    code = "import sys, edl; print('numpy' in sys.modules); edl.Ragged; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_package_has_nothing_else() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Raged'"):
        edl.__getattr__("Raged")


def test_a_column_of_lists_is_read_wherever_it_was_cut() -> None:
    column = pa.array([[1, 2], None, [], [3], [4, 5]], pa.list_(pa.int32()))
    ragged = edl.Ragged.of(column.slice(1, 3))
    assert ragged.values.tolist() == [3]
    assert ragged.counts.tolist() == [0, 0, 1]
    assert edl.Ragged.of(column).counts.tolist() == [2, 0, 0, 1, 2]
    with pytest.raises(JobError, match="1 ids in lists are NULL"):
        edl.Ragged.of(pa.array([[1, None]], pa.list_(pa.int64())))


def test_lists_are_joined_with_their_weights() -> None:
    parts = [edl.Ragged([7, 7, 2], [0, 3, 3], [1, 2, 3]), edl.Ragged([5], [0, 1], [4])]
    joined = edl.Ragged.concatenate(parts)
    assert joined.values.tolist() == [7, 7, 2, 5]
    assert joined.offsets.tolist() == [0, 3, 3, 4]
    assert joined.weights is not None and joined.weights.tolist() == [1, 2, 3, 4]
    with pytest.raises(JobError, match="some have none"):
        edl.Ragged.concatenate([parts[0], edl.Ragged([5], [0, 1])])


def test_an_exported_model_takes_lists_of_one_length() -> None:
    assert edl.Ragged(RAGGED.values, RAGGED.offsets).pad().tolist() == [
        [7, 7, 2],
        [-1, -1, -1],
        [5, -1, -1],
        [9, -1, -1],
    ]
    weighted = RAGGED.pad()
    assert weighted.dtype == np.float64
    assert weighted[0].tolist() == [[7, 1], [7, 2], [2, 3]]
    assert weighted[2].tolist() == [[5, 4], [-1, 0], [-1, 0]]
    assert edl.Ragged([4], [0, 0, 1]).pad().tolist() == [[-1, -1], [4, -1]]


def test_a_column_of_nulls_has_empty_lists() -> None:
    assert edl.Ragged.of(pa.nulls(3)).counts.tolist() == [0, 0, 0]
