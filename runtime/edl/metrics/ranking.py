"""Metrics of rankings: groups of rows in the order of their scores, best first.

Labels are (n, 2) int64: the relevance of each row, and a number that its group has alone (`edl.features.labels`).
Scores are (n, 1). A group may be spread over blocks and tasks in any way, so a state keeps all rows: arrays of shape
(4, m) with group, relevance, score and weight. Rows of equal scores have no order: a figure is the mean over all of
their orders. A group counts with the mean weight of its rows; one in which nothing is relevant has no figure and is
left out of the mean.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.metrics.base import Array, Metric, check_finite, ratio, row_weights
from edl.metrics.states import Floats, State

_GROUP, _RELEVANCE, _SCORE, _WEIGHT = range(4)


@dataclass(frozen=True)
class RankingMetric(Metric):
    """Weighted mean over groups of a figure of the first `k` rows; 0 takes all rows."""

    k: int = 0
    higher_is_better = True

    @property
    @abc.abstractmethod
    def base(self) -> str:
        """Name without the number of rows."""

    @property
    def name(self) -> str:
        return f"{self.base}@{self.k}" if self.k else self.base

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        if labels.shape != (len(scores), 2) or scores.shape != (len(labels), 1):
            raise JobError(
                f"labels have the shape {labels.shape} and scores {scores.shape}; a ranking needs (n, 2) and (n, 1)",
                hint="fc.ranking makes labels of a relevance and a group",
            )
        check_finite(scores, "scores")
        relevance, group = labels.astype(np.float64).T
        return (np.stack([group, relevance, scores[:, 0], row_weights(weights, len(labels))]),)

    def _merge(self, a: State, b: State) -> State:
        return (*a, *b)

    def _result(self, state: State) -> float:
        ranked = _Ranked(np.concatenate(state, axis=1), self.k)
        weights = ranked.weights[ranked.is_relevant]
        return ratio(float(self._of_groups(ranked)[ranked.is_relevant] @ weights), float(weights.sum()))

    @abc.abstractmethod
    def _of_groups(self, ranked: _Ranked) -> Floats:
        """Return the figure of each group; any number for one in which nothing is relevant."""


class NDCG(RankingMetric):
    """Normalized discounted cumulative gain (Burges et al., 2005).

    A row's gain is 2^relevance - 1, divided by the logarithm of its rank; the sum is divided by the sum for the best
    order. It equals scikit-learn's ndcg_score of these gains.
    """

    base = "ndcg"

    def _of_groups(self, ranked: _Ranked) -> Floats:
        gains = np.exp2(ranked.relevance) - 1
        best = ranked.sums(gains[ranked.best_order] * ranked.discounts)
        gained = ranked.sums(ranked.expected_values(gains) * ranked.discounts)
        return gained / np.where(best > 0, best, 1)


class MAP(RankingMetric):
    """Mean average precision; a row is relevant if its relevance is above 0.

    The precision at each relevant row among the first k, over the number of relevant rows, or over k if that is less.
    """

    base = "map"

    def _of_groups(self, ranked: _Ranked) -> Floats:
        hits = (ranked.relevance > 0).astype(np.float64)
        share = ranked.expected_values(hits)  # probability that the row at this rank is relevant
        before = ranked.hits_above(hits)  # expected number of relevant rows above it, if it is
        precision = share * (before + 1) / (ranked.ranks + 1) * ranked.counted
        relevant = ranked.sums(hits)
        return ranked.sums(precision) / np.maximum(np.minimum(relevant, self.k or math.inf), 1)


class _Ranked:
    """Rows in the order of their groups and of their scores, best first. Arrays are by row, or by group."""

    def __init__(self, rows: Floats, k: int) -> None:
        rows = rows[:, np.lexsort((-rows[_SCORE], rows[_GROUP]))]
        self.relevance = rows[_RELEVANCE]
        self._groups = rows[_GROUP]
        self._starts, self._numbers = _runs(self._groups)
        self.ranks = np.arange(len(self._groups)) - self._starts[self._numbers]
        self.counted = self.ranks < (k or math.inf)
        self.discounts = self.counted / np.log2(self.ranks + 2)
        self.is_relevant = np.maximum.reduceat(self.relevance, self._starts) > 0
        self.weights = self.sums(rows[_WEIGHT]) / self.sums(np.ones(len(self._groups)))
        ties, self._ties = _runs(self._groups, rows[_SCORE])
        self._tie_starts = ties
        self._tie_sizes = np.diff(np.append(ties, len(self._groups)))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each group."""
        by_group: Floats = np.add.reduceat(values, self._starts)
        return by_group

    def expected_values(self, values: Floats) -> Floats:
        """Return the mean value of the rows that may be at each rank: the rows of equal scores."""
        means: Floats = (np.add.reduceat(values, self._tie_starts) / self._tie_sizes)[self._ties]
        return means

    def hits_above(self, hits: Floats) -> Floats:
        """Return the expected number of hits above each rank, provided that the row there is a hit."""
        total = np.cumsum(hits) - hits
        above = total[self._tie_starts] - total[self._starts[self._numbers[self._tie_starts]]]
        equal = np.add.reduceat(hits, self._tie_starts)
        place = np.arange(len(hits)) - self._tie_starts[self._ties]
        share = (equal - 1) / np.maximum(self._tie_sizes - 1, 1)
        hits_before: Floats = above[self._ties] + place * share[self._ties]
        return hits_before

    @cached_property
    def best_order(self) -> npt.NDArray[np.intp]:
        """Positions of the rows, ordered by their groups and then by relevance, highest first."""
        return np.lexsort((-self.relevance, self._groups))


def _runs(*keys: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first row of each run of rows with equal keys, and the number of each row's run."""
    first = np.zeros(len(keys[0]), dtype=bool)
    first[0] = True
    for key in keys:
        first[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(first), np.cumsum(first) - 1
