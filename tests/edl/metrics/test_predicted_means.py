"""Mean labels by prediction, in bounded space."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from edl.metrics import PredictedMeans, State
from edl.spec.residuals import MeansOfGroup

METRIC = PredictedMeans()


def state(predicted: Any, actual: Any, weights: Any = None) -> State:
    columns = [np.asarray(each, dtype=np.float64)[:, np.newaxis] for each in (actual, predicted)]
    return METRIC.update(METRIC.zero(), *columns, weights)


def test_few_rows_have_a_group_each_in_the_order_of_their_predictions() -> None:
    found = METRIC.groups(state([3.0, -1.0], [2.5, 0.5]))
    assert found == (MeansOfGroup(-1.0, 0.5, 1.0), MeansOfGroup(3.0, 2.5, 1.0))


def test_groups_of_many_rows_have_the_means_of_about_as_many_rows_each() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.normal(500, 100, 20_000)
    found = METRIC.groups(state(predicted, 2 * predicted + rng.normal(size=20_000)))
    assert len(found) == 20
    assert sum(each.weight for each in found) == 20_000
    assert all(abs(each.weight - 1000) < 350 for each in found)
    for each in found:
        assert each.actual == pytest.approx(2 * each.predicted, rel=0.001)
    middle = np.sort(predicted)[9_000:11_000].mean()
    assert any(abs(each.predicted - middle) < 20 for each in found)


def test_states_are_bounded_and_merge_to_the_state_of_all_rows() -> None:
    rng = np.random.default_rng(1)
    parts = [(values := rng.lognormal(sigma=3, size=2000) - 5, values * 1.5) for _ in range(6)]
    merged = functools.reduce(METRIC.merge, [state(*part) for part in parts])
    whole = state(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    assert merged[1].shape[1] <= 512
    np.testing.assert_array_equal(merged[1][0], whole[1][0])
    np.testing.assert_allclose(merged[1][1:], whole[1][1:], rtol=1e-9)
    assert METRIC.result(merged) == pytest.approx(METRIC.result(whole))


def test_a_row_counts_with_its_weight_and_one_that_is_not_finite_does_not() -> None:
    found = METRIC.groups(
        state([1.0, 1.0, 2.0, np.nan], [0.0, 3.0, 9.0, 1.0], np.array([2.0, 1.0, 0.0, 1.0]))
    )
    assert found == (MeansOfGroup(1.0, 1.0, 3.0),)


def test_other_scores_have_no_groups() -> None:
    assert METRIC.groups(METRIC.update((), np.zeros((3, 1)), np.zeros((3, 2)))) == ()
    assert METRIC.groups(METRIC.zero()) == ()
