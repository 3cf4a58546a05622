"""Adapter of trees that rank: the labels of a row are its relevance and the number of its group.

Libraries take the rows group by group, so the rows are sorted by group, and within a group they stay in their order.
The loss of a round is 1 less the program's first metric of rankings over the training rows, by the library's own
figure, without groups in which nothing is relevant.

Several workers read ranges of the table, in which the rows of a group may be anywhere. So they exchange their rows
once, one worker after the other, and each keeps the rows of its groups: an equal part of the groups, in the order of
their numbers. Beside its own rows, a worker holds one other's rows meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from edl.arrays import Array, Features
from edl.collectives.base import Group
from edl.errors import JobError
from edl.frameworks.adapter import Evaluated, Floats, Minibatches
from edl.frameworks.trees.adapter import TreeAdapter, matrix_of
from edl.frameworks.trees.engine import Engine, Groups
from edl.frameworks.trees.forecasts import forecast_adapter
from edl.frameworks.trees.models import Trees
from edl.metrics import RankingMetric
from edl.program import Program


def adapter(program: Program, model: Trees, engine: Engine, features: Features) -> TreeAdapter:
    """Return the adapter that suits the program's label. Raises JobError if the objective does not."""
    ranks = bool(program.spec.label.group)
    if ranks is not engine.objective.ranks:
        name, label = model.params.get("objective"), "one" if ranks else "none"
        raise JobError(
            f"{program.file}: the objective {name} {'ranks no' if ranks else 'ranks'} rows, and the label is {label} "
            "of fc.ranking",
            hint="fc.ranking is the label of objectives that rank, such as lambdarank and rank:ndcg",
        )
    if program.spec.label.is_forecast:
        return forecast_adapter(program, model, engine, features)
    return (RankingAdapter if ranks else TreeAdapter)(program, model, engine, features)


class RankingAdapter(TreeAdapter):
    """Adapter of one model of trees for a `RankingLabel`."""

    def __init__(self, program: Program, model: Trees, engine: Engine, features: Features) -> None:
        super().__init__(program, model, engine, features)
        self._relevant: Callable[[float], tuple[float, float]] = lambda mean: (mean, 1.0)

    def train(self, rows: Minibatches, workers: Group | None = None) -> Floats:
        matrix = matrix_of(rows.features)
        with self._undone_without(workers, begins=matrix is not self._held):
            self._grow_from(matrix, rows, workers, lambda: self._sort_rows(matrix, rows, workers))
            mean = self._mean(workers)
        return np.array([1 - mean], dtype=np.float32)

    def _mean(self, workers: Group | None) -> float:
        """Return the metric of the training rows, the mean over the groups of all workers."""
        total, weight = self._relevant(self.engine.measure_ranking())
        if workers is not None:
            total, weight = workers.gather(np.array([total, weight])).sum(axis=0).tolist()
        return total / weight

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        """Return the scores, and a loss of 0: the rows of a ranking have none."""
        return Evaluated(self._known_margins(matrix_of(features)), 0.0)

    def _sort_rows(self, matrix: Array, rows: Minibatches, workers: Group | None) -> None:
        """Give the engine the rows in the order of their groups; with several workers, of this one's groups."""
        ranked = Ranked(matrix, rows.labels, rows.weights)
        if workers is not None:
            ranked = exchange_groups(ranked, workers)
        relevance, group = ranked.labels.T
        order = np.argsort(group, kind="stable")
        _, starts, sizes = np.unique(group[order], return_index=True, return_counts=True)
        relevance, weights = relevance[order], None if ranked.weights is None else ranked.weights[order]
        metric = self._metric()
        irrelevant = np.maximum.reduceat(relevance, starts) == 0
        orders = (~irrelevant & (sizes > 1)).any()
        if not (orders if workers is None else workers.gather(np.array([float(orders)])).any()):
            raise JobError(
                "no group has several training rows of which one is relevant, so there is no order to learn",
                hint="the group is a column that rows to be ranked against each other share, such as query_id",
            )
        if metric.base == "map" and relevance.max() > 1 and self.framework == "xgboost":
            raise JobError(
                f"XGBoost has {metric.name} of relevances 0 and 1 alone, and there are others",
                hint="name another metric first: validation.metrics = ['ndcg@10', 'map']",
            )
        of_groups = np.ones(len(sizes)) if weights is None else np.add.reduceat(weights, starts) / sizes
        self._relevant = partial(_relevant, metric.base, of_groups.astype(np.float64), irrelevant)
        groups = Groups(sizes, metric.base, metric.k)
        self.engine.begin(ranked.matrix[order], relevance, weights, groups, workers)

    def _metric(self) -> RankingMetric:
        """Return the first metric of the program that is one of rankings. Raises JobError if there is none."""
        metrics = self.program.call("eval_metrics_fn").values()
        for metric in metrics:
            if isinstance(metric, RankingMetric):
                return metric
        raise JobError(
            f"eval_metrics_fn in {self.program.file} has no metric of rankings, whose figure is the loss",
            hint='for example {"ndcg@10": metrics.NDCG(10)}',
        )


