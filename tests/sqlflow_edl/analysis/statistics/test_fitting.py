"""The statistics of the training rows, from one stream over them."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.errors import SemanticError
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.statistics.accumulators import RowSample, ValueCounter, round_to_scale
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want, collect, distinct_values

EVERYTHING = Want.MOMENTS | Want.QUANTILES | Want.COUNTS | Want.TEXT


def batches(values: Any, cuts: list[int] | None = None) -> list[pa.RecordBatch]:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    ends = [0, *(cuts or []), len(array)]
    return [pa.record_batch([array[start:end]], names=["x"]) for start, end in itertools.pairwise(ends)]


def statistics(
    values: Any, want: Want = EVERYTHING, cuts: list[int] | None = None, **options: Any
) -> ColumnStatistics:
    found = batches(values, cuts)
    return collect(found, {"x": want}, seed=options.pop("seed", 0), **options)["x"]


# Numbers ---------------------------------------------------------------------------------------------------


def test_a_number_has_extremes_mean_and_population_deviation() -> None:
    found = statistics([1.0, 2.0, 3.0, 6.0])
    assert (found.rows, found.nulls) == (4, 0)
    assert (found.min, found.max, found.mean) == (1, 6, 3)
    assert found.std == round_to_scale(math.sqrt(3.5), 1)
    assert not found.constant


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None],
        [1.0, 2.0, math.nan],
        [1.0, 2.0, math.inf],
        [1.0, 2.0, -math.inf],
        [Decimal(1), Decimal(2), None],
        pa.array([1, 2, None], pa.uint8()),
        pa.array([1, 2, None]).dictionary_encode(),
    ],
)
def test_null_nan_and_infinity_count_as_null_and_enter_nothing(values: Any) -> None:
    found = statistics(values)
    assert (found.rows, found.nulls) == (3, 1)
    assert (found.min, found.max, found.mean, found.std) == (1, 2, 1.5, 0.5)
    assert found.quantiles([0, 1]) == (1, 2)
    assert found.counts is not None
    assert found.counts.values == (1, 2)
    assert found.integers


def test_booleans_count_as_zero_and_one() -> None:
    found = statistics([True, False, True, None])
    assert (found.min, found.max) == (0, 1)
    assert found.mean == round_to_scale(2 / 3, found.std)
    assert found.integers


@pytest.mark.soak
@given(
    st.lists(st.none() | st.just(math.nan) | st.floats(-1e9, 1e9), max_size=50),
    st.lists(st.integers(0, 50), max_size=4).map(sorted),
)
def test_figures_do_not_depend_on_how_the_rows_are_cut(values: list[float | None], cuts: list[int]) -> None:
    array = pa.array(values, pa.float64())
    whole, parts = statistics(array), statistics(array, cuts=[min(cut, len(array)) for cut in cuts])
    for name in ("rows", "nulls", "min", "max", "integers", "constant", "distinct"):
        assert getattr(whole, name) == getattr(parts, name)
    assert parts.mean == pytest.approx(whole.mean, rel=1e-9, abs=2e-9 * whole.std)
    assert parts.std == pytest.approx(whole.std, rel=2e-9, abs=1e-6)
    assert whole.quantiles([0.1, 0.5]) == parts.quantiles([0.1, 0.5])
    finite = [value for value in values if value is not None and math.isfinite(value)]
    assert len(values) - len(finite) == whole.nulls
    if finite:
        assert whole.mean == pytest.approx(
            np.mean(finite), rel=1e-8, abs=1e-8 * float(np.std(finite)) + 1e-12
        )


def test_a_deviation_is_exact_far_from_zero() -> None:
    values = 1e9 + np.random.default_rng(0).normal(size=10_000)
    found = statistics(values, cuts=[1, 100, 5000])
    assert found.std == pytest.approx(np.std(values - 1e9), rel=1e-6)
    assert found.mean - 1e9 == pytest.approx(np.mean(values - 1e9), abs=1e-6)


def test_figures_keep_nine_digits_of_the_deviation() -> None:
    assert round_to_scale(38.57891234567, 13.64) == 38.5789123
    assert round_to_scale(1_700_000_000.123456789, 100.0) == 1_700_000_000.123457
    assert round_to_scale(1e-20, 3.0) == 0
    assert round_to_scale(123456789012.0, 1e11) == 123456789000.0
    assert round_to_scale(5e-324, 5e-324) == 5e-324
    assert round_to_scale(1.7e308, 1.7e308) == 1.7e308
    assert round_to_scale(0.1, 0.0) == 0.1


def test_a_constant_has_no_deviation_whatever_rounding_does() -> None:
    found = statistics([0.1] * 1001, cuts=[7, 300])
    assert (found.mean, found.std, found.constant) == (0.1, 0.0, True)
    assert not statistics([0.1, 0.2]).constant
    assert not statistics([0.1, 0.1], Want.QUANTILES).constant  # nobody looked


def test_null_is_a_value_of_a_constant() -> None:
    some_null = statistics([0.1, None, 0.1])
    assert (some_null.constant, some_null.is_value_or_null) == (False, True)
    all_null = statistics([None, None])
    assert (all_null.constant, all_null.is_value_or_null) == (True, False)
    assert not statistics([0.1, None, 0.2]).is_value_or_null


def test_no_values_have_zeros() -> None:
    for values in (pa.nulls(3), pa.array([None, None, None], pa.float64()), pa.array([math.nan] * 3)):
        found = statistics(values)
        assert (found.rows, found.nulls) == (3, 3)
        assert (found.min, found.max, found.mean, found.std) == (0, 0, 0, 0)
        assert found.quantiles([0.5]) == ()
        assert found.distinct == 0
        assert found.constant
    assert statistics(pa.array([], pa.int64())).rows == 0
    assert collect([], {"x": EVERYTHING}, seed=0)["x"].rows == 0


def test_integers_are_told_from_fractions() -> None:
    assert statistics([1.0, -2.0, None]).integers
    assert not statistics([1.0, 2.5], cuts=[1]).integers
    assert not statistics([2.5, 1.0], cuts=[1]).integers
    assert statistics([Decimal("1.00")]).integers


def test_numbers_at_the_end_of_float64_stay_finite() -> None:
    found = statistics([1.7e308, -1.7e308, 1e308, 1.7e308])
    assert math.isfinite(found.mean)
    assert math.isfinite(found.std)
    assert (found.min, found.max) == (-1.7e308, 1.7e308)


def test_timestamps_count_in_seconds() -> None:
    day = dt.datetime(1970, 1, 2)
    assert statistics(pa.array([day, None]), Want.MOMENTS | Want.QUANTILES).mean == 86_400


# Quantiles -------------------------------------------------------------------------------------------------


def test_quantiles_are_of_type_seven() -> None:
    assert statistics([1, 2, 3, 4]).quantiles([0, 0.25, 0.5, 1]) == (1, 1.75, 2.5, 4)


def sampled_rows(seed: int, most: int, cuts: list[int]) -> list[int]:
    sample, rows, kept = RowSample(most, seed), np.arange(10_000), np.empty(0, np.int64)
    for start, end in itertools.pairwise([0, *cuts, 10_000]):
        kept = np.concatenate([kept, rows[start:end][sample.rows(end - start)]])
        if (stays := sample.thin()) is not None:
            kept = kept[stays]
    return kept.tolist()


def test_a_sample_depends_on_the_seed_and_the_rows_alone() -> None:
    drawn = sampled_rows(1, 1000, [])
    assert drawn == sampled_rows(1, 1000, [10, 10, 700, 2500, 5000])
    assert drawn != sampled_rows(2, 1000, [])
    assert drawn != sampled_rows(-1, 1000, [])
    assert 500 < len(drawn) <= 1000
    assert 4500 < np.mean(drawn) < 5500
    assert drawn == sorted(set(drawn))


def test_few_rows_are_all_sampled() -> None:
    assert sampled_rows(1, 10_000, [10]) == list(range(10_000))


def test_quantiles_of_a_sample_are_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlflow_edl.analysis.statistics.fitting.SAMPLE_ROWS", 10_000)
    values = np.random.default_rng(0).normal(size=50_000)
    values[::10] = np.nan
    found = statistics(values, Want.QUANTILES, cuts=[4000, 20_000])
    assert 4500 < len(found.sample) <= 9500
    assert found.quantiles([0.5]) == pytest.approx((0.0,), abs=0.05)


def test_a_text_column_has_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlflow_edl.analysis.statistics.fitting.SAMPLE_ROWS", 2)
    assert statistics(["a", "b", "c"], EVERYTHING).quantiles([0.5]) == ()


# Values ----------------------------------------------------------------------------------------------------


def test_values_are_ordered_by_count_then_bytes() -> None:
    found = statistics(["b", "a", "b", "é", "Z", None, ""], cuts=[2, 5])
    assert found.counts is not None
    assert found.counts.values == ("b", "", "Z", "a", "é")
    assert found.counts.counts == (2, 1, 1, 1, 1)
    assert found.distinct == 5
    assert found.counts.classes == ("", "Z", "a", "b", "é")


def test_integers_of_equal_count_are_ordered_by_size() -> None:
    found = statistics([10, 9, -1, 10])
    assert found.counts is not None
    assert found.counts.values == (10, -1, 9)
    assert found.counts.classes == (-1, 9, 10)


def test_a_vocabulary_keeps_the_frequent_values() -> None:
    counts = statistics(["a", "b", "b", "c", "c", "c"]).counts
    assert counts is not None
    assert counts.vocabulary() == ("c", "b", "a")
    assert counts.vocabulary(min_count=2) == ("c", "b")
    assert counts.vocabulary(max_size=1) == ("c",)
    assert counts.vocabulary(min_count=4) == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, True, False], (True, False)),
        ([2.0, 2.0, 1.0], (2, 1)),
        ([2.5, 2.5, 1.0], ("2.5", "1")),
        (pa.array([0.1, 0.1, 7], pa.float32()), ("0.1", "7")),
        ([Decimal("2.00"), Decimal("1.00"), Decimal("2.00")], (2, 1)),
        ([Decimal("2.50"), Decimal("1.00"), Decimal("2.50")], ("2.5", "1")),
        (pa.array([2**64 - 1, 1, 1], pa.uint64()), (1, 2**64 - 1)),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ("x", "y")),
        (pa.array(["x", "y", "x"], pa.string_view()), ("x", "y")),
        ([dt.date(2024, 1, 31)] * 2 + [dt.date(2023, 1, 1)], ("2024-01-31", "2023-01-01")),
    ],
)
def test_values_are_python_values_of_one_kind(values: Any, expected: tuple[Any, ...]) -> None:
    counts = statistics(values, Want.COUNTS, cuts=[1]).counts
    assert counts is not None
    assert counts.values == expected
    assert [type(value) for value in counts.values] == [type(value) for value in expected]


def test_a_vocabulary_of_booleans_is_text_and_its_classes_are_not() -> None:
    counts = statistics([True, False, True]).counts
    assert counts is not None
    assert counts.vocabulary() == ("true", "false")
    assert counts.classes == (False, True)


@given(
    st.lists(st.none() | st.text("ab", max_size=3), max_size=60),
    st.lists(st.integers(0, 60), max_size=5).map(sorted),
    st.integers(1, 8),
)
def test_values_are_counted_up_to_a_bound(values: list[str | None], cuts: list[int], most: int) -> None:
    array = pa.array(values, pa.string())
    found = statistics(array, Want.COUNTS, [min(cut, len(array)) for cut in cuts], most_distinct=most)
    exact = Counter(value for value in values if value is not None)
    if len(exact) > most:
        assert found.counts is None
        assert found.distinct == most
    else:
        assert found.counts is not None
        assert dict(zip(found.counts.values, found.counts.counts, strict=True)) == exact
        assert found.distinct == len(exact)


def test_long_texts_stop_the_counting_too() -> None:
    counts = ValueCounter(most=100, most_bytes=1000)
    counts.add(pa.array(["a", "b", "a"]).value_counts())
    counts.add(pa.array(["x" * 2000]).value_counts())
    assert counts.stopped
    assert counts.ends() is None
    assert counts.distinct == 3


def test_bytes_that_are_no_text_are_named() -> None:
    assert statistics(pa.array([b"a", b"a"]), Want.COUNTS | Want.TEXT).distinct == 1
    with pytest.raises(SemanticError, match="column x holds bytes that are not UTF-8 text"):
        statistics(pa.array([b"\xff"]), Want.COUNTS)


def test_distinct_values_are_in_natural_order() -> None:
    assert distinct_values(batches(["b", "a", None, "b"], cuts=[2]), "x") == ("a", "b")
    assert distinct_values(batches([10, 9, 10]), "x") == (9, 10)
    assert distinct_values(batches([True, False]), "x") == (False, True)
    assert distinct_values(batches(pa.nulls(2)), "x") == ()
    assert distinct_values([], "x") == ()
    assert distinct_values(batches([1, 2, 3]), "x", most=2) is None


# Text ------------------------------------------------------------------------------------------------------


def test_the_longest_text_counts_in_characters() -> None:
    assert statistics(["a", "日本語", None], cuts=[1]).longest == 3


@pytest.mark.parametrize(
    ("values", "delimiter"),
    [
        (["1,2,3", "4,5,6"], ","),
        (["Action|Comedy", "Drama", "Action|Drama"], "|"),
        (["a:1;b:2", "c:3;d:4"], ";"),
        (["1 2 -3.5e2", "4 5 6"], " "),
        (["3:0.5 17:2", "red:1 3:-1"], " "),
        (["at 10:30", "to be"], ""),
        (["1,2", "3", None, "4"], ""),  # most hold one item: hardly a list
        (["Smith, John", "Doe, Jane"], ""),
        (["to be or not", "to be"], ""),
        (["1,2", "3,,4"], ""),
        (["1,2", "", " ", "3"], ","),  # an empty text is an empty list
        (["1,2", "3", "3", "3"], ""),  # in most rows
        (["1,2", "1,2", "1,2", "3", "4"], ","),
        (["a", "b"], ""),
        (["", ""], ""),
        ([], ""),
    ],
)
def test_lists_are_told_by_their_delimiter(values: list[str | None], delimiter: str) -> None:
    array = pa.array(values, pa.string())
    assert statistics(array).delimiter == delimiter
    assert statistics(array, Want.TEXT, cuts=[1] if values else []).delimiter == delimiter


def test_the_shape_of_text_is_told_beyond_the_bound_of_counting() -> None:
    found = statistics([f"{i},{i}" for i in range(100)], cuts=[50], most_distinct=10)
    assert found.counts is None
    assert found.delimiter == ","


# Cells of several values -----------------------------------------------------------------------------------


def of_cells(values: Any, cells: Cells, cuts: list[int] | None = None, **options: Any) -> ColumnStatistics:
    found = batches(values, cuts)
    return collect(found, {"x": Want.NONE}, seed=0, lists=[cells], **options)["x"].lists[cells]


VECTORS = Cells("x", "numbers")


@pytest.mark.parametrize("cuts", [[], [1], [3], [1, 2, 2, 4]])
def test_each_place_of_a_vector_has_the_mean_and_deviation_of_its_numbers(cuts: list[int]) -> None:
    found = of_cells([None, "1,10,5", ",20,5", "3,inf,5", ""], VECTORS, cuts)
    assert found.vector == ((2, 15, 5), (1, 5, 0))
    assert found.error is None


def test_far_from_zero_the_deviations_of_a_vector_are_the_populations() -> None:
    drawn = np.random.default_rng(5).normal([1e9, -3.0], [1.0, 1e-3], (1000, 2))
    mean, std = of_cells(pa.array(drawn.tolist()), VECTORS, [10, 500]).vector
    np.testing.assert_allclose(mean, drawn.mean(axis=0))
    np.testing.assert_allclose(std, drawn.std(axis=0), rtol=1e-6)


def test_batches_do_not_change_a_digit_of_a_vector() -> None:
    drawn = pa.array(np.random.default_rng(6).normal(size=(999, 3)).tolist())
    assert of_cells(drawn, VECTORS).vector == of_cells(drawn, VECTORS, [1, 77, 500]).vector


def test_vectors_at_the_end_of_the_range_have_finite_statistics() -> None:
    mean, std = of_cells([[1.7e308], [-1.7e308], [1.7e308]], VECTORS, [1]).vector
    assert np.isfinite([*mean, *std]).all()


@pytest.mark.parametrize("values", [pa.array([None, ""]), pa.nulls(2)])
def test_cells_that_hold_nothing_have_no_size_but_a_written_one(values: pa.Array) -> None:
    assert of_cells(values, VECTORS).vector == ((), ())
    assert of_cells(values, Cells("x", "numbers", size=2)).vector == ((0, 0), (0, 0))


@pytest.mark.parametrize("cuts", [[], [1], [1, 2]])
def test_items_are_counted_and_measured_as_values_are(cuts: list[int]) -> None:
    counted = of_cells(["b|a", None, "b||c"], Cells("x", "words", "|"), cuts).counts
    assert counted is not None
    assert (counted.values, counted.counts) == (("b", "a", "c"), (2, 1, 1))
    measured = of_cells(["3:0.5 7:1", None, "0:2"], Cells("x", "ids", " ", ":"), cuts)
    assert (measured.min, measured.max, measured.integers) == (0, 7, True)
    assert not of_cells([[1.5, 2.0], [3.0]], Cells("x", "ids")).integers
    assert of_cells([["b", "a"]], Cells("x", "words"), most_distinct=1).counts is None


@pytest.mark.parametrize(
    ("values", "cells", "message"),
    [
        (["1,2", "1,2,3", "x"], VECTORS, "column x holds '1,2,3', not 2 numbers"),
        (["1,2", "1,2"], Cells("x", "numbers", size=3), "column x holds '1,2', not 3 numbers"),
        (["1,2", "1,x"], Cells("x", "ids"), "column x holds '1,x', and 'x' is not a number"),
        (
            ["a:1", "b"],
            Cells("x", "words", separator=":"),
            "column x holds 'b', and 'b' has no weight after ':'",
        ),
    ],
)
def test_the_first_cell_that_cannot_be_read_is_kept(values: list[str], cells: Cells, message: str) -> None:
    for cuts in ([], [1]):
        error = of_cells(values, cells, cuts).error
        assert error is not None
        assert error.message == message


# Streams ---------------------------------------------------------------------------------------------------


def test_only_the_wanted_is_computed() -> None:
    found = statistics([1.0, 2.0], Want.NONE)
    assert (found.rows, found.max, found.counts, len(found.sample)) == (2, 0, None, 0)
    assert statistics([1.0, 2.0], Want.MOMENTS).counts is None
    assert statistics(["a"], Want.MOMENTS | Want.QUANTILES).distinct == 0


def test_columns_are_picked_by_name() -> None:
    table = pa.record_batch([pa.array([1]), pa.array(["t"]), pa.array([[1]])], names=["a", "b", "c"])
    found = collect([table], {"b": Want.COUNTS, "a": Want.MOMENTS}, seed=0)
    assert list(found) == ["b", "a"]
    assert (found["a"].mean, found["b"].distinct) == (1, 1)


@pytest.mark.parametrize("want", [Want.MOMENTS, Want.COUNTS])
def test_a_type_without_meaning_is_an_error_that_names_the_column(want: Want) -> None:
    with pytest.raises(SemanticError, match="column x is of type list"):
        statistics([[1], [2]], want)


def test_many_quantile_columns_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlflow_edl.analysis.statistics.fitting.SAMPLE_VALUES", 4000)
    table = pa.record_batch({name: np.arange(20_000.0) for name in "abcd"})
    found = collect([table], dict.fromkeys("abcd", Want.QUANTILES), seed=3)
    assert all(500 < len(column.sample) <= 1000 for column in found.values())
    assert np.array_equal(found["a"].sample, found["d"].sample)
