"""Curves of scores against counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.metrics import AUC
from edl.metrics.score_curves import POINTS, ScoreHistogram, score_curve
from edl.spec import ScoreCurve

METRIC = ScoreHistogram()


def rows(classes: int, count: int = 5000) -> tuple[Any, Any, Any]:
    """Labels drawn from probabilities, and weights."""
    draw = np.random.default_rng(classes)
    odds = np.exp(2 * draw.normal(size=(count, classes)))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    labels = (draw.random(count)[:, None] > np.cumsum(probabilities, axis=1)).sum(axis=1)
    return labels, probabilities, draw.integers(1, 4, count).astype(np.float64)


def area(curve: ScoreCurve) -> float:
    """Area under the ROC curve by trapezoids."""
    recall = np.concatenate([[0.0], np.array(curve.hits) / curve.inside])
    alarms = np.concatenate([[0.0], np.array(curve.alarms) / curve.outside])
    return float(np.trapezoid(recall, alarms))


def test_a_curve_of_two_classes_counts_rows_from_each_threshold_on() -> None:
    labels, scores, weights = rows(2)
    state = AUC().update((), labels, scores, weights)
    curve = score_curve(AUC().curve(state), 1)
    assert 150 < len(curve.thresholds) <= POINTS + 1
    assert (curve.inside, curve.outside) == (weights[labels == 1].sum(), weights[labels == 0].sum())
    for threshold, hits, alarms in list(zip(curve.thresholds, curve.hits, curve.alarms, strict=True))[::20]:
        predicted = scores[:, 1] >= threshold * (1 - 1e-5)
        assert hits == pytest.approx(weights[predicted & (labels == 1)].sum(), abs=3)
        assert alarms == pytest.approx(weights[predicted & (labels == 0)].sum(), abs=3)
    assert area(curve) == pytest.approx(AUC(exact=True).result(state), abs=2e-3)


def test_a_curve_is_exact_at_the_thresholds_that_matter() -> None:
    labels, scores, weights = rows(2)
    curve = score_curve(
        AUC().curve(AUC().update((), labels, scores, weights)), 1, exact=(0.5, 0.123, 0.0, 1.0)
    )
    for threshold in (0.5, 0.123):
        place = [each >= threshold for each in curve.thresholds].count(True) - 1
        predicted = scores[:, 1] >= threshold
        assert curve.hits[place] == weights[predicted & (labels == 1)].sum()
        assert curve.alarms[place] == weights[predicted & (labels == 0)].sum()


def test_a_temperature_changes_the_thresholds_of_a_curve_alone() -> None:
    labels, scores, weights = rows(2)
    found = AUC().curve(AUC().update((), labels, scores, weights))
    plain, cooled = score_curve(found, 1), score_curve(found, 1, temperature=2.0)
    assert (plain.hits, plain.alarms) == (cooled.hits, cooled.alarms)
    assert abs(cooled.thresholds[0] - 0.5) < abs(plain.thresholds[0] - 0.5)


def test_curves_of_several_classes_have_nearly_the_areas_of_exact_ones() -> None:
    labels, scores, weights = rows(4)
    state = METRIC.update((), labels, scores, weights)
    curves = METRIC.curves(state)
    assert [curve.position for curve in curves] == [0, 1, 2, 3]
    for curve in curves:
        of_two = np.stack([1 - scores[:, curve.position], scores[:, curve.position]], axis=1)
        exact = AUC(exact=True)
        expected = exact.result(exact.update((), labels == curve.position, of_two, weights))
        assert area(curve) == pytest.approx(expected, abs=2e-3)
    assert METRIC.result(state) == pytest.approx(np.mean([area(curve) for curve in curves]), abs=2e-3)


def test_histograms_of_parts_add_up_to_the_histogram_of_all_rows() -> None:
    labels, scores, weights = rows(3)
    parts = [
        METRIC.update((), labels[part], scores[part], weights[part])
        for part in (slice(2000), slice(2000, None))
    ]
    (merged,), (whole,) = METRIC.merge(*parts), METRIC.update((), labels, scores, weights)
    np.testing.assert_array_equal(merged, whole)


@pytest.mark.parametrize("scores", [[[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]]])
def test_certain_scores_and_absent_classes_have_curves(scores: list[list[float]]) -> None:
    curves = METRIC.curves(METRIC.update((), np.array([2]), np.array(scores)))
    assert [curve.inside for curve in curves] == [0.0, 0.0, 1.0]
    assert all(0 <= threshold <= 1 for curve in curves for threshold in curve.thresholds)
    assert all(curve.hits[-1] == curve.inside for curve in curves)