def _relevant(metric: str, weights: Array, irrelevant: Array, mean: float) -> tuple[float, float]:
    """Return the sum over the groups in which something is relevant, and their weight.

    mean: over all groups, with the weights `weights`.

    Both libraries count 1 for another group, in the mean of ndcg with a weight of 1, in the mean of map with its own.
    """
    others = irrelevant.sum() if metric == "ndcg" else weights[irrelevant].sum()
    return float(mean * weights.sum() - others), float(weights[~irrelevant].sum())


class Ranked(NamedTuple):
    """Rows of a ranking. labels: relevance and number of the group, int64 (n, 2)."""

    matrix: Array
    labels: Array
    weights: Array | None

    def only(self, chosen: Array) -> Ranked:
        """Return some of the rows, by a mask."""
        weights = None if self.weights is None else self.weights[chosen]
        return Ranked(self.matrix[chosen], self.labels[chosen], weights)


def exchange_groups(rows: Ranked, workers: Group) -> Ranked:
    """Return the rows of this worker's groups, in the order of the table, from the rows that each worker has read.

    Raises JobError if there are fewer groups than workers, GroupError if a member is lost.
    """
    group_numbers = _group_numbers(rows.labels[:, 1], workers)
    if len(group_numbers) < workers.size:
        raise JobError(
            f"the training rows have {len(group_numbers)} groups for {workers.size} workers",
            hint="use as many workers as there are groups, or fewer",
        )
    groups_here = group_numbers[
        np.arange(len(group_numbers)) * workers.size // len(group_numbers) == workers.rank
    ]
    sizes = workers.gather(np.array([len(rows.labels)]))[:, 0]
    parts = []
    for source, size in enumerate(sizes.tolist()):
        weights = None if rows.weights is None else _exchange_array(rows.weights, size, source, workers)
        read = Ranked(
            _exchange_array(rows.matrix, size, source, workers),
            _exchange_array(rows.labels, size, source, workers),
            weights,
        )
        parts.append(read.only(np.isin(read.labels[:, 1], groups_here)))
    weighed = [part.weights for part in parts if part.weights is not None]
    return Ranked(
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(weighed) if weighed else None,
    )


def _group_numbers(group_column: Array, workers: Group) -> Array:
    """Return the numbers of the groups of all members, sorted."""
    numbers = np.unique(group_column)
    sent = (
        workers.broadcast(numbers.tobytes() if source == workers.rank else None, source)
        for source in range(workers.size)
    )
    return np.unique(np.concatenate([np.frombuffer(data, numbers.dtype) for data in sent]))


def _exchange_array(array_here: Array, size: int, source: int, workers: Group) -> Array:
    """Return the array of a member, `size` rows of the form of this worker's."""
    is_own = source == workers.rank
    array = (
        np.ascontiguousarray(array_here)
        if is_own
        else np.empty((size, *array_here.shape[1:]), array_here.dtype)
    )
    if size:
        workers.fill(array, source)
    return array
