"""AUC: exact as scikit-learn's, and close to it in bounded space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from edl.metrics import AUC, dump


def binary_rows(seed: int, rows: int, scale: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.2).astype(np.float32)
    logits = scale * rng.normal(labels * 1.3) - 2
    positive = 1 / (1 + np.exp(-logits))
    return labels[:, np.newaxis], np.stack([1 - positive, positive], axis=1)


def in_blocks(metric: AUC, labels: Any, scores: Any, block: int) -> float:
    state = metric.zero()
    for start in range(0, len(labels), block):
        state = metric.update(state, labels[start : start + block], scores[start : start + block])
    return metric.result(state)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("digits", [1, 2, 15])
def test_exact_equals_scikit_learn_with_and_without_ties(seed: int, digits: int) -> None:
    labels, scores = binary_rows(seed, 3000)
    scores = scores.round(digits)
    expected = roc_auc_score(labels.ravel(), scores[:, 1])
    assert in_blocks(AUC(exact=True), labels, scores, 700) == pytest.approx(expected, rel=1e-9)


def test_exact_equals_scikit_learn_with_weights() -> None:
    labels, scores = binary_rows(1, 3000)
    weights = np.random.default_rng(0).uniform(0, 2, 3000)
    metric = AUC(exact=True)
    expected = roc_auc_score(labels.ravel(), scores[:, 1], sample_weight=weights)
    assert metric.result(metric.update((), labels, scores, weights)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("digits", [1, 15])
def test_more_classes_are_the_mean_of_each_against_the_rest(digits: int) -> None:
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(5), 2000)
    labels = np.array([rng.choice(5, p=row) for row in scores[:400]] * 5)
    rounded = scores.round(digits)
    expected = np.mean([roc_auc_score(labels == c, rounded[:, c]) for c in range(5)])
    assert in_blocks(AUC(exact=True), labels, rounded, 300) == pytest.approx(expected, rel=1e-9)
    whole = roc_auc_score(labels, scores, multi_class="ovr")
    assert in_blocks(AUC(exact=True), labels, scores, 300) == pytest.approx(whole, rel=1e-9)
    assert in_blocks(AUC(), labels, scores, 300) == pytest.approx(whole, abs=1e-5)


@pytest.mark.variants(2)
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 5.0])
def test_the_estimate_is_close_and_its_state_small(scale: float) -> None:
    labels, scores = binary_rows(3, 200_000, scale)
    metric = AUC()
    state = metric.update((), labels, scores)
    expected = roc_auc_score(labels.ravel(), scores[:, 1])
    assert metric.result(state) == pytest.approx(expected, abs=1e-6)
    assert len(dump(state)) < 400_000


def test_the_estimate_tells_certain_scores_apart() -> None:
    """A histogram over the probability itself would put all of these into its last bin."""
    labels = np.array([[0.0], [0.0], [1.0], [1.0]])
    doubt = np.array([1e-4, 1e-7, 1e-10, 0.0])
    scores = np.stack([doubt, 1 - doubt], axis=1)
    assert AUC().result(AUC().update((), labels, scores)) == 1.0


@pytest.mark.parametrize("metric", [AUC(), AUC(exact=True)], ids=["estimate", "exact"])
def test_one_class_alone_has_no_curve(metric: AUC) -> None:
    ones = np.ones((5, 1))
    assert math.isnan(metric.result(metric.update((), ones, np.full((5, 2), 0.5))))
    labels, scores = np.array([0, 1, 0, 1]), np.eye(3)[[0, 1, 1, 0]]
    of_those_that_occur = [roc_auc_score(labels == c, scores[:, c]) for c in (0, 1)]
    assert metric.result(metric.update((), labels, scores)) == pytest.approx(np.mean(of_those_that_occur))


@pytest.mark.parametrize("metric", [AUC(), AUC(exact=True)], ids=["estimate", "exact"])
def test_equal_scores_are_even_odds(metric: AUC) -> None:
    labels, scores = binary_rows(4, 100)
    assert metric.result(metric.update((), labels, np.full_like(scores, 0.5))) == 0.5


@pytest.mark.soak
def test_the_estimate_does_not_depend_on_the_order_of_merging() -> None:
    labels, scores = binary_rows(5, 100_000)
    metric = AUC()
    parts = [metric.update((), labels[i : i + 7000], scores[i : i + 7000]) for i in range(0, 100_000, 7000)]
    forward, backward = metric.zero(), metric.zero()
    for part in parts:
        forward = metric.merge(forward, part)
    for part in reversed(parts):
        backward = metric.merge(part, backward)
    whole = metric.update((), labels, scores)
    for state in (forward, backward):
        assert all(np.array_equal(a, b) for a, b in zip(state, whole, strict=True))


def test_an_exact_stream_keeps_few_runs() -> None:
    """Each of a hundred blocks merged into everything before it would be quadratic; none merged, a slow result."""
    labels, scores = binary_rows(6, 10_000)
    metric, most = AUC(exact=True), 0
    state = metric.zero()
    for start in range(0, 10_000, 100):
        state = metric.update(state, labels[start : start + 100], scores[start : start + 100])
        most = max(most, len(state) - 1)
    assert 2 <= most <= 8
