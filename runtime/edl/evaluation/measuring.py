"""Metrics over tasks: each task yields mergeable states, and the states of a round yield the figures."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from edl.errors import JobError
from edl.evaluation import calibrating
from edl.evaluation.prediction import program_target
from edl.evaluation.scoring import Scorer
from edl.input.blocks import Block
from edl.jobs.events import Figures, finite
from edl.metrics import Metric, RankingMetric, State, merge_kind
from edl.program import Program
from edl.spec import Uncertainty
from edl.tasks.task import Report, Summary, Task

LOSS = "loss"


def program_metrics(program: Program) -> dict[str, Metric]:
    """Return the program's metrics by their report names. Raises JobError if one is not a metric."""
    metrics = program.call("eval_metrics_fn")
    if not isinstance(metrics, Mapping):
        raise JobError(f"eval_metrics_fn in {program.file} must return a dict, name -> metric of edl.metrics")
    for name, metric in metrics.items():
        if not isinstance(metric, Metric):
            raise JobError(
                f"the metric {name} of {program.file} is a {type(metric).__name__}, not one of edl.metrics",
                hint='for example {"rmse": metrics.RMSE()}',
            )
        if name == LOSS:
            raise JobError(f"a metric of {program.file} is called loss, as the loss itself is")
    return dict(metrics)


def training_metrics(program: Program) -> dict[str, Metric]:
    """Return the program's metrics, and metrics of how sure its predictions are.

    Programs with a metric of their own go without the latter: their states stay apart at the master, one for each task,
    where states of the others would take much room.
    """
    metrics = program_metrics(program)
    if not all(map(merge_kind, metrics.values())):
        return metrics
    label = program_target(program).spec
    calibration = program.spec.training.calibration
    return {**calibrating.of_label(label, calibration, metrics), **metrics}


def uncertainty(summary: Summary, metrics: Mapping[str, Metric]) -> Uncertainty | None:
    """Return how sure the predictions are, by the measured rows, or None if that was not measured."""
    states = {
        name: merge_states(summary, name, metric)
        for name, metric in metrics.items()
        if name in calibrating.NAMES
    }
    return calibrating.uncertainty(metrics, states)


def measure(task: Task, blocks: Iterable[Block], scorer: Scorer, metrics: Mapping[str, Metric]) -> Report:
    """Run the model over the rows of a task and return its metric states."""
    loss = weight = 0.0
    states = {name: metric.zero() for name, metric in metrics.items()}
    for block in blocks:
        weight += block.arrays.weight
        if not metrics:
            loss += scorer.loss(block)
            continue
        scores, losses = scorer.evaluate(block)
        loss += losses
        states = {
            name: metrics[name].update(state, block.arrays.labels, scores, block.arrays.weights)
            for name, state in states.items()
        }
    return Report(task, task.rows, loss=loss, weight=weight, states=states)


def compute_figures(summary: Summary, metrics: Mapping[str, Metric]) -> Figures:
    """Return loss and metrics over the measured rows; a figure is None if it is undefined.

    The rows of a ranking have no losses: its loss is 1 less its first metric.
    """
    values = {
        name: finite(metric.result(merge_states(summary, name, metric)))
        for name, metric in metrics.items()
        if name not in calibrating.NAMES
    }
    loss: float | None = summary.mean_loss
    if name := first_ranking_metric(metrics):
        best = values[name]
        loss = None if best is None else 1 - best
    return {LOSS: loss, **values}


def first_ranking_metric(metrics: Mapping[str, Metric]) -> str:
    """Return the name of the first metric of rankings, empty without one."""
    return next((name for name, metric in metrics.items() if isinstance(metric, RankingMetric)), "")


def merge_states(summary: Summary, name: str, metric: Metric) -> State:
    """Return the state of the metric over all measured rows."""
    return functools.reduce(metric.merge, (states[name] for states in summary.states), metric.zero())
