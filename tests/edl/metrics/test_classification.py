"""Classification metrics equal scikit-learn's, for two classes and for more."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from edl import metrics
from edl.errors import JobError

COUNTED: list[tuple[metrics.Metric, Callable[..., Any]]] = [
    (metrics.Precision(), sk.precision_score),
    (metrics.Recall(), sk.recall_score),
    (metrics.F1(), sk.f1_score),
]
ALL: list[metrics.Metric] = [
    metrics.Accuracy(), metrics.LogLoss(), *(metric for metric, _ in COUNTED), metrics.AUC(), metrics.AUC(exact=True),
]  # fmt: skip


def random_rows(seed: int, rows: int, classes: int) -> tuple[Any, Any, Any]:
    """Coarse probabilities, so that scores are often equal."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 8, (rows, classes)).astype(np.float64)
    scores /= scores.sum(axis=1, keepdims=True)
    labels = rng.integers(0, classes, rows)
    labels[:classes] = np.arange(classes)
    if classes == 2:
        return labels.astype(np.float32)[:, np.newaxis], scores, rng.uniform(0, 2, rows)
    return labels, scores, rng.uniform(0, 2, rows)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_accuracy_and_log_loss_equal_scikit_learns(seed: int, classes: int) -> None:
    labels, scores, weights = random_rows(seed, 500, classes)
    for weight in (None, weights):
        state = metrics.Accuracy().update((), labels, scores, weight)
        expected = sk.accuracy_score(labels.ravel(), scores.argmax(axis=1), sample_weight=weight)
        assert metrics.Accuracy().result(state) == pytest.approx(expected, rel=1e-9)
        state = metrics.LogLoss().update((), labels, scores, weight)
        expected = sk.log_loss(labels.ravel(), scores, sample_weight=weight)
        assert metrics.LogLoss().result(state) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("metric", "reference"), COUNTED, ids=lambda p: getattr(p, "name", ""))
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_precision_recall_and_f1_equal_scikit_learns(
    metric: metrics.Metric, reference: Any, classes: int
) -> None:
    labels, scores, weights = random_rows(1, 500, classes)
    average = "binary" if classes == 2 else "macro"
    for weight in (None, weights):
        state = metric.merge(
            metric.update((), labels[:100], scores[:100], weight if weight is None else weight[:100]),
            metric.update((), labels[100:], scores[100:], weight if weight is None else weight[100:]),
        )
        expected = reference(labels.ravel(), scores.argmax(axis=1), average=average, sample_weight=weight)
        assert metric.result(state) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("metric", "reference"), COUNTED, ids=lambda p: getattr(p, "name", ""))
def test_a_class_that_is_never_predicted_counts_zero_and_an_absent_one_not_at_all(
    metric: metrics.Metric, reference: Any
) -> None:
    labels = np.array([0, 0, 1, 1])
    scores = np.eye(4)[[0, 0, 0, 2]]  # class 1 is missed, class 3 does not occur
    expected = reference(labels, [0, 0, 0, 2], average="macro", zero_division=0)
    assert metric.result(metric.update((), labels, scores)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("metric", "reference"), COUNTED, ids=lambda p: getattr(p, "name", ""))
def test_without_a_positive_row_the_figure_is_zero(metric: metrics.Metric, reference: Any) -> None:
    labels = np.zeros((3, 1), np.float32)
    scores = np.tile([0.9, 0.1], (3, 1))
    expected = reference(labels.ravel(), [0, 0, 0], zero_division=0)
    assert metric.result(metric.update((), labels, scores)) == expected == 0


def test_even_probabilities_predict_the_first_class() -> None:
    labels = np.zeros((1, 1), np.float32)
    assert metrics.Accuracy().result(metrics.Accuracy().update((), labels, np.array([[0.5, 0.5]]))) == 1


