"""Ids of categories, of missing values, and of unseen ones."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl import spec
from edl.errors import SemanticError
from edl.features.categories import encoder
from edl.features.hashing import hash_texts
from edl.ragged import Ragged


def ids(category: spec.Category, *columns: Any) -> list[int]:
    names = list(spec.source_columns(category))
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    encoded = encoder(category)(pa.record_batch(arrays, names=names))
    assert isinstance(encoded, np.ndarray)
    assert encoded.dtype == np.int64
    assert encoded.shape == (len(arrays[0]),)
    return encoded.tolist()


def test_a_boundary_belongs_to_the_interval_above() -> None:
    assert ids(fc.bucket("x", [0, 10]), [-1.0, 0.0, 9.9, 10.0, 11.0]) == [0, 1, 1, 2, 2]


def test_a_bucket_of_null_nan_or_infinity_is_missing() -> None:
    assert ids(fc.bucket("x", [0, 10]), [None, math.nan, math.inf, -math.inf]) == [3, 3, 3, 3]


def test_buckets_take_integers_decimals_and_dates() -> None:
    assert ids(fc.bucket("x", [5]), pa.array([4, 5, None], pa.uint8())) == [0, 1, 2]
    assert ids(fc.bucket("x", [5]), [Decimal("4.99"), Decimal("5.00")]) == [0, 1]
    assert ids(fc.bucket("x", [86_400]), [dt.date(1970, 1, 1), dt.date(1970, 1, 2)]) == [0, 1]


def test_no_boundaries_are_one_bucket() -> None:
    assert ids(fc.bucket("x", []), [1.0, None]) == [0, 1]


def test_an_id_outside_the_range_is_missing() -> None:
    assert ids(fc.category_id("x", 3), [0, 2, 3, -1, None]) == [0, 2, 3, 3, 3]
    assert ids(fc.category_id("x", 3), pa.array([1, 2**64 - 1], pa.uint64())) == [1, 3]


@pytest.mark.parametrize("column", [[1.0, 2.5, None], ["1", "x", None], [True, None, None]])
def test_an_id_column_may_come_as_float_text_or_boolean(column: list[Any]) -> None:
    assert ids(fc.category_id("x", 3), column) == [1, 3, 3]


def test_a_vocabulary_gives_positions_and_the_last_id_for_the_rest() -> None:
    category = fc.vocabulary("x", ["b", "a", ""])
    assert ids(category, ["a", "b", "", "A", None]) == [1, 0, 2, 3, 3]
    assert ids(category, pa.array(["a", None], pa.large_string())) == [1, 3]
    assert ids(category, pa.array([b"a", b"\xff"])) == [1, 3]


@pytest.mark.parametrize(("unseen", "wanted"), [(msgspec.UNSET, 2), ("frequent", 0), ("other", 3)])
@pytest.mark.parametrize(
    ("values", "column"),
    [
        (["a", "b"], ["b", "c", None]),
        (["a", "b"], pa.array(["b", "c", None]).dictionary_encode()),
        (["a", "b"], pa.array([b"b", b"\xff", None])),
        (["true", "x"], [None, True, False][::-1]),
        ([7, 5], [5, 6, None]),
        ([7, 5], [5.0, 5.5, math.nan]),
        ([7, 5], [5.0, -1.0, math.inf]),
        ([7, 5], ["5", "x", None]),
    ],
)
def test_an_unseen_value_is_null_the_most_frequent_one_or_itself(
    values: list[Any], column: Any, unseen: Any, wanted: int
) -> None:
    category = fc.vocabulary("x", values, unseen)
    found = ids(category, column)
    assert found[1:] == ([wanted, 2] if column != [False, True, None] else [0, 2])
    assert found[0] == (1 if column != [False, True, None] else wanted)
    assert spec.num_ids(category) == (4 if unseen == "other" else 3)


def test_an_unseen_id_is_told_from_null() -> None:
    assert ids(fc.category_id("x", 3, "other"), [2, 3, -1, None]) == [2, 4, 4, 3]
    assert ids(fc.category_id("x", 3, "other"), [2.0, 2.5, math.nan]) == [2, 4, 3]
    assert ids(fc.category_id("x", 3, "frequent"), ["1", "x", None]) == [1, 0, 3]


def test_what_unseen_means_is_one_of_three_words() -> None:
    with pytest.raises(SemanticError, match="unseen of column x must be frequent or other, not 'new'"):
        fc.vocabulary("x", ["a"], "new")  # type: ignore[arg-type]


def test_a_list_and_several_categories_keep_the_ids_of_their_parts_apart() -> None:
    lists = fc.list_of(fc.vocabulary("x", ["a", "b"], "other"), ",")
    assert encoder(lists)(pa.record_batch({"x": ["b,c", None]})).values.tolist() == [1, 3]  # type: ignore[union-attr]
    both = fc.concat(fc.vocabulary("x", ["a"], "other"), fc.vocabulary("y", ["a"], "frequent"))
    batch = pa.record_batch({"x": ["a", "b", None], "y": [None, "b", "a"]})
    assert encoder(both)(batch).values.tolist() == [0, 4, 2, 3, 1, 3]  # type: ignore[union-attr]
    assert spec.num_ids(both) == 5


def test_a_cross_takes_an_unseen_part_as_the_most_frequent_one() -> None:
    crossed = fc.cross([fc.vocabulary("x", ["a", "b"], "frequent"), "y"], 1000)
    found = ids(crossed, ["a", "c", None], ["k", "k", "k"])
    assert found[0] == found[1] < found[2] == 1000


@pytest.mark.parametrize(
    "column",
    [[10, 7, None], [10.0, 7.5, None], ["10", "x", None], [Decimal("10.0"), Decimal("7.5"), None]],
)
def test_an_integer_vocabulary_finds_integers_in_every_type(column: list[Any]) -> None:
    assert ids(fc.vocabulary("x", [5, 10]), column) == [1, 2, 2]


@pytest.mark.parametrize("column", [[10, 7], [10.0, 7.5], ["10", "x"], [Decimal("10.00"), Decimal("7.5")]])
def test_a_text_vocabulary_finds_numbers_by_their_text(column: list[Any]) -> None:
    assert ids(fc.vocabulary("x", ["5", "10"]), column) == [1, 2]


def test_booleans_are_true_and_false_or_one_and_zero() -> None:
    assert ids(fc.vocabulary("x", ["true", "false"]), [False, True, None]) == [1, 0, 2]
    assert ids(fc.vocabulary("x", ["true", "false"]), [0, 1, None, 2]) == [1, 0, 2, 2]
    assert ids(fc.vocabulary("x", ["true", "false"]), [0.0, 1.0, 0.5]) == [1, 0, 2]
    assert ids(fc.vocabulary("x", ["true", "other"]), [0, 1]) == [2, 2]
    assert ids(fc.vocabulary("x", [0, 1]), [False, True, None]) == [0, 1, 2]


def test_integers_beyond_64_bits_are_compared_as_text() -> None:
    category = fc.vocabulary("x", [2**64 - 1, 1])
    assert ids(category, pa.array([1, 2**64 - 1, 2**63], pa.uint64())) == [1, 0, 2]


def test_a_column_of_nulls_is_all_missing() -> None:
    for category in (
        fc.bucket("x", [1]), fc.category_id("x", 5), fc.hash_bucket("x", 5), fc.vocabulary("x", ["a"]),
        fc.vocabulary("x", [1]),
    ):  # fmt: skip
        assert ids(category, pa.nulls(2)) == [category.size] * 2
        assert ids(category, pa.nulls(0)) == []


def test_a_dictionary_counts_as_its_values() -> None:
    plain = pa.array(["a", "b", None, "a", "z"])
    encoded = pa.concat_arrays([plain, plain]).dictionary_encode().slice(5)
    with_null_in_it = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, None]), pa.array(["a", "b", None]))
    for category in (fc.vocabulary("x", ["b", "a"]), fc.hash_bucket("x", 1000)):
        assert ids(category, encoded) == ids(category, plain)
        assert ids(category, with_null_in_it)[:4] == ids(category, plain)[:4]
        assert ids(category, with_null_in_it)[4] == category.size


def test_a_hash_does_not_depend_on_the_type_of_the_column() -> None:
    category = fc.hash_bucket("x", 10**6)
    expected = [int(value) % 10**6 for value in hash_texts(pa.array(["1", "20"])).tolist()]
    for column in (
        pa.array(["1", "20"]), pa.array([1, 20], pa.int8()), pa.array([1.0, 20.0]), pa.array([b"1", b"20"]),
        pa.array([Decimal("1.0"), Decimal("20.0")]), pa.array(["1", "20"]).dictionary_encode(),
        pa.array([0, 1, 20])[1:],
    ):  # fmt: skip
        assert ids(category, column) == expected
    assert ids(category, [True, False]) == ids(category, ["true", "false"])


def test_an_empty_text_is_a_value_and_null_is_not() -> None:
    empty, missing = ids(fc.hash_bucket("x", 100), ["", None])
    assert empty < 100
    assert missing == 100


def test_a_cross_depends_on_every_column_and_their_order() -> None:
    category = fc.cross(["a", "b"], 10**6)
    crossed = ids(category, ["x", "x", "y", "y"], ["x", "y", "x", "y"])
    assert len(set(crossed)) == 4
    assert crossed == ids(category, ["x", "x", "y", "y"], ["x", "y", "x", "y"])
    assert max(crossed) < 10**6


def test_a_cross_of_a_category_is_one_of_its_ids() -> None:
    crossed = ids(fc.cross([fc.bucket("a", [5]), "b"], 10**6), [1, 2, 7, 9, None], ["x", "x", "x", "x", "x"])
    assert crossed[0] == crossed[1] != crossed[2] == crossed[3]
    assert crossed[4] == 10**6


def test_null_in_any_column_of_a_cross_is_missing() -> None:
    category = fc.cross(["a", "b"], 50)
    first, second, third, full = ids(category, ["x", None, None, "x"], pa.array([None, 1, None, 1]))
    assert (first, second, third) == (50, 50, 50)
    assert full < 50


def test_hostile_text_is_text() -> None:
    values = ["'; DROP TABLE x; --", "a\x00b", "a", "\n", "💥", "a" * 100_000]
    assert ids(fc.vocabulary("x", values), values) == list(range(6))
    assert len(set(ids(fc.hash_bucket("x", 10**9), values))) == 6


def lists(category: spec.Category, column: Any) -> list[list[int]]:
    array = column if isinstance(column, pa.Array) else pa.array(column)
    found = encoder(category)(pa.record_batch([array], names=["x"]))
    assert isinstance(found, Ragged)
    return [found.values[first:last].tolist() for first, last in pairwise(found.offsets)]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int64())])
def test_lists_are_ids_and_what_is_out_of_range_or_null_in_them_is_unseen(kind: pa.DataType) -> None:
    column = pa.array([[1, 7, 1], None, [], [-1, 10, None]], kind)
    assert lists(fc.list_of(fc.category_id("x", 10)), column) == [[1, 7, 1], [], [], [10, 10, 10]]
    assert lists(fc.list_of(fc.category_id("x", 10)), column.slice(2)) == [[], [10, 10, 10]]


def test_texts_hold_lists_of_ids_between_delimiters() -> None:
    assert lists(fc.list_of(fc.category_id("x", 10)), ["3,5", None, "", "4", "3, 5,x"]) == [
        [3, 5],
        [],
        [],
        [4],
        [3, 5, 10],
    ]
    assert lists(fc.list_of(fc.category_id("x", 10), "||"), ["3||5"]) == [[3, 5]]
    assert lists(fc.list_of(fc.category_id("x", 10)), pa.array(["3,5", "1", "3,5"]).dictionary_encode()) == [
        [3, 5],
        [1],
        [3, 5],
    ]


def test_a_column_of_nulls_has_empty_lists() -> None:
    assert lists(fc.list_of(fc.category_id("x", 10)), pa.nulls(2)) == [[], []]


def test_items_of_lists_are_hashed_and_found_in_vocabularies_as_values_are() -> None:
    column = ["red|blue", None, "red||pink"]
    hashed, vocabulary = fc.hash_bucket("x", 99), fc.vocabulary("x", ["blue", "red"])
    red, blue, pink = ids(hashed, ["red", "blue", "pink"])
    assert lists(fc.list_of(hashed, "|"), column) == [[red, blue], [], [red, 99, pink]]
    assert lists(fc.list_of(vocabulary, "|"), column) == [[1, 0], [], [1, 2, 2]]
    assert lists(fc.list_of(fc.vocabulary("x", [7, 5])), pa.array([[5, 6], None, [7]])) == [[1, 2], [], [0]]


def test_items_have_their_weights() -> None:
    encode = encoder(fc.list_of(fc.category_id("x", 10), " ", weights=":"))
    found = encode(pa.record_batch({"x": ["3:0.5 1:2", None, "12:-1"]}))
    assert isinstance(found, Ragged)
    assert (found.values.tolist(), found.offsets.tolist()) == ([3, 1, 10], [0, 2, 2, 3])
    assert found.weights is not None
    assert found.weights.tolist() == [0.5, 2, -1]


def test_ids_of_several_categories_follow_each_other_in_each_row() -> None:
    batch = pa.record_batch({"x": ["1,0", None, "2,9"], "w": ["0:0.5", "1:2 1:3", ""], "a": [5, None, -1]})
    several = fc.concat(
        fc.list_of(fc.category_id("x", 3)),
        fc.bucket("a", [0]),
        fc.list_of(fc.category_id("w", 2), " ", weights=":"),
    )
    assert spec.num_ids(several) == 4 + 3 + 3
    found = encoder(several)(batch)
    assert isinstance(found, Ragged)
    assert found.offsets.tolist() == [0, 4, 7, 10]
    assert found.values.tolist() == [1, 0, 4 + 1, 7, 4 + 2, 7 + 1, 7 + 1, 2, 3, 4]
    assert found.weights is not None
    assert found.weights.tolist() == [1, 1, 1, 0.5, 1, 2, 3, 1, 1, 1]
    assert encoder(fc.concat(fc.bucket("a", [0]), fc.bucket("a", [5])))(batch).weights is None
