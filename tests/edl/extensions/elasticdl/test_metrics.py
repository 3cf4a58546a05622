"""Functions and metrics of Keras as mergeable metrics."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from edl.errors import JobError
from edl.extensions.elasticdl.metrics import adapt_metrics
from edl.extensions.elasticdl.outputs import OutputLayout
from edl.metrics import RMSE

NUMBERS = np.random.default_rng(0)
LABELS = NUMBERS.integers(2, size=90)
SCORES = NUMBERS.uniform(size=90).astype(np.float32)
WEIGHTS = NUMBERS.uniform(size=90).astype(np.float32)


def adapt(metrics: object, outputs: Any = None) -> Any:
    layout = OutputLayout()
    packed = layout.pack(SCORES.reshape(-1, 1) if outputs is None else outputs).numpy()
    return adapt_metrics(metrics, layout, lambda: tf.int32, "net.py"), packed


def measure(metric: Any, packed: Any, *ends: int, weights: Any = None) -> float:
    """The figure of states of parts of the rows, merged."""
    state, starts = metric.zero(), (0, *ends[:-1])
    for start, end in zip(starts, ends, strict=True):
        part = None if weights is None else weights[start:end]
        state = metric.merge(state, metric.update(metric.zero(), LABELS[start:end], packed[start:end], part))
    return metric.result(state)


def test_a_function_is_the_mean_over_rows_in_any_grouping() -> None:
    def accuracy(labels: Any, predictions: Any) -> Any:
        assert labels.dtype == tf.int32
        return tf.equal(labels, tf.cast(tf.reshape(predictions, [-1]) > 0.5, tf.int32))

    metrics, packed = adapt({"accuracy": accuracy})
    right = (SCORES > 0.5) == LABELS
    assert measure(metrics["accuracy"], packed, 90) == pytest.approx(right.mean())
    assert measure(metrics["accuracy"], packed, 7, 50, 90) == pytest.approx(right.mean())
    weighted = measure(metrics["accuracy"], packed, 20, 90, weights=WEIGHTS)
    assert weighted == pytest.approx(np.average(right, weights=WEIGHTS))


def test_a_metric_of_keras_is_merged_to_its_figure_over_all_rows() -> None:
    metrics, packed = adapt({"auc": keras.metrics.AUC(num_thresholds=40)})
    whole = keras.metrics.AUC(num_thresholds=40)
    whole.update_state(LABELS, SCORES)
    assert measure(metrics["auc"], packed, 11, 60, 90) == pytest.approx(float(whole.result()), abs=1e-7)


def test_metrics_of_outputs_are_named_by_both_and_see_their_output() -> None:
    outputs = {"logits": SCORES[:, np.newaxis] - 0.5, "probs": SCORES}
    mean = {
        "logits": {"mean": lambda labels, predictions: predictions},
        "probs": {"mean": lambda labels, p: p},
    }
    metrics, packed = adapt(mean, outputs)
    assert list(metrics) == ["logits_mean", "probs_mean"]
    assert measure(metrics["logits_mean"], packed, 90) == pytest.approx(SCORES.mean() - 0.5, abs=1e-6)
    assert measure(metrics["probs_mean"], packed, 90) == pytest.approx(SCORES.mean(), abs=1e-6)


def test_metrics_of_our_own_stay_and_others_are_errors() -> None:
    own = RMSE()
    assert adapt({"rmse": own})[0]["rmse"] is own
    with pytest.raises(JobError, match="must return a dict"):
        adapt([own])
    with pytest.raises(JobError, match=r"the metric f1 of net\.py is a str"):
        adapt({"f1": "f1"})
    metrics, packed = adapt({"odd": lambda labels, predictions: predictions[:7]})
    with pytest.raises(JobError, match="the metric odd gives 7 values for 90 rows"):
        measure(metrics["odd"], packed, 90)
    metrics, packed = adapt({"logits": {"odd": own.result}, "probs": {"x": lambda labels, p: p}})
    with pytest.raises(JobError, match="measures the output probs; the model gives output"):
        measure(metrics["probs_x"], packed, 90)
