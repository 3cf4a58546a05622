"""Nested arrays, and what `feed` may give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.arrays import checked_features, checked_labels, count_rows, map_arrays
from edl.errors import JobError

FLOATS = np.ones((4, 2), np.float32)
IDS = np.arange(4)


def test_a_function_is_applied_to_every_array_of_any_structure() -> None:
    doubled = map_arrays(lambda array: array * 2, {"a": FLOATS, "b": (IDS, FLOATS)})
    assert doubled["a"].sum() == 16
    assert list(doubled["b"][0]) == [0, 2, 4, 6]
    assert isinstance(doubled["b"], tuple)


@pytest.mark.parametrize("features", [FLOATS, {"a": IDS, "b": FLOATS}, (IDS, {"c": FLOATS}), [IDS, FLOATS]])
def test_arrays_dicts_tuples_and_lists_are_features(features: Any) -> None:
    assert count_rows(checked_features(features, 4)) == 4


@pytest.mark.parametrize(
    ("given", "becomes"),
    [(np.float64, "float32"), (np.int32, "int64"), (np.uint8, "int64"), (bool, "float32")],
)
def test_numbers_become_float32_or_int64(given: type, becomes: str) -> None:
    assert checked_features(np.ones(4, given), 4).dtype == becomes


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"a": [1, 2, 3, 4]}, r"feed gives a list as features\['a'\]"),
        ((IDS, None), r"feed gives a NoneType as features\[1\]"),
        (np.array(["a"] * 4), "feed gives features of type <U1"),
        (np.array([None] * 4), "feed gives features of type object"),
        ({"a": IDS[:3]}, r"feed gives 3 rows as features\['a'\] for a batch of 4"),
        (np.float32(1), "feed gives a float32 as features"),
        ({}, "feed gives no features"),
    ],
)
def test_what_is_no_array_of_the_rows_is_named(features: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        checked_features(features, 4)


def test_labels_are_a_column_of_numbers_or_a_line_of_classes() -> None:
    assert checked_labels(np.ones((4, 1)), 4).dtype == np.float32
    assert checked_labels(np.ones(4, np.int32), 4).dtype == np.int64


@pytest.mark.parametrize("labels", [np.ones(4), np.ones((4, 1), np.int64), np.ones((3, 1)), None])
def test_labels_that_would_broadcast_are_refused(labels: Any) -> None:
    with pytest.raises(JobError, match="labels"):
        checked_labels(labels, 4)