def test_certain_and_wrong_is_a_large_finite_loss() -> None:
    labels, scores = np.array([[1.0], [0.0]], np.float32), np.array([[1.0, 0.0], [1.0, 0.0]])
    loss = metrics.LogLoss().result(metrics.LogLoss().update((), labels, scores))
    assert loss == pytest.approx(sk.log_loss(labels.ravel(), scores), rel=1e-9)
    assert 10 < loss < 40


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_no_rows_are_not_a_number(metric: metrics.Metric) -> None:
    assert math.isnan(metric.result(metric.zero()))
    assert math.isnan(metric.result(metric.update((), np.zeros((0, 1)), np.zeros((0, 2)))))
    weightless = metric.update((), np.array([0, 1, 2]), np.eye(3), np.zeros(3))
    assert math.isnan(metric.result(weightless))


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_one_column_of_probabilities_means_class_one(metric: metrics.Metric) -> None:
    labels, scores, _ = random_rows(3, 200, 2)
    two = metric.result(metric.update((), labels, scores))
    assert metric.result(metric.update((), labels, scores[:, 1:])) == pytest.approx(two, rel=1e-9)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        (np.zeros((8, 1)), np.full(8, 0.5), "have the shape"),
        (np.zeros((8, 1)), np.full((8, 3), 0.3), "have the shape"),
        (np.zeros((1, 8)), np.full((8, 2), 0.5), "have the shape"),
        (np.zeros(7), np.full((8, 2), 0.5), "have the shape"),
        (np.zeros(8), np.zeros((8, 0)), "have the shape"),
        (np.array([0, 3]), np.full((2, 3), 0.3), "label 3 is not a position among 3 classes"),
        (np.array([0, -1]), np.full((2, 3), 0.3), "label -1 is not a position"),
        (np.array([[0.5], [1]]), np.full((2, 2), 0.5), "label 0.5 is not a position"),
        (np.array([[math.nan], [1]]), np.full((2, 2), 0.5), "labels are not finite in 1 of 2"),
        (np.zeros((2, 1)), np.array([[math.nan, 0.5], [0.5, 0.5]]), "scores are not finite in 1 of 2"),
        (np.zeros((2, 1)), np.array([[-3.0], [2.0]]), "must be probabilities"),
    ],
)
def test_what_is_no_label_or_probability_is_refused(
    metric: metrics.Metric, labels: Any, scores: Any, message: str
) -> None:
    with pytest.raises(JobError, match=message):
        metric.update((), labels, scores)


def test_states_over_different_classes_do_not_merge() -> None:
    for metric in (metrics.F1(), metrics.AUC()):
        three = metric.update((), np.array([0, 1, 2]), np.eye(3))
        four = metric.update((), np.array([0, 1, 2]), np.eye(4)[:3])
        with pytest.raises(JobError, match="classes cannot be merged"):
            metric.merge(three, four)


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_a_threshold_decides_on_the_second_class(threshold: float) -> None:
    rng = np.random.default_rng(4)
    truth, second, weights = rng.integers(0, 2, 300), rng.random(300).round(1), rng.uniform(0, 2, 300)
    predicted = second >= threshold
    figures = {
        metrics.Accuracy(): sk.accuracy_score(truth, predicted, sample_weight=weights),
        metrics.Precision(): sk.precision_score(truth, predicted, sample_weight=weights, zero_division=0),
        metrics.Recall(): sk.recall_score(truth, predicted, sample_weight=weights),
        metrics.F1(): sk.f1_score(truth, predicted, sample_weight=weights),
    }
    for plain, expected in figures.items():
        metric = metrics.at_threshold(plain, threshold)
        states = [
            metric.update(metric.zero(), truth[k::2], second[k::2, np.newaxis], weights[k::2])
            for k in range(2)
        ]
        merged = metrics.merge_states({"m": metrics.merge_kind(metric)}, {"m": states[0]}, {"m": states[1]})
        assert merged is not None
        assert metric.result(merged["m"]) == pytest.approx(expected)


def test_a_threshold_leaves_metrics_of_probabilities_as_they_are() -> None:
    assert metrics.at_threshold(metrics.AUC(), 0.3) == metrics.AUC()
    assert isinstance(metrics.at_threshold(metrics.LogLoss(), 0.3), metrics.LogLoss)
