"""Warnings of large numbers that models take in float32."""

from __future__ import annotations

import numpy as np
import pytest

from edl import spec
from sqlflow_edl.analysis.checks.data import is_in_float32, merged_numbers, rounded_label
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

SECONDS = ColumnStatistics(rows=9, min=1_700_000_000, max=1_700_000_064, mean=1_700_000_032, std=20)


def job(loss: str) -> spec.JobSpec:
    component = spec.Component(loss)
    return spec.JobSpec(
        "train", "", spec.Query("", "", ()), spec.Rows(False, 9, 9), "lightgbm", component, {},
        spec.RegressionLabel("y"), component, component, (),
    )  # fmt: skip


def warnings(label: spec.Label, found: ColumnStatistics, loss: str = "mean_squared_error") -> list[str]:
    return [str(each) for each in rounded_label(label, found, job(loss))]


def test_a_label_with_a_centre_is_learned_exactly_enough() -> None:
    assert warnings(spec.RegressionLabel("y", 0.0, 20.0, 1_700_000_032.0), SECONDS) == []


def test_a_loss_of_logarithms_allows_no_centre() -> None:
    [found] = warnings(spec.RegressionLabel("y", 1_700_000_032.0, 20.0), SECONDS, "poisson")
    assert found == (
        "the model learns y in float32, whose numbers near 1700000064 are 128 apart, and the standard deviation of y "
        "is 20; name another loss than poisson: mean_squared_error learns it less its mean"
    )


def test_a_loss_of_a_user_allows_no_centre() -> None:
    [found] = warnings(spec.RegressionLabel("y", 1_700_000_032.0, 20.0), SECONDS, "mine.loss")
    assert found.endswith("select it less a number near its mean: y - 1700000032 AS …")


def test_numbers_that_float64_rounds_are_named() -> None:
    ids = ColumnStatistics(rows=9, min=1.7e18, max=1.7e18 + 1000, mean=1.7e18, std=300)
    [found] = warnings(spec.RegressionLabel("y", 0.0, 300.0, 1.7e18), ids)
    assert "learns y in float64, whose numbers near 1700000000000001024 are 256 apart" in found


@pytest.mark.parametrize(
    ("feature", "framework", "taken"),
    [
        (spec.Raw("x"), "xgboost", True),
        (spec.Raw("x"), "lightgbm", False),
        (spec.Raw("x", "month"), "xgboost", False),
        (spec.Numeric("x", 0.0), "torch", True),
        (spec.Standardize("x", 0.0, 1.0), "torch", False),
    ],
)
def test_only_numbers_that_are_not_standardised_are_taken_in_float32(
    feature: spec.Feature, framework: str, taken: bool
) -> None:
    assert is_in_float32(feature, framework) is taken


def merged(values: np.ndarray, feature: spec.Feature, *, temporal: bool = False) -> list[str]:
    return [str(each) for each in merged_numbers(feature, values, temporal=temporal)]


def test_values_that_xgboost_makes_equal_are_counted() -> None:
    ids = np.r_[16_777_216 + np.arange(1000.0), np.nan]
    [found] = merged(ids, spec.Raw("x"))
    assert found == (
        "XGBoost takes x in float32, in which 499 of its 1,000 different values are equal to others; model.framework = "
        "lightgbm compares float64, or select it less a number near its mean: x - 16777716 AS x"
    )
    [of_times] = merged(ids, spec.Raw("x"), temporal=True)
    assert of_times.endswith("model.framework = lightgbm compares float64")
    [of_network] = merged(ids, spec.Numeric("x", 0.0))
    assert "the network takes x in float32" in of_network and "write COLUMN STANDARDIZE(x)" in of_network


@pytest.mark.parametrize(
    "values",
    [
        np.arange(1000.0),
        np.random.default_rng(1).normal(size=20_000),
        1_700_000_000 + np.random.default_rng(1).uniform(0, 365 * 86_400, 20_000).round(),
    ],
)
def test_ordinary_numbers_and_the_instants_of_a_year_are_no_finding(values: np.ndarray) -> None:
    assert merged(values, spec.Raw("x")) == []
