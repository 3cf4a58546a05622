"""Specs and figures in words."""

from __future__ import annotations

import pytest

from edl import spec
from edl.models.fitting import ColumnSummary
from sqlflow_edl.reports import text


@pytest.mark.parametrize(
    ("feature", "wanted"),
    [
        (spec.Numeric("a", 2.0), "numeric, mean 2"),
        (spec.Normalize("a", -1.0, 1.0, 0.123456789), "normalize, min -1, max 1, mean 0.1235"),
        (spec.OneHot(spec.Bucket("a", (1.0, 2.5))), "one-hot of bucket, 2 boundaries: 1, 2.5; 4 wide"),
        (spec.Embedding(spec.CategoryId("a", 1000), 16, "mean"),
         "embedding of category id, buckets 1,000; 16 wide, combined by mean"),
        (spec.OneHot(spec.DatePart("a", "month")), "one-hot of month; 13 wide"),
        (spec.OneHot(spec.Cross(("a", "b"), 9)), "one-hot of cross, buckets 9; 10 wide"),
        (spec.PiecewiseLinear("a", (0.0, 1.0, 2.5)), "piecewise linear, 2 bins: 0, 1, 2.5"),
        (spec.PiecewiseLinear("a", (0.0, 1.5), True), "piecewise linear, 1 bin, and one for NULL: 0, 1.5"),
        (spec.Periodic("a", 2.0, 0.5, 16), "periodic, 16 frequencies, mean 2, std 0.5"),
        (spec.Embedding(spec.NGrams("a", 3, 4096), 32, "mean"),
         "embedding of n-grams of 3 characters, size 4,096; 32 wide, combined by mean"),
        (spec.TargetMean(spec.HashBucket("a", 2), 10.0, 2, (1.0,) * 6, (0.5,) * 12, 2),
         "mean label of hash bucket, buckets 2; smoothing 10, out of 2 folds; 2 wide"),
        (spec.LogCount(spec.HashBucket("a", 2)), "log of the number of rows of hash bucket, buckets 2"),
        (spec.GroupMean(spec.HashBucket("a", 2), "b"), "mean of b by hash bucket, buckets 2"),
        (spec.GroupMean(spec.HashBucket("a", 2), "b", True), "b less its mean by hash bucket, buckets 2"),
        (spec.Vocabulary("a", tuple(range(20))), "vocabulary, 20 values: 0, 1, 2, 3, 4, 5, 6, 7, …"),
        (spec.Vocabulary("a", ("x\ny", "z" * 99)), f"vocabulary, 2 values: x y, {'z' * 39}…"),
    ],
)  # fmt: skip
def test_a_feature_is_named_with_its_fitted_parameters(feature: spec.Feature, wanted: str) -> None:
    assert text.feature(feature) == wanted


_DAY = 1_509_926_400.0  # 2017-11-06, in seconds


@pytest.mark.parametrize(
    ("feature", "type_", "wanted"),
    [
        (spec.PiecewiseLinear("a", (_DAY, _DAY + 86_400)), "date32[day]",
         "piecewise linear, 1 bin: 2017-11-06, 2017-11-07"),
        (spec.Periodic("a", _DAY, 8.64e6, 16), "timestamp[us]",
         "periodic, 16 frequencies, mean 2017-11-06 00:00:00, std 100 days"),
        (spec.Standardize("a", _DAY, 8.64e6), "date32[day]", "standardize, mean 2017-11-06, std 100 days"),
        (spec.OneHot(spec.Bucket("a", (_DAY,))), "date32[day]",
         "one-hot of bucket, 1 boundaries: 2017-11-06; 3 wide"),
        (spec.Year("a", 2017.0, 1.5), "date32[day]", "year, mean 2017, std 1.5"),
        (spec.Standardize("a", 2017.0, 1.5), "int64", "standardize, mean 2017, std 1.5"),
    ],
)  # fmt: skip
def test_the_figures_of_dates_are_dates_and_days(feature: spec.Feature, type_: str, wanted: str) -> None:
    assert text.feature(feature, {"a": type_}) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(True, "TRUE"), (0.001, "0.001"), (3, "3"), ((1, 2), "[1, 2]"), ("a\n b", "a b"), (None, "None")],
)
def test_a_value_is_written_as_in_a_statement(value: object, wanted: str) -> None:
    assert text.value(value) == wanted


@pytest.mark.parametrize(
    ("count", "wanted"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (3e13, "30,000.0 GB")],
)
def test_bytes_are_in_the_unit_that_suits_them(count: float, wanted: str) -> None:
    assert text.size(count) == wanted


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [(0.256, "0.26 s"), (42.44, "42.4 s"), (185, "3 min 5 s"), (9000, "2 h 30 min"), (7e7, "810 days")],
)
def test_a_duration_is_in_the_unit_that_suits_it(seconds: float, wanted: str) -> None:
    assert text.duration(seconds) == wanted


@pytest.mark.parametrize(
    ("nulls", "wanted"),
    [(0, "no NULL"), (1, "below 0.1 % NULL"), (2500, "25.0 % NULL"), (10_000, "100.0 % NULL")],
)
def test_the_share_of_nulls_is_never_rounded_to_none(nulls: int, wanted: str) -> None:
    assert text.nulls(ColumnSummary(rows=10_000, nulls=nulls)) == wanted


@pytest.mark.parametrize(
    ("type_", "wanted"),
    [
        ("double", "86400 to 259200, mean 172800, std 86400"),
        ("date32[day]", "1970-01-02 to 1970-01-04, mean 1970-01-03, std 24 h 0 min"),
        (
            "timestamp[us]",
            "1970-01-02 00:00:00 to 1970-01-04 00:00:00, mean 1970-01-03 00:00:00, std 24 h 0 min",
        ),
    ],
)
def test_the_figures_of_dates_are_dates(type_: str, wanted: str) -> None:
    found = ColumnSummary(3, 0, min=86_400.0, max=259_200.0, mean=172_800.0, std=86_400.0)
    assert text.summary(found, type_).removeprefix("3 rows, no NULL, ") == wanted


def test_the_figures_of_times_are_times_and_those_beyond_all_years_are_seconds() -> None:
    assert text.moment(3661.0, "time64[us]") == "01:01:01"
    assert text.moment(1e18, "timestamp[us]") == "1e+18 s"


@pytest.mark.parametrize(
    ("type_", "wanted"),
    [
        ("int32", "whole number"),
        ("double", "number"),
        ("decimal128(8, 2)", "number"),
        ("large_string", "text"),
        ("date32[day]", "date"),
        ("timestamp[us, tz=UTC]", "date and time"),
        ("list<item: double>", "list"),
        ("struct<a: int32>", "struct<a: int32>"),
    ],
)
def test_a_type_has_a_name_for_people(type_: str, wanted: str) -> None:
    assert text.plain_type(type_) == wanted
