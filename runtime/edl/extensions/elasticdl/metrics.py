"""Metrics of a module's `eval_metrics_fn` as mergeable metrics of `edl.metrics`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from edl.arrays import Array
from edl.errors import JobError
from edl.extensions.elasticdl.outputs import OutputLayout
from edl.metrics import Metric, State

Take = Callable[[Array], Any]  # what a metric compares, of the packed outputs


class _ModuleMetric(Metric):
    higher_is_better = True

    def __init__(self, name: str, metric: Any, outputs: Take, labels: Take) -> None:
        self._name = name
        self._metric = metric
        self._outputs = outputs
        self._labels = labels

    @property
    def name(self) -> str:
        return self._name


class MeanOfRows(_ModuleMetric):
    """Mean of what a function of (labels, predictions) gives for each row."""

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        values = np.asarray(self._metric(self._labels(labels), self._outputs(scores)), dtype=np.float64)
        rows = len(labels)
        if values.size == 1:
            values = np.full(rows, values.item())
        if values.size != rows:
            raise JobError(
                f"the metric {self._name} gives {values.size} values for {rows} rows",
                hint="it gives one value for each row, or their mean",
            )
        shares = np.ones(rows) if weights is None else weights.astype(np.float64)
        return np.array([values.reshape(rows) @ shares]), np.array([shares.sum()])

    def _result(self, state: State) -> float:
        total, count = state
        return float(total[0] / count[0]) if count[0] else float("nan")


class KerasMetric(_ModuleMetric):
    """Metric of Keras: its variables are sums over rows."""

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        self._metric.reset_state()
        self._metric.update_state(self._labels(labels), self._outputs(scores), sample_weight=weights)
        return tuple(np.asarray(variable, dtype=np.float64) for variable in self._metric.variables)

    def _result(self, state: State) -> float:
        for variable, value in zip(self._metric.variables, state, strict=True):
            variable.assign(value)
        return float(self._metric.result())


def adapt_metrics(
    metrics: object, layout: OutputLayout, label_type: Callable[[], Any], file: str
) -> dict[str, Metric]:
    """Return the metrics by name: `accuracy`, or `logits_accuracy` of a metric of the output `logits`.

    `label_type` returns the type of the labels that the module's `feed` makes. Raises JobError for others.
    """

    def restore(labels: Array) -> Any:
        return tf.cast(labels, label_type() or labels.dtype)

    adapted: dict[str, Metric] = {}
    for name, metric in _mapping(metrics, file).items():
        if not isinstance(metric, Mapping):
            adapted[name] = _adapt(
                name, metric, lambda scores: _tensors(layout.unpack(scores)), restore, file
            )
            continue
        for inner, of_output in metric.items():
            adapted[f"{name}_{inner}"] = _adapt(
                f"{name}_{inner}", of_output, _taker(layout, name, file), restore, file
            )
    return adapted


def _adapt(name: str, metric: Any, outputs: Take, labels: Take, file: str) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, keras.metrics.Metric):
        return KerasMetric(name, metric, outputs, labels)
    if callable(metric):
        return MeanOfRows(name, metric, outputs, labels)
    raise JobError(
        f"the metric {name} of {file} is a {type(metric).__name__}",
        hint="a metric is a function of (labels, predictions), or a metric of Keras",
    )


def _mapping(metrics: object, file: str) -> Mapping[str, Any]:
    if not isinstance(metrics, Mapping):
        raise JobError(
            f"eval_metrics_fn in {file} must return a dict, name -> function of (labels, predictions)"
        )
    return metrics


def _taker(layout: OutputLayout, name: str, file: str) -> Take:
    def take(scores: Array) -> Any:
        part = next((part for part in layout.parts if part.name == name), None)
        if part is None:
            names = ", ".join(part.name for part in layout.parts)
            raise JobError(f"eval_metrics_fn in {file} measures the output {name}; the model gives {names}")
        return tf.convert_to_tensor(layout.take(scores, part))

    return take


def _tensors(outputs: Any) -> Any:
    return tf.nest.map_structure(tf.convert_to_tensor, outputs)
