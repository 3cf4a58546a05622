"""Temperatures and thresholds against searches by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.metrics import AUC
from edl.metrics.calibration import TEMPERATURES, TemperedLoss, apply_temperature, thresholds

METRIC = TemperedLoss()


def softmax(logits: Any) -> Any:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def rows(classes: int, temperature: float, count: int = 4000) -> tuple[Any, Any]:
    """Labels drawn from probabilities, and the same probabilities with logits multiplied by a temperature."""
    draw = np.random.default_rng(classes)
    logits = draw.normal(size=(count, classes))
    uniform = draw.random(count)
    labels = (uniform[:, None] > np.cumsum(softmax(logits), axis=1)).sum(axis=1)
    return labels, softmax(logits * temperature)


def log_loss(labels: Any, probabilities: Any, weights: Any = None) -> float:
    return float(np.average(-np.log(probabilities[np.arange(len(labels)), labels]), weights=weights))


@pytest.mark.soak
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_minimises_the_log_loss(classes: int, temperature: float) -> None:
    labels, scores = rows(classes, temperature)
    found = METRIC.calibration(METRIC.update((), labels, scores))
    assert found is not None
    candidates = temperature * np.geomspace(0.8, 1.25, 201)
    by_hand = {each: log_loss(labels, softmax(np.log(scores) / each)) for each in candidates}
    best = min(by_hand, key=by_hand.__getitem__)
    assert found.temperature == pytest.approx(best, rel=0.005)
    assert found.temperature == pytest.approx(temperature, rel=0.15)
    assert found.log_loss == pytest.approx((log_loss(labels, scores), by_hand[best]), abs=1e-4)
    np.testing.assert_allclose(
        apply_temperature(scores, found.temperature), softmax(np.log(scores) / found.temperature), atol=1e-9
    )


def expected_error(labels: Any, probabilities: Any) -> float:
    """Expected calibration error of Guo et al. (2017), in 15 bins."""
    largest, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    total = 0.0
    for number in range(15):
        inside = (largest >= number / 15) & (largest < (number + 1) / 15)
        if inside.any():
            total += abs(right[inside].mean() - largest[inside].mean()) * inside.mean()
    return total


def test_the_calibration_error_falls_with_the_temperature() -> None:
    labels, scores = rows(3, 3.0)
    found = METRIC.calibration(METRIC.update((), labels, scores))
    assert found is not None
    before, after = found.error
    nearest = TEMPERATURES[np.abs(np.log(TEMPERATURES / found.temperature)).argmin()]
    assert before == pytest.approx(expected_error(labels, scores))
    assert after == pytest.approx(expected_error(labels, softmax(np.log(scores) / nearest)))
    assert after < before / 3


def test_states_merge_and_weights_count() -> None:
    labels, scores = rows(2, 2.0, 200)
    weights = np.arange(200) % 3.0
    whole = METRIC.update((), labels, scores, weights)
    parts = METRIC.update((), labels[:70], scores[:70], weights[:70])
    parts = METRIC.merge(METRIC.update((), labels[70:], scores[70:], weights[70:]), parts)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other)
    assert METRIC.calibration(whole).log_loss[0] == pytest.approx(log_loss(labels, scores, weights))  # type: ignore[union-attr]


def test_sure_and_wrong_probabilities_have_a_finite_loss_and_temperature() -> None:
    labels, scores = np.array([0, 1, 1]), np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = METRIC.calibration(METRIC.update((), labels, scores))
    assert found is not None
    assert np.isfinite([found.temperature, *found.log_loss, *found.error]).all()
    assert found.temperature > 4


def test_no_rows_have_no_calibration() -> None:
    assert METRIC.calibration(()) is None


# Thresholds ------------------------------------------------------------------------------------------------


def by_hand(labels: Any, predicted: Any) -> dict[str, float]:
    hits, alarms = (labels & predicted).sum(), (~labels & predicted).sum()
    misses, rejected = (labels & ~predicted).sum(), (~labels & ~predicted).sum()
    product = np.sqrt(1.0 * (hits + alarms) * (misses + rejected) * labels.sum() * (~labels).sum())
    return {
        "accuracy": (hits + rejected) / len(labels),
        "balanced_accuracy": (hits / labels.sum() + rejected / (~labels).sum()) / 2,
        "f1": 2 * hits / (2 * hits + alarms + misses),
        "mcc": (hits * rejected - alarms * misses) / product if product else 0.0,
    }


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_threshold_gives_its_metric_the_highest_value_of_all(seed: int, temperature: float) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.random(60).round(2) * 0.98 + 0.01
    labels = draw.random(60) < scores**2
    found = thresholds(AUC().update((), labels[:, None].astype(np.float32), scores[:, None]), temperature)
    calibrated = apply_temperature(np.column_stack([1 - scores, scores]), temperature)[:, 1]
    tried = [by_hand(labels, calibrated >= each) for each in [0.0, *calibrated, 1.0]]
    for metric, chosen in found.items():
        assert chosen.value == pytest.approx(max(each[metric] for each in tried))
        assert by_hand(labels, calibrated >= chosen.probability)[metric] == pytest.approx(chosen.value)


def test_of_equally_good_thresholds_the_one_nearest_to_one_half_is_chosen() -> None:
    labels = np.array([[0.0], [1.0], [1.0]], np.float32)
    found = thresholds(AUC().update((), labels, np.array([[0.1], [0.9], [0.95]])))
    assert found["f1"].probability == pytest.approx(0.5, abs=0.01)


def test_rows_of_one_class_choose_no_threshold() -> None:
    assert thresholds(AUC().update((), np.ones((3, 1), np.float32), np.full((3, 1), 0.4))) == {}
