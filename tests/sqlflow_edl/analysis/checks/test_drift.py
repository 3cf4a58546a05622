"""Drift of single columns, by figures computed another way."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from edl import spec
from edl.models.fitting import ColumnSummary, Histogram
from sqlflow_edl.analysis.checks.drift import ColumnDrift, compare
from sqlflow_edl.analysis.columns.decisions import summary
from sqlflow_edl.analysis.statistics.fitting import Want, collect

rng = np.random.default_rng(3)


def summarized(values: pa.Array, want: Want) -> ColumnSummary:
    return summary(collect([pa.record_batch({"c": values})], {"c": want}, seed=0)["c"], want)


def drift(then: ColumnSummary, *parts: pa.Array, known: tuple[str, ...] = ()) -> ColumnDrift:
    features = [spec.Codes(spec.Vocabulary("c", known))] if known else []
    [found] = compare((pa.record_batch({"c": part}) for part in parts), {"c": then}, features)
    return found


def index(then: list[float], now: list[float]) -> float:
    """The population stability index of two lists of counts, with half a row more in each bin."""
    shares = [[(count + 0.5) / (sum(counts) + len(counts) / 2) for count in counts] for counts in (then, now)]
    return math.fsum((b - a) * math.log(b / a) for a, b in zip(*shares, strict=True))


def test_numbers_are_counted_between_the_deciles_of_training() -> None:
    then, now = rng.lognormal(size=5000), rng.lognormal(0.4, size=3000)
    found = drift(summarized(pa.array(then), Want.MOMENTS), pa.array(now[:1000]), pa.array(now[1000:]))
    edges = [-math.inf, *np.quantile(then, np.arange(1, 10) / 10, method="inverted_cdf"), math.inf]
    counted = [np.histogram(values, edges)[0].tolist() for values in (then, now)]
    assert found.psi == pytest.approx(index(*counted))
    assert (found.verdict, found.why) == ("shifted", "distribution")
    assert found.now == (now.min(), now.max())


def test_categories_are_counted_by_frequent_values_and_the_others() -> None:
    then = summarized(pa.array(["a"] * 600 + ["b"] * 300 + ["c"] * 100), Want.COUNTS)
    found = drift(then, pa.array(["a"] * 100 + ["b"] * 500 + ["d"] * 400), known=("a", "b", "c"))
    assert found.psi == pytest.approx(index([600, 300, 100, 0], [100, 500, 0, 400]))
    assert (found.verdict, found.why, found.unseen) == ("drifted", "distribution, unseen values", 0.4)


def test_values_that_a_short_vocabulary_left_out_are_no_drift() -> None:
    values = pa.array(["a"] * 600 + ["b"] * 300 + ["c"] * 100)
    found = drift(summarized(values, Want.COUNTS), values, known=("a",))
    assert (found.verdict, found.unseen) == ("stable", 0.4)


def test_new_values_of_a_column_that_always_has_new_ones_are_no_drift() -> None:
    names = [f"n{i}" for i in range(1000)]
    then = summarized(pa.array(names), Want.COUNTS)
    assert then.once == 1000
    assert drift(then, pa.array([f"m{i}" for i in range(900)]), known=tuple(names)).verdict == "stable"
    some = summarized(pa.array([*names[:100], *names[100:200] * 9]), Want.COUNTS)
    assert some.once == 100
    now = pa.array([*names[100:200] * 7, *(f"m{i}" for i in range(300))])
    assert drift(some, now, known=tuple(names[:200])).why == "unseen values"  # 30 % instead of 10 %


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.decimal128(21, 1)])
def test_the_type_of_a_category_may_change(kind: pa.DataType) -> None:
    then = summarized(pa.array([1] * 700 + [2] * 300), Want.COUNTS)
    assert drift(then, pa.array([1] * 700 + [2] * 300).cast(kind)).psi == pytest.approx(0.0)


def test_few_rows_are_no_evidence() -> None:
    then = summarized(pa.array(rng.normal(size=5000)), Want.MOMENTS)
    found = drift(then, pa.array(rng.normal(size=12)))
    assert found.psi is not None
    assert found.psi > 0.1
    assert (found.verdict, found.why) == ("stable", "too few rows to tell")


def test_the_same_distribution_is_stable_in_nearly_all_samples() -> None:
    then = summarized(pa.array(rng.normal(size=2000)), Want.MOMENTS)
    found = [drift(then, pa.array(rng.normal(size=size))) for size in (10, 30, 100, 300) for _ in range(100)]
    assert sum(each.verdict != "stable" for each in found) <= 4


def test_nulls_and_numbers_that_are_none_are_counted_together() -> None:
    then = summarized(pa.array([1.0, 2.0, 3.0, None] * 100), Want.MOMENTS)
    found = drift(then, pa.array([1.0, 2.0, math.nan, None] * 100))
    assert (found.nulls_then, found.nulls_now) == (0.25, 0.5)
    assert (found.verdict, found.why) == ("drifted", "distribution, NULLs")


def test_a_model_without_deciles_is_compared_by_its_histogram() -> None:
    histogram = Histogram(0.0, 1.0, (400, 0, 200, 200, 100, 100))
    then = ColumnSummary(1000, 0, min=0.0, max=5.0, histogram=histogram)
    values = np.repeat(np.arange(6.0), histogram.counts)
    assert drift(then, pa.array(values)).psi == pytest.approx(0.0)
    found = drift(then, pa.array(values + 1))
    assert found.psi is not None
    assert found.psi > 1
    assert found.outside == 0.1


def test_a_column_without_statistics_is_unknown() -> None:
    then = ColumnSummary(1000, 0)
    assert (drift(then, pa.array(["a"] * 10)).verdict, drift(then, pa.array([], pa.string())).why) == (
        "unknown",
        "no rows",
    )
    assert drift(then, pa.array(["a"] * 10)).why == "no statistics of its values"
    assert drift(ColumnSummary(1000, 0, distinct=9, countless=True), pa.array(["a"])).why == "too many values"
