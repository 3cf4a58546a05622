"""From a batch to the arrays of a model."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edl import features as fc
from edl.embeddings.placement import refuse_sequence
from edl.errors import SemanticError
from edl.features.transform import compute_vectors
from edl.frameworks.torch.layers import Concatenated
from edl.spec import Feature

LARGEST = float(np.float32(1e30))


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def dense(column: Feature, values: Any) -> list[float]:
    matrix = fc.Features(column).transform(pa.record_batch([pa.array(values)], names=["x"]))[fc.DENSE]
    assert matrix.shape == (len(values), 1)
    return matrix[:, 0].tolist()


def test_numbers_become_one_matrix_and_each_category_its_ids() -> None:
    features = fc.Features(
        fc.numeric("a"),
        fc.one_hot(fc.vocabulary("city", ["oslo", "rome"])),
        fc.standardize("b", mean=2.0, std=2.0),
        fc.embedding(fc.hash_bucket("city", 10), dim=4),
    )
    arrays = features.transform(batch(city=["rome", None], b=[2, 6], unused=["", ""], a=[1.0, 2.0]))
    assert list(arrays) == ["dense", "f1", "f3"] == [entry.name for entry in features.entries]
    assert arrays["dense"].tolist() == [[1.0, 0.0], [2.0, 2.0]]
    assert arrays["dense"].dtype == np.float32
    assert arrays["dense"].flags.c_contiguous
    assert arrays["f1"].tolist() == [1, 2]
    assert arrays["f3"].dtype == np.int64
    assert [entry.kind for entry in features.entries] == ["dense", "category", "category"]
    assert [entry.width for entry in features.entries] == [2, 3, 4]
    assert [entry.num_ids for entry in features.entries] == [0, 3, 11]
    assert features.width == 9
    assert features.source_columns == ("a", "city", "b")


def test_a_binned_number_is_its_position_in_the_bins() -> None:
    features = fc.Features(
        fc.piecewise_linear("x", [0, 1, 3]), fc.numeric("x"), fc.piecewise_linear("y", [10, 20], nulls=True)
    )
    arrays = features.transform(
        batch(x=[-5, 0, 0.5, 1, 2, 3, 9, None], y=[15, None, math.nan, math.inf, 1, 2, 30, 20])
    )
    assert list(arrays) == ["dense", "positions"]
    assert arrays["positions"].dtype == np.float32
    assert arrays["positions"].T.tolist() == [[0, 0, 0.5, 1, 1.5, 2, 2, 1], [0.5, -1, -1, -1, 0, 0, 1, 1]]
    assert [entry.width for entry in features.entries] == [1, 2 + 2]
    assert features.entries[1].encodings == ([0, 0, 1, 1], [0.0, 1.0, -1.0, 0.0])


def test_without_numbers_there_is_no_matrix() -> None:
    features = fc.Features(fc.one_hot(fc.category_id("x", 3)))
    assert list(features.transform(batch(x=[1]))) == ["f0"]


def test_features_over_one_category_share_its_ids() -> None:
    features = fc.Features(
        fc.one_hot(fc.hash_bucket("x", 10)),
        fc.embedding(fc.hash_bucket("x", 10), dim=2),
        fc.one_hot(fc.hash_bucket("x", 11)),
    )
    arrays = features.transform(batch(x=["a"]))
    assert arrays["f0"] is arrays["f1"]
    assert arrays["f0"] is not arrays["f2"]


def test_a_null_becomes_the_mean() -> None:
    missing = [None, math.nan, math.inf, -math.inf]
    assert dense(fc.numeric("x", mean=7.0), [1.0, *missing]) == [1, 7, 7, 7, 7]
    assert dense(fc.standardize("x", mean=7.0, std=2.0), [9.0, *missing]) == [1, 0, 0, 0, 0]
    assert dense(fc.normalize("x", min=5, max=9, mean=7.0), [9.0, *missing]) == [1, 0.5, 0.5, 0.5, 0.5]
    expected = [math.log1p(7)] * 4
    assert dense(fc.log("x", mean=7.0), [0.0, *missing]) == pytest.approx([0, *expected])


def test_a_column_of_nulls_is_all_mean() -> None:
    assert dense(fc.numeric("x", mean=3.0), pa.nulls(2)) == [3, 3]


def test_a_constant_column_yields_zero() -> None:
    assert dense(fc.standardize("x", mean=1.0, std=0.0), [1.0, 5.0, None]) == [0, 0, 0]
    assert dense(fc.normalize("x", min=1, max=1, mean=1), [1.0, 5.0, None]) == [0, 0, 0]


def test_normalised_numbers_are_not_clipped() -> None:
    assert dense(fc.normalize("x", min=0, max=2, mean=1), [-2, 4]) == [-1, 2]


def test_a_number_without_logarithm_becomes_the_mean() -> None:
    assert dense(fc.log("x", mean=math.e - 1), [-1.0, -5.0, math.e - 1]) == pytest.approx([1, 1, 1])


def test_big_numbers_are_told_apart_before_they_are_narrowed() -> None:
    base = 1_700_000_000_000
    assert dense(fc.standardize("x", mean=base, std=1.0), [base, base + 1]) == [0, 1]
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    column = fc.standardize("x", mean=start.timestamp(), std=1.0)
    assert dense(column, [start, start + dt.timedelta(seconds=1)]) == [0, 1]


def test_what_sums_of_float32_cannot_hold_becomes_the_largest_number_of_a_feature() -> None:
    assert dense(fc.numeric("x"), [1e300, -1e300, 1.0]) == [LARGEST, -LARGEST, 1]
    extreme = fc.standardize("x", mean=-1e308, std=1e-3)
    assert dense(extreme, [1.5e308, -1e308]) == [LARGEST, 0]
    assert all(
        math.isfinite(v) for v in dense(fc.normalize("x", min=-1e308, max=1e308, mean=0), [1e308, 0.0])
    )


def test_an_extreme_number_is_the_same_whatever_the_rows_beside_it_are() -> None:
    rows = [1e30, 3e38, -1e31, 1e300, 2.0]
    assert dense(fc.numeric("x"), rows) == [dense(fc.numeric("x"), [row])[0] for row in rows]


def test_no_rows_give_empty_arrays() -> None:
    arrays = fc.Features(fc.numeric("x"), fc.one_hot(fc.bucket("x", [1]))).transform(
        batch(x=pa.array([], pa.int8()))
    )
    assert arrays["dense"].shape == (0, 1)
    assert arrays["f1"].shape == (0,)


def test_the_numbers_of_a_cell_stand_beside_other_numbers_in_their_place() -> None:
    features = fc.Features(
        fc.numeric("a"),
        fc.vector("x", mean=[5, 6]),
        fc.one_hot(fc.bucket("a", [0])),
        fc.vector("x", mean=[2, 3], std=[2, 0]),
    )
    arrays = features.transform(batch(a=[1, 2, 3], x=["4,1", None, ",inf"]))
    assert arrays["dense"].tolist() == [[1, 4, 1, 1, 0], [2, 5, 6, 0, 0], [3, 5, 6, 0, 0]]
    assert (features.entries[0].width, features.width) == (5, 8)
    assert arrays["dense"].flags.c_contiguous


def test_a_sequence_has_the_last_ids_of_a_list_in_their_order() -> None:
    features = fc.Features(fc.sequence(fc.list_of(fc.vocabulary("tags", ["a", "b", "c"])), 2))
    [entry] = features.entries
    assert (entry.kind, entry.width, entry.num_ids) == ("sequence", 2, 5)
    found = features.transform(batch(tags=["c,b,a", "b", None, "", "z,c"]))["f0"]
    assert found.tolist() == [[2, 1], [2, 0], [0, 0], [0, 0], [4, 3]]
    assert found.dtype == np.int64


def test_a_sequence_is_no_part_of_a_matrix() -> None:
    features = fc.Features(fc.sequence(fc.ngrams("name", 3, 100), 5))
    with pytest.raises(SemanticError, match="f0 is a sequence of ids, and no part of a matrix"):
        refuse_sequence(features.entries[0])
    with pytest.raises(SemanticError, match="sequence takes lists"):
        fc.sequence(fc.hash_bucket("name", 9), 5)  # type: ignore[arg-type]


def test_one_hot_rows_of_a_list_are_added_up_among_the_numbers() -> None:
    items = fc.category_id("x", 3)
    features = fc.Features(
        fc.one_hot(fc.list_of(items)),
        fc.one_hot(fc.list_of(fc.category_id("w", 2), " ", weights=":")),
        fc.numeric("a"),
        fc.embedding(fc.list_of(items), dim=2),
    )
    arrays = features.transform(batch(x=["0,2,2", "", "7"], w=[None, "1:0.5 0:2", "1:-1 1:-1"], a=[1, 2, 3]))
    assert arrays["dense"].tolist() == [
        [1, 0, 2, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 2, 0.5, 0, 2],
        [0, 0, 0, 1, 0, -2, 0, 3],
    ]
    assert list(arrays) == ["dense", "f3"]
    assert [(entry.kind, entry.width) for entry in features.entries] == [("dense", 8), ("list", 2)]


def test_what_float32_cannot_hold_of_a_vector_becomes_the_largest_number_of_a_feature() -> None:
    features = fc.Features(fc.vector("x", mean=[0, -1e308], std=[1, 1e-3]))
    assert features.transform(batch(x=["1e300,1.5e308"]))["dense"].tolist() == [[LARGEST, LARGEST]]


def test_a_cell_of_more_numbers_than_training_had_is_shown() -> None:
    with pytest.raises(SemanticError, match="column x holds '1,2,3', not 2 numbers"):
        fc.Features(fc.vector("x", mean=[0, 0])).transform(batch(x=["1,2", "1,2,3"]))


def test_a_slice_of_a_batch_gives_its_own_rows() -> None:
    whole = batch(
        x=[1.0, None, 3.0, 4.0], t=["a", "b", None, "c"], b=[True, None, False, True], v=["1", "2", None, "3"]
    )
    features = fc.Features(
        fc.numeric("x"),
        fc.vector("v", mean=[0]),
        fc.numeric("b"),
        fc.one_hot(fc.hash_bucket("t", 99)),
        fc.one_hot(fc.cross(["t", "b"], 99)),
    )
    expected, sliced = features.transform(whole), features.transform(whole.slice(1, 2))
    for name, values in expected.items():
        assert np.array_equal(sliced[name], values[1:3])


@pytest.mark.soak
@given(st.lists(st.none() | st.floats(width=64) | st.integers(-(2**60), 2**60).map(float), min_size=1))
def test_every_number_comes_out_finite(values: list[float | None]) -> None:
    table = pa.record_batch([pa.array(values, pa.float64())], names=["x"])
    features = fc.Features(
        fc.numeric("x"), fc.standardize("x", 5.0, 1e-5), fc.normalize("x", -1, 1, 0.5), fc.log("x", 2.0)
    )
    assert np.isfinite(features.transform(table)["dense"]).all()


def test_missing_columns_are_named_with_the_nearest() -> None:
    features = fc.Features(fc.numeric("income"), fc.numeric("x"), fc.one_hot(fc.cross(["y", "income"], 3)))
    with pytest.raises(SemanticError, match="the data has no column income, y") as error:
        features.transform(batch(x=[1], Incomes=[2]))
    assert error.value.hint == "did you mean Incomes?"


def test_a_column_that_is_there_twice_is_named() -> None:
    table = pa.record_batch([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(SemanticError, match="the data has several columns x"):
        fc.Features(fc.numeric("x")).transform(table)


def test_a_text_where_a_number_is_needed_is_named() -> None:
    with pytest.raises(SemanticError, match="column x is of type string where a number is needed"):
        fc.Features(fc.numeric("x")).transform(batch(x=["12"]))


def test_columns_may_have_any_name() -> None:
    names = ["", "f1", "dense", "a.b", "class", "日本", "'\"`"]
    table = pa.record_batch([pa.array([i]) for i in range(len(names))], names=names)
    arrays = fc.Features(*(fc.numeric(name) for name in names[1:])).transform(table)
    assert arrays["dense"].tolist() == [[1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), "a model needs at least one feature"),
        ((fc.vocabulary("x", ["a"]),), "Vocabulary gives ids, a model takes numbers"),
        (("x",), "not a feature column: 'x'"),
    ],
)
def test_what_is_no_feature_is_refused(columns: Any, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        fc.Features(*columns)


def test_trees_take_numbers_as_they_are_and_codes_of_categories() -> None:
    features = fc.Features(
        fc.raw("id"),
        fc.codes(fc.vocabulary("city", ["oslo", "rome"])),
        fc.raw("seen", part="month"),
        fc.raw("seen", part="hour"),
        fc.raw("seen", part="year"),
        fc.codes(fc.bucket("id", [0, 16_777_217])),
    )
    seen = [dt.datetime(2024, 1, 31, 0, 5), None, dt.datetime(1999, 12, 1, 23)]
    made = features.transform(batch(id=[16_777_217, None, -1], city=["rome", None, "lima"], seen=seen))
    assert list(made) == ["dense"]
    assert made["dense"].dtype == np.float64
    nan = math.nan
    wanted = [
        [16_777_217, 1, 1, 0, 2024, 2],
        [nan, nan, nan, nan, nan, nan],
        [-1, nan, 12, 23, 1999, 0],
    ]
    np.testing.assert_array_equal(made["dense"], wanted)
    assert features.width == 6


def test_a_number_of_trees_that_is_not_finite_is_missing() -> None:
    assert np.isnan(dense(fc.raw("x"), [math.inf, -math.inf, math.nan])).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fc.raw("x", part="decade"), "a date has no part 'decade'"),
        (lambda: fc.raw(""), "raw needs the name of a column"),
        (lambda: fc.codes(fc.raw("x")), "codes takes a category with one id per row"),  # type: ignore[arg-type]
        (lambda: fc.codes(fc.list_of(fc.category_id("x", 3))), "codes takes a category"),  # type: ignore[arg-type]
    ],
)
def test_a_column_of_trees_that_makes_no_sense_is_an_error(make: Any, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        make()


ROWS_OF_VECTORS = pa.RecordBatch.from_pydict(
    {"a": [1.0, None, 7.5], "b": ["x", "z", None], "c": ["p q", "q", ""]}
)
LETTERS = fc.vocabulary("b", ["x", "y"])
NUMBER = fc.standardize("a", mean=2.0, std=4.0)


def test_vectors_are_what_a_model_concatenates() -> None:
    features = fc.Features(NUMBER, fc.one_hot(LETTERS), fc.piecewise_linear("a", [0.0, 2.0, 8.0]))
    arrays = {name: torch.as_tensor(array) for name, array in features.transform(ROWS_OF_VECTORS).items()}
    expected = Concatenated(features)(arrays).numpy()
    np.testing.assert_array_equal(compute_vectors(features, ROWS_OF_VECTORS), expected)


def test_a_vector_that_a_model_learns_is_refused() -> None:
    with pytest.raises(SemanticError, match="that a model learns"):
        compute_vectors(fc.Features(NUMBER, fc.embedding(LETTERS, dim=2)), ROWS_OF_VECTORS)
