"""Agreement of predicted and true classes equals scikit-learn's figures, whole or in merged parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from edl import metrics


def of_class_1(figure: Callable[..., Any]) -> Callable[..., Any]:
    """Figure of class 1 if there are two classes, else the plain mean."""

    def found(truth: Any, predicted: Any, **named: Any) -> Any:
        return figure(truth, predicted, average="binary" if truth.max() == 1 else "macro", **named)

    return found


def specificity(truth: Any, predicted: Any, sample_weight: Any = None) -> float:
    classes = [1] if truth.max() == 1 else range(truth.max() + 1)
    of_each = [sk.recall_score(truth != k, predicted != k, sample_weight=sample_weight) for k in classes]
    return float(np.mean(of_each))


def counts(name: str) -> Callable[..., Any]:
    """Count of class 1 if there are two classes, else the sum over the classes."""

    def found(truth: Any, predicted: Any, sample_weight: Any = None) -> float:
        matrix = sk.multilabel_confusion_matrix(truth, predicted, sample_weight=sample_weight)
        of_class = dict(zip(("tn", "fp", "fn", "tp"), matrix.reshape(len(matrix), 4).T, strict=True))[name]
        return float(of_class[1] if len(matrix) == 2 else of_class.sum())

    return found


def fbeta(truth: Any, predicted: Any, **named: Any) -> Any:
    return of_class_1(sk.fbeta_score)(truth, predicted, beta=3, **named)


COUNTED: list[tuple[metrics.Metric, Callable[..., Any]]] = [
    (metrics.BalancedAccuracy(), sk.balanced_accuracy_score),
    (metrics.MCC(), sk.matthews_corrcoef),
    (metrics.CohenKappa(), sk.cohen_kappa_score),
    (metrics.Jaccard(), of_class_1(sk.jaccard_score)),
    (metrics.Specificity(), specificity),
    (metrics.ErrorRate(), sk.zero_one_loss),
    (metrics.FBeta(3), fbeta),
    (metrics.TruePositives(), counts("tp")),
    (metrics.FalsePositives(), counts("fp")),
    (metrics.TrueNegatives(), counts("tn")),
    (metrics.FalseNegatives(), counts("fn")),
]


def rows(classes: int) -> tuple[Any, Any, Any]:
    """Labels, coarse probabilities and weights of 600 rows."""
    draw = np.random.default_rng(classes)
    scores = draw.integers(1, 8, (600, classes)).astype(np.float64)
    labels = np.where(draw.random(600) < 0.5, scores.argmax(axis=1), draw.integers(0, classes, 600))
    return labels, scores / scores.sum(axis=1, keepdims=True), draw.uniform(0, 2, 600)


def in_parts(metric: metrics.Metric, labels: Any, scores: Any, weights: Any = None) -> float:
    """The figure of two parts, merged; the second is empty of some classes."""
    state = metric.zero()
    for part in (slice(0, 20), slice(20, None)):
        weight = None if weights is None else weights[part]
        state = metric.merge(state, metric.update(metric.zero(), labels[part], scores[part], weight))
    return metric.result(state)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_hinge_loss_is_taken_of_the_logits(classes: int) -> None:
    labels, scores, weights = rows(classes)
    logits = np.log(scores)
    decisions = logits[:, 1] - logits[:, 0] if classes == 2 else logits
    found = in_parts(metrics.Hinge(), labels, scores, weights)
    if classes == 2:  # scikit-learn's margin is on either side of 0
        wanted = np.average(np.maximum(0, 1 - np.where(labels == 1, 1, -1) * decisions), weights=weights)
    else:
        wanted = sk.hinge_loss(labels, decisions, sample_weight=weights)
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize(("metric", "reference"), COUNTED, ids=lambda each: getattr(each, "name", ""))
def test_a_figure_equals_scikit_learns(metric: metrics.Metric, reference: Any, classes: int) -> None:
    labels, scores, weights = rows(classes)
    predicted = scores.argmax(axis=1)
    assert in_parts(metric, labels, scores) == pytest.approx(reference(labels, predicted), rel=1e-9)
    weighted = reference(labels, predicted, sample_weight=weights)
    assert in_parts(metric, labels, scores, weights) == pytest.approx(weighted, rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_the_true_class_is_among_the_most_probable_ones(k: int) -> None:
    labels, scores, weights = rows(5)
    scores += np.random.default_rng(0).uniform(0, 1e-6, scores.shape)  # no two are equal
    scores /= scores.sum(axis=1, keepdims=True)
    expected = 1.0 if k > 5 else sk.top_k_accuracy_score(labels, scores, k=k, sample_weight=weights)
    assert in_parts(metrics.TopKAccuracy(k), labels, scores, weights) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_brier_score_equals_scikit_learns(classes: int) -> None:
    labels, scores, weights = rows(classes)
    given = scores[:, 1] if classes == 2 else scores
    expected = sk.brier_score_loss(labels, given, sample_weight=weights)
    assert in_parts(metrics.Brier(), labels, scores, weights) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("exact", [True, False])
def test_the_average_precision_equals_scikit_learns(classes: int, exact: bool) -> None:
    labels, scores, weights = rows(classes)
    truth = labels if classes == 2 else np.eye(classes)[labels]
    given = scores[:, 1] if classes == 2 else scores
    expected = sk.average_precision_score(truth, given, sample_weight=weights)
    found = in_parts(metrics.AveragePrecision(exact=exact), labels, scores, weights)
    assert found == pytest.approx(expected, rel=1e-9 if exact else 1e-4)


def test_one_class_alone_agrees_with_nothing() -> None:
    labels, scores = np.zeros(3, np.int64), np.array([[0.9, 0.1]] * 3)
    assert in_parts(metrics.MCC(), labels, scores) == 0.0
    assert math.isnan(in_parts(metrics.CohenKappa(), labels, scores))
    assert in_parts(metrics.BalancedAccuracy(), labels, scores) == 1.0
