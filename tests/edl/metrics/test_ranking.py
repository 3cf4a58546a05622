"""Metrics of rankings, against scikit-learn and against all orders of equal scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from edl import metrics
from edl.errors import JobError
from edl.metrics.merging import merge_kind, merge_states

rng = np.random.default_rng(5)
ROWS = 900
GROUP = rng.integers(0, 60, ROWS)
RELEVANCE = rng.integers(0, 4, ROWS) * (rng.random(ROWS) < 0.3)
SCORES = rng.normal(size=ROWS) + RELEVANCE
WEIGHTS = rng.uniform(0.5, 2, ROWS)
LABELS = np.column_stack([RELEVANCE, GROUP]).astype(np.int64)
GROUPS = [group == GROUP for group in np.unique(GROUP) if RELEVANCE[group == GROUP].any()]


def figure(
    metric: metrics.Metric,
    labels: np.ndarray = LABELS,
    scores: np.ndarray = SCORES,
    weights: np.ndarray | None = None,
) -> float:
    """Measure rows that come in blocks that divide their groups."""
    state = metric.zero()
    for first in range(0, len(labels), 100):
        part = slice(first, first + 100)
        state = metric.update(
            state, labels[part], scores[part, np.newaxis], None if weights is None else weights[part]
        )
    return metric.result(state)


@pytest.mark.soak
@pytest.mark.parametrize("k", [0, 1, 5, 10])
@pytest.mark.parametrize("decimals", [9, 0], ids=["distinct", "equal scores"])
def test_ndcg_equals_scikit_learn_for_exponential_gains(k: int, decimals: int) -> None:
    scores = SCORES.round(decimals)
    wanted = [ndcg_score([2.0 ** RELEVANCE[own] - 1], [scores[own]], k=k or None) for own in GROUPS]
    assert figure(metrics.NDCG(k), scores=scores) == pytest.approx(np.mean(wanted), rel=1e-12)


@pytest.mark.soak
def test_mean_average_precision_equals_scikit_learn() -> None:
    wanted = [average_precision_score(RELEVANCE[own] > 0, SCORES[own]) for own in GROUPS]
    assert figure(metrics.MAP()) == pytest.approx(np.mean(wanted), rel=1e-12)


def test_a_group_counts_with_the_mean_weight_of_its_rows() -> None:
    wanted = [average_precision_score(RELEVANCE[own] > 0, SCORES[own]) for own in GROUPS]
    of_groups = [WEIGHTS[own].mean() for own in GROUPS]
    found = figure(metrics.MAP(), weights=WEIGHTS)
    assert found == pytest.approx(np.average(wanted, weights=of_groups), rel=1e-12)


@pytest.mark.parametrize("k", [0, 2, 4])
@pytest.mark.parametrize("metric", [metrics.NDCG, metrics.MAP])
def test_equal_scores_give_the_mean_over_their_orders(metric: type[metrics.RankingMetric], k: int) -> None:
    relevance, scores = np.array([2, 0, 1, 0, 3, 0]), np.array([3.0, 2, 2, 2, 1, 1])
    labels = np.column_stack([relevance, np.zeros(6, np.int64)])
    orders = [
        order for order in itertools.permutations(range(6)) if (np.diff(scores[list(order)]) <= 0).all()
    ]
    each = [figure(metric(k), labels[list(order)], -np.arange(6.0)) for order in orders]
    assert len(orders) == 12
    assert figure(metric(k), labels, scores) == pytest.approx(np.mean(each), rel=1e-12)


def test_a_group_in_which_nothing_is_relevant_is_left_out() -> None:
    labels = np.array([[0, 1], [0, 1], [1, 2], [0, 2]])
    assert figure(metrics.NDCG(), labels, np.array([1.0, 2, 2, 1])) == 1.0
    assert np.isnan(figure(metrics.MAP(), labels[:2], np.array([1.0, 2])))


def test_states_merge_in_any_order_at_the_master() -> None:
    metric = metrics.NDCG(3)
    parts = [(slice(first, first + 300)) for first in (0, 300, 600)]
    states = [metric.update((), LABELS[part], SCORES[part, np.newaxis]) for part in parts]
    kinds = {"ndcg@3": merge_kind(metric)}
    found = []
    for one, two, three in itertools.permutations(states):
        merged = merge_states(kinds, {"ndcg@3": one}, {"ndcg@3": two})
        assert merged is not None
        whole = merge_states(kinds, merged, {"ndcg@3": three})
        assert whole is not None
        found.append(metric.result(whole["ndcg@3"]))
    assert found == pytest.approx([figure(metric)] * 6, rel=1e-12)


def test_labels_without_groups_are_an_error() -> None:
    with pytest.raises(JobError, match=r"a ranking needs \(n, 2\) and \(n, 1\)"):
        metrics.NDCG().update((), np.zeros((3, 1)), np.zeros((3, 1)))


def test_scores_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(JobError, match="scores are not finite in 1 of 3 rows"):
        metrics.MAP().update((), LABELS[:3], np.array([[1.0], [np.nan], [2.0]]))
