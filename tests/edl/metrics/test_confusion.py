"""Which classes are taken for which: as scikit-learn counts them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from edl.metrics import merge_kind, merge_states
from edl.metrics.classification import ConfusionMatrix


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_weights_are_added_up_by_true_and_predicted_class(classes: int) -> None:
    rng = np.random.default_rng(classes)
    scores = rng.dirichlet(np.ones(classes), 200)
    truth, weights = rng.integers(0, classes, 200), rng.uniform(0, 2, 200)
    labels = truth.astype(np.float32)[:, np.newaxis] if classes == 2 else truth
    metric = ConfusionMatrix()
    expected = sk.confusion_matrix(truth, scores.argmax(axis=1), sample_weight=weights, labels=range(classes))
    whole = metric.update(metric.zero(), labels, scores, weights)
    np.testing.assert_allclose(metric.matrix(whole), expected)
    assert metric.result(whole) == pytest.approx(np.trace(expected) / weights.sum())
    halves = [metric.update(metric.zero(), labels[k::2], scores[k::2], weights[k::2]) for k in range(2)]
    merged = merge_states({"m": merge_kind(metric)}, {"m": halves[0]}, {"m": halves[1]})
    assert merged is not None
    np.testing.assert_allclose(metric.matrix(merged["m"]), expected)
