"""Cells that hold several values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.features.lists import Lists

NAN = float("nan")


def cells(values: Any, delimiter: str = ",", separator: str = "") -> Lists:
    return Lists(values if isinstance(values, pa.Array) else pa.array(values), "x", delimiter, separator)


@pytest.mark.parametrize(
    ("values", "delimiter"),
    [
        (["1,2.5", None, "", "-3, 4e2 "], ","),
        (["1||2.5", None, " ", "-3|| 4e2"], "||"),
        (["1 2.5", None, " ", " -3   4e2 "], " "),
        (pa.array(["1,2.5", None, "", "-3,4e2"]).dictionary_encode(), ","),
        (pa.array(["1,2.5", None, "", "-3,4e2"], pa.string_view()), ","),
        (pa.array([[1, 2.5], None, [], [-3, 400]]), ","),
        (pa.array([[1, 2.5], None, [], [-3, 400]], pa.large_list(pa.float32())), ","),
        (pa.array([["1", "2.5"], None, [], ["-3", "4e2"]]), ","),
        (pa.array(["9", "1,2.5", None, "", "-3,4e2"])[1:], ","),
    ],
)
def test_numbers_of_a_cell_become_a_vector_and_nothing_is_nan(values: Any, delimiter: str) -> None:
    found = cells(values, delimiter)
    assert found.offsets.tolist() == [0, 2, 2, 2, 4]
    np.testing.assert_array_equal(found.vectors(2), [[1, 2.5], [NAN, NAN], [NAN, NAN], [-3, 400]])
    assert found.vectors().shape == (4, 2)


def test_lists_of_one_length_may_be_null() -> None:
    values = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2))
    np.testing.assert_array_equal(cells(values).vectors(2), [[1, 2], [NAN, NAN], [3, NAN]])


def test_an_item_that_is_missing_is_nan_and_the_others_stay() -> None:
    np.testing.assert_array_equal(cells(["1,,3", "nan,2,inf"]).vectors(3), [[1, NAN, 3], [NAN, 2, np.inf]])


def test_a_number_by_itself_is_a_list_of_one() -> None:
    np.testing.assert_array_equal(cells([2.5, 3.0, None]).vectors(1), [[2.5], [3], [NAN]])


@pytest.mark.parametrize("values", [pa.nulls(2), [None, ""], pa.array([[], None], pa.list_(pa.int8()))])
def test_a_column_that_holds_nothing_has_vectors_of_nan(values: Any) -> None:
    assert np.isnan(cells(values).vectors(3)).all()
    assert cells(values).vectors().shape == (2, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1,2", None, "3,4,5", "6"], "column x holds '3,4,5', not 2 numbers"),
        ([[1, 2], [3]], r"column x holds \[3\], not 2 numbers"),
        (["1,2", "3,four", "five,6"], "column x holds '3,four', and 'four' is not a number"),
        (["1,2", "", "1;2,3"], "column x holds '1;2,3', and '1;2' is not a number"),
    ],
)
def test_a_cell_that_is_no_such_vector_is_shown(values: list[Any], message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        cells(values).vectors(2)


def test_a_long_cell_is_shown_in_part() -> None:
    with pytest.raises(SemanticError, match=r"column x holds '(7,){19}7…, and 'x' is not a number"):
        cells(["7," * 30 + "x"]).vectors(31)


def test_of_a_text_the_delimiter_is_told() -> None:
    with pytest.raises(SemanticError) as raised:
        cells(["1;2"]).vectors(2)
    assert raised.value.hint == "its items are read as separated by ','"


@pytest.mark.parametrize(
    ("values", "delimiter"),
    [
        (["a:1, b : 2.5", None, "http://c:-3"], ","),
        (["a:1  b:2.5", "", "http://c:-3 "], " "),
        (pa.array([["a:1", "b:2.5"], [], ["http://c:-3"]]), ","),
    ],
)
def test_a_weight_stands_after_the_last_separator(values: Any, delimiter: str) -> None:
    found = cells(values, delimiter, ":")
    assert found.items.to_pylist() == ["a", "b", "http://c"]
    assert found.weights is not None
    assert found.weights.tolist() == [1, 2.5, -3]
    assert found.weights.dtype == np.float32


def test_no_items_have_no_weights() -> None:
    found = cells([None, ""], ",", ":")
    assert found.weights is not None
    assert (len(found.items), len(found.weights)) == (0, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1:1", "2:3,5"], "column x holds '2:3,5', and '5' has no weight after ':'"),
        (["1:1,,2:1"], "column x holds '1:1,,2:1', and None has no weight after ':'"),
        (["1:1", "2:x"], "column x holds '2:x', and 'x' is not a number"),
        (["1:1", "2:inf,3:1"], "column x holds '2:inf,3:1', and a weight in it is not finite"),
        (["1:1", "2:"], "column x holds '2:', and a weight in it is not finite"),
        ([[1, 2]], r"column x holds \[1, 2\], and 1 has no weight after ':'"),
    ],
)
def test_a_weight_that_means_nothing_is_shown_in_its_cell(values: list[Any], message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        cells(values, ",", ":")
