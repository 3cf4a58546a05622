"""Regression metrics equal scikit-learn's, whole or in merged parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from edl import metrics
from edl.errors import JobError

PAIRS: list[tuple[metrics.Metric, Callable[..., Any]]] = [
    (metrics.MSE(), sk.mean_squared_error),
    (metrics.RMSE(), sk.root_mean_squared_error),
    (metrics.MAE(), sk.mean_absolute_error),
    (metrics.MAPE(), sk.mean_absolute_percentage_error),
    (
        metrics.Bias(),
        lambda labels, scores, sample_weight=None: np.average(scores - labels, 0, sample_weight)[0],
    ),
    (metrics.R2(), sk.r2_score),
    (metrics.ExplainedVariance(), sk.explained_variance_score),
    (metrics.MSLE(), sk.mean_squared_log_error),
    (metrics.RMSLE(), sk.root_mean_squared_log_error),
]
WITH_EACH = pytest.mark.parametrize(("metric", "reference"), PAIRS, ids=lambda p: getattr(p, "name", ""))


def column(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, dtype=np.float32)[:, np.newaxis]


def random_rows(seed: int, rows: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.normal(1e4, 30, (rows, 1)).astype(np.float32)
    return labels, labels + rng.normal(0, 20, (rows, 1)), rng.uniform(0, 3, rows)


@WITH_EACH
@pytest.mark.parametrize("seed", range(5))
def test_a_figure_equals_scikit_learns(metric: metrics.Metric, reference: Any, seed: int) -> None:
    labels, scores, weights = random_rows(seed, 1000)
    plain = metric.result(metric.update(metric.zero(), labels, scores))
    weighted = metric.result(metric.update(metric.zero(), labels, scores, weights))
    assert plain == pytest.approx(reference(labels, scores), rel=1e-9)
    assert weighted == pytest.approx(reference(labels, scores, sample_weight=weights), rel=1e-9)
    assert plain != pytest.approx(weighted, rel=1e-9)


@WITH_EACH
def test_parts_merge_in_any_order_to_the_whole(metric: metrics.Metric, reference: Any) -> None:
    labels, scores, _ = random_rows(7, 1001)
    parts = [
        metric.update(metric.zero(), labels[part], scores[part])
        for part in np.array_split(np.arange(len(labels)), [0, 1, 2, 10, 600])
    ]
    state = metric.zero()
    for part in reversed(parts):
        state = metric.merge(state, part)
    assert metric.result(state) == pytest.approx(reference(labels, scores), rel=1e-9)


@WITH_EACH
def test_no_rows_are_not_a_number(metric: metrics.Metric, reference: Any) -> None:
    assert math.isnan(metric.result(metric.zero()))
    empty = np.zeros((0, 1), np.float32)
    assert math.isnan(metric.result(metric.update(metric.zero(), empty, empty)))


@WITH_EACH
def test_rows_of_no_weight_are_not_a_number(metric: metrics.Metric, reference: Any) -> None:
    state = metric.update(metric.zero(), column(1, 2), column(1, 3), np.zeros(2))
    assert math.isnan(metric.result(metric.merge(state, state)))


@pytest.mark.parametrize(("scores", "expected"), [((0.1, 0.1, 0.1), 1.0), ((0.1, 0.1, 0.2), 0.0)])
def test_r2_of_equal_labels_is_one_or_zero(scores: tuple[float, ...], expected: float) -> None:
    r2 = metrics.R2()
    labels = column(0.1, 0.1, 0.1)
    state = r2.merge(
        r2.update((), labels[:1], column(*scores[:1])), r2.update((), labels[1:], column(*scores[1:]))
    )
    assert r2.result(state) == expected == sk.r2_score(labels, column(*scores))


def test_r2_of_one_row_is_not_a_number() -> None:
    assert math.isnan(metrics.R2().result(metrics.R2().update((), column(1), column(1))))


def test_r2_survives_labels_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    labels = 1e9 + rng.normal(size=(4096, 1))
    scores = labels + rng.normal(size=(4096, 1))
    r2, state = metrics.R2(), metrics.R2().zero()
    for start in range(0, 4096, 64):
        state = r2.update(state, labels[start : start + 64], scores[start : start + 64])
    assert r2.result(state) == pytest.approx(sk.r2_score(labels, scores), abs=1e-7)


@pytest.mark.parametrize(
    ("labels", "scores"), [((8, 1), (8,)), ((8,), (8, 1)), ((8,), (8,)), ((8, 1), (8, 2)), ((8, 1), (1, 1))]
)
def test_shapes_that_would_broadcast_are_refused(labels: tuple[int, ...], scores: tuple[int, ...]) -> None:
    with pytest.raises(JobError, match="have the shape"):
        metrics.MSE().update((), np.zeros(labels), np.zeros(scores))


def test_scores_of_a_diverged_model_are_refused() -> None:
    with pytest.raises(JobError, match="scores are not finite in 2 of 3 rows") as error:
        metrics.MAE().update((), column(1, 2, 3), column(math.nan, math.inf, 3))
    assert "learning rate" in str(error.value.hint)


@pytest.mark.parametrize(
    ("weights", "message"), [([[1.0], [1.0]], "shape"), ([1.0], "shape"), ([1.0, -1.0], "negative")]
)
def test_weights_must_be_one_number_per_row(weights: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        metrics.MAE().update((), column(1, 2), column(1, 2), np.array(weights))


def test_errors_of_other_measures_follow_their_formulas() -> None:
    labels, scores = column(1.0, -2.0, 0.0, 4.0), column(1.5, -1.0, 0.0, 1.0)
    errors = np.array([0.5, 1.0, 0.0, 3.0])
    found = {
        made.name: made.result(made.update(made.update((), labels[:2], scores[:2]), labels[2:], scores[2:]))
        for made in (metrics.SMAPE(), metrics.LogCosh(), metrics.MaxError(), metrics.MedianAbsoluteError())
    }
    assert found == pytest.approx(
        {
            "smape": (1 / 2.5 + 2 / 3 + 0 + 6 / 5) / 4,
            "log_cosh": np.log(np.cosh(errors)).mean(),
            "max_error": 3.0,
            "median_absolute_error": 0.75,
        },
        rel=0.01,
    )
