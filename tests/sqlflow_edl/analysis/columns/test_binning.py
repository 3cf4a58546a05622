"""Bins of numbers by the quantiles of the training rows."""

from __future__ import annotations

import numpy as np
import pytest

from edl import spec
from edl.errors import SemanticError
from sqlflow_edl.analysis.columns.binning import bins_of_each, boundaries
from sqlflow_edl.session.session import Session


def test_bins_hold_equal_shares_of_the_values() -> None:
    assert boundaries(np.arange(101.0)[::-1] ** 2, 4) == (0.0, 625.0, 2500.0, 5625.0, 10000.0)


def test_many_numbers_have_fewer_bins_each() -> None:
    assert [bins_of_each(columns) for columns in (0, 1, 480, 500, 800, 5000)] == [16, 16, 16, 15, 9, 2]


@pytest.mark.soak
def test_the_numbers_of_a_wide_table_have_fewer_bins_each() -> None:
    numbers = ", ".join(f"(i * {n} % 97) / 7 AS x{n}" for n in range(1, 501))
    with Session("duckdb:") as session:
        [found] = session.compile(
            f"SELECT i % 10 AS y, {numbers} FROM range(97) AS t(i) TO TRAIN DNNRegressor LABEL y INTO m"
        )
    bins = [each.bins for each in found.spec.features if isinstance(each, spec.PiecewiseLinear)]
    assert bins == [15] * len(bins)
    assert len(bins) > 490


def test_few_values_are_all_boundaries() -> None:
    assert boundaries(np.array([3.0, 1.0, 3.0, 2.0, 1.0]), 2) == (1.0, 2.0, 3.0)


def test_a_frequent_value_has_bins_of_its_own() -> None:
    values = np.concatenate((np.zeros(500), np.arange(1.0, 501.0)))
    assert boundaries(values, 4) == (0.0, 1.0, 250.0, 500.0)
    assert boundaries(values - 7, 4)[:2] == (-7.0, -6.0)
    middle = np.concatenate((np.arange(400.0), np.full(400, 200.0)))
    assert {199.0, 200.0, 201.0} <= set(boundaries(middle, 8))


@pytest.mark.soak
def test_the_function_fits_bins_to_the_training_rows(session: Session) -> None:
    [made] = session.compile(
        "SELECT age, income FROM packed TO TRAIN DNNRegressor COLUMN PLE(age, 2) LABEL income INTO m"
    )
    [found] = made.spec.features
    assert isinstance(found, spec.PiecewiseLinear)
    assert not found.nulls
    assert list(found.boundaries) == sorted(set(found.boundaries))
    assert found.boundaries[0] == 0.0


def test_a_constant_has_no_bins(session: Session) -> None:
    with pytest.raises(
        SemanticError, match="age is the same in every training row, and bins need two values"
    ):
        session.compile(
            "SELECT 1 AS age, income FROM packed TO TRAIN DNNRegressor COLUMN PLE(age) LABEL income INTO m"
        )
