"""Absolute errors in bounded space, and the margins of intervals that they give."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import median_absolute_error

from edl.metrics import AbsoluteErrors, MedianAbsoluteError, State, dump
from edl.spec import Residuals

METRIC = AbsoluteErrors()


def state(errors: Any, weights: Any = None) -> State:
    scores = np.asarray(errors, dtype=np.float64)[:, np.newaxis]
    return METRIC.update(METRIC.zero(), np.zeros(scores.shape, np.float32), scores, weights)


def quantiles(errors: Any, weights: Any = None) -> Residuals:
    found = METRIC.quantiles(state(errors, weights))
    assert found is not None
    return found


def test_few_errors_are_kept_in_their_order() -> None:
    assert quantiles([3.0, -1.0, 2.0, 1.0]) == Residuals(4, (1.0, 1.0, 2.0, 3.0))
    assert METRIC.result(state([3.0, -1.0, 2.0])) == 2.0


@pytest.mark.parametrize(
    ("rows", "coverage", "rank"), [(9, 0.9, 9), (19, 0.9, 18), (100, 0.9, 91), (40, 0.5, 21)]
)
def test_the_margin_is_the_error_of_the_finite_sample_rank(rows: int, coverage: float, rank: int) -> None:
    assert quantiles(np.arange(1, rows + 1)).margin(coverage) == rank


def test_too_few_rows_have_no_margin() -> None:
    found = quantiles(np.arange(8))
    assert found.margin(0.9) is None
    assert found.margin(found.most_coverage) == 7


def test_of_many_rows_a_thousand_quantiles_are_no_smaller_than_the_exact_ones_and_close() -> None:
    errors = np.abs(np.random.default_rng(0).normal(size=50_000))
    found = quantiles(errors)
    assert (found.rows, len(found.quantiles)) == (50_000, 1000)
    for coverage in (0.1, 0.5, 0.9, 0.99):
        exact = np.sort(errors)[math.ceil(50_001 * coverage) - 1]
        assert exact <= (found.margin(coverage) or 0) < 1.02 * exact


def test_states_are_bounded_and_the_order_of_merging_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    parts = [state(rng.lognormal(sigma=3, size=3000)) for _ in range(12)]
    forward = functools.reduce(METRIC.merge, parts)
    pairs = [METRIC.merge(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    assert dump(functools.reduce(METRIC.merge, reversed(pairs))) == dump(forward)
    assert forward[1].shape[1] <= 4096
    assert forward[1][1].sum() == 36_000


def test_a_row_counts_with_its_weight() -> None:
    weighted = quantiles([1.0, 2.0, 3.0], np.array([2.0, 0.0, 2.0]))
    assert weighted == Residuals(2, (1.0, 3.0))


def test_a_diverged_model_has_no_quantiles() -> None:
    assert METRIC.quantiles(state([1.0, np.nan])) is None
    assert METRIC.quantiles(METRIC.zero()) is None


def test_scores_of_another_shape_have_no_errors() -> None:
    assert METRIC.update((), np.zeros((3, 1)), np.zeros((3, 2))) == ()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_the_share_of_new_rows_inside_is_the_coverage(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inside = [
        (np.abs(rng.standard_t(4, 500)) <= (quantiles(rng.standard_t(4, 99)).margin(0.9) or 0)).mean()
        for _ in range(200)
    ]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 10, 11])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_median_of_few_errors_is_the_mean_of_the_two_in_the_middle(rows: int, weighted: bool) -> None:
    draw = np.random.default_rng(rows)
    labels, scores = draw.normal(size=(2, rows, 1))
    weights = draw.integers(0, 3, rows) + (np.arange(rows) == 0.0) if weighted else None
    metric = MedianAbsoluteError()
    state = metric.zero()
    for part in (slice(0, rows // 3), slice(rows // 3, rows)):
        part_weights = None if weights is None else weights[part]
        state = metric.merge(state, metric.update(metric.zero(), labels[part], scores[part], part_weights))
    expected = median_absolute_error(labels, scores, sample_weight=weights)
    assert metric.result(state) == pytest.approx(expected, rel=1e-6)
