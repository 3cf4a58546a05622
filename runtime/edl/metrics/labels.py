"""Metric of one of several labels that a model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from edl.metrics.base import Array, Metric
from edl.metrics.states import State
from edl.spec import SeveralLabels


class _Target(Protocol):
    @property
    def spec(self) -> SeveralLabels: ...


@dataclass(frozen=True)
class OfLabel(Metric):
    """Metric of the label at the place `number`, counted from 0. It has the state of `metric`."""

    metric: Metric
    label: SeveralLabels
    number: int
    name: ClassVar[str] = "of_label"
    higher_is_better: ClassVar[bool] = True

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        one_label = self.label.labels[self.number]
        labels = labels[:, slice(*self.label.places[self.number])]
        if one_label.has_classes and not one_label.is_binary:
            labels = labels.argmax(axis=1)
        scores = scores[:, slice(*self.label.score_places[self.number])]
        return self.metric.update(self.metric.zero(), labels, scores, weights)

    def _merge(self, a: State, b: State) -> State:
        return self.metric.merge(a, b)

    def _result(self, state: State) -> float:
        return self.metric.result(state)


def of_label(target: _Target, number: int, metric: Metric) -> OfLabel:
    """Return the metric of one label of `fc.labels`, by its place, counted from 0."""
    return OfLabel(metric, target.spec, number)
