"""Results of EVALUATE, and of EXPLAIN for a whole model: metrics and a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.data import metric_tables
from edl.data.names import unique_names
from edl.evaluation.measuring import compute_figures, merge_states, program_metrics
from edl.jobs.events import Figures, finite
from edl.metrics import AUC, Metric, OfLabel, at_threshold
from edl.metrics.classification import ConfusionMatrix
from edl.metrics.importance import Importance
from edl.program import Program
from edl.spec import JobSpec, Label
from edl.tasks.task import Summary

MOST_THRESHOLDS = 100  # rows of a curve
MOST_CLASSES = 20  # with more classes, pairs that don't occur are left out

_OWN = "edl.finding"  # name that no metric of a program has

Floats = npt.NDArray[np.float64]


class MeasurementReport(Protocol):
    """Report of a job that measures. `metrics` are the ones to measure for it."""

    @property
    def metrics(self) -> Mapping[str, Metric]: ...

    def figures(self, summary: Summary) -> Figures:
        """Return the figures of the outcome."""

    def table(self, summary: Summary) -> pa.RecordBatch:
        """Return the result table."""


def finding(program: Program) -> MeasurementReport:
    """Return the report that the program's JobSpec requests."""
    spec = program.spec
    if spec.kind == "explain":
        return ImportanceReport(spec)
    measured = Measured(spec.label, spec.threshold, spec.weights is not None)
    return report_of(spec.report, program_metrics(program), measured)


@dataclass(frozen=True, slots=True)
class Measured:
    """Subject of a report. threshold: least probability of the second of two classes. weighted: rows have weights."""

    label: Label
    threshold: float | None = None
    weighted: bool = False


def report_of(kind: str, metrics: Mapping[str, Metric], measured: Measured) -> MetricsReport:
    """Return the report of EVALUATE of that kind. metrics: by their names in the report."""
    reports = {"confusion_matrix": ConfusionReport, "roc_curve": CurveReport}
    return reports.get(kind, MetricsReport)(metrics, measured)


class MetricsReport:
    """Loss and metrics: one row with a column for each."""

    def __init__(self, metrics: Mapping[str, Metric], of: Measured) -> None:
        self._of = of
        self._figures = {
            name: at_threshold(_exact_metric(metric), of.threshold) for name, metric in metrics.items()
        }

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return self._figures

    def figures(self, summary: Summary) -> Figures:
        return compute_figures(summary, self._figures)

    def table(self, summary: Summary) -> pa.RecordBatch:
        return metric_tables.one_row(self.figures(summary))

    def _rows(self, weights: Floats) -> pa.Array:
        """Return row counts; they are integers if rows are unweighted."""
        rows = pa.array(weights)
        return rows if self._of.weighted or (weights % 1).any() else rows.cast(pa.int64())


class ConfusionReport(MetricsReport):
    """Confusion matrix: one row for each true and predicted class, with the row count and its share of the true class.

    With many classes, only pairs that occur are listed. Weighted rows count with their weight.
    """

    _matrix = ConfusionMatrix()

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return {**self._figures, _OWN: at_threshold(self._matrix, self._of.threshold)}

    def table(self, summary: Summary) -> pa.RecordBatch:
        weights = self._matrix.matrix(merge_states(summary, _OWN, self._matrix))
        pairs = weights > 0 if len(weights) > MOST_CLASSES else np.full(weights.shape, True)
        true, predicted = np.nonzero(pairs)
        with np.errstate(invalid="ignore"):  # a class that does not occur has no share
            shares = (weights / weights.sum(axis=1, keepdims=True))[pairs]
        label = self._of.label
        if not label.has_classes:
            raise RuntimeError("the compiler lets only classes be confused")
        classes = pa.array(label.classes)
        names = unique_names([label.column, "predicted", "row_count", "share"], taken=())
        columns = [
            classes.take(pa.array(true)),
            classes.take(pa.array(predicted)),
            self._rows(weights[pairs]),
            _numbers(shares),
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(names))


class CurveReport(MetricsReport):
    """ROC curve: one row per probability threshold of the second of two classes, at most `MOST_THRESHOLDS`, highest
    first.
    """

    _curve = AUC(exact=True)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return {**self._figures, self._name: self._curve}

    @property
    def _name(self) -> str:
        """Name of the metric that yields the curve: the program's own exact AUC if it has one."""
        return next((name for name, metric in self._figures.items() if metric == self._curve), _OWN)

    def table(self, summary: Summary) -> pa.RecordBatch:
        thresholds, inside, outside = self._curve.curve(merge_states(summary, self._name, self._curve))[
            :, ::-1
        ]
        hits, false_alarms = np.cumsum(inside), np.cumsum(outside)
        some = np.unique(np.linspace(0, len(hits) - 1, MOST_THRESHOLDS).round().astype(int))
        misses, rejected = hits[-1] - hits, false_alarms[-1] - false_alarms
        with np.errstate(invalid="ignore"):
            rates = {
                "threshold": thresholds,
                "recall": hits / hits[-1],
                "false_positive_rate": false_alarms / false_alarms[-1],
                "precision": hits / (hits + false_alarms),
                "f1": 2 * hits / (2 * hits + false_alarms + misses),
            }
        counts = {
            "true_positives": hits,
            "false_positives": false_alarms,
            "true_negatives": rejected,
            "false_negatives": misses,
        }
        columns = {name: _numbers(values[some]) for name, values in rates.items()}
        columns |= {name: self._rows(values[some]) for name, values in counts.items()}
        return pa.RecordBatch.from_pydict(columns)


class ImportanceReport:
    """Importance of each column for the model, one row per column."""

    _importance = Importance()

    def __init__(self, spec: JobSpec) -> None:
        self._columns = spec.columns

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return {_OWN: self._importance}

    def figures(self, summary: Summary) -> Figures:
        values = self._importance.of_columns(merge_states(summary, _OWN, self._importance))
        return dict(zip(self._columns, map(finite, values.tolist()), strict=True))

    def table(self, summary: Summary) -> pa.RecordBatch:
        return metric_tables.importances(self.figures(summary))


def _exact_metric(metric: Metric) -> Metric:
    """Return the exact variant of the metric. Training rounds the scores of curves to keep states small."""
    if isinstance(metric, OfLabel):
        return replace(metric, metric=_exact_metric(metric.metric))
    return replace(metric, exact=True) if isinstance(metric, AUC) else metric


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values, mask=~np.isfinite(values))
