"""EXPLAIN statements: their settings where nothing is written."""

from __future__ import annotations

import msgspec

from edl.spec import JobSpec, Member, Raw
from sqlflow_edl.analysis.inference.explanation import default_samples, sampled_rows
from tests.edl.models.conftest import SPEC


def model(columns: int, *folds: int) -> JobSpec:
    """One of so many columns, or an ensemble with a member for each number of folds."""
    inputs = {"features": tuple(Raw(f"x{number}") for number in range(columns))}
    one = msgspec.structs.replace(SPEC, inputs=inputs)
    if not folds:
        return one
    members = tuple(Member(1 / len(folds), one, each) for each in folds)
    return msgspec.structs.replace(one, inputs={}, members=members)


def test_rows_of_many_columns_are_compared_with_fewer_rows() -> None:
    for of_rows in (True, False):
        found = [default_samples(model(count), of_rows=of_rows) for count in (1, 100, 200, 800, 5000)]
        assert found == [32, 32, 16, 4, 4]


def test_importances_of_an_ensemble_compare_with_fewer_rows_than_an_explanation_of_each_row() -> None:
    ensemble = model(10, 1, 1, 1)
    assert default_samples(ensemble, of_rows=True) == 32
    assert default_samples(ensemble, of_rows=False) == 10
    assert default_samples(model(10, 5, 5), of_rows=False) == 4


def test_importances_are_over_a_thousand_rows_and_over_fewer_of_a_large_ensemble() -> None:
    assert sampled_rows(model(1000)) == 1000
    assert sampled_rows(model(10, 1, 1, 1)) == 1000
    assert sampled_rows(model(100, 1, 1, 1)) == 250
    assert sampled_rows(model(1000, 5, 5, 5)) == 200


def test_expected_gradients_compare_a_row_with_as_many_rows_as_a_model_keeps() -> None:
    found = [default_samples(model(count), of_rows=True, method="expected_gradients") for count in (1, 5000)]
    assert found == [200, 200]
