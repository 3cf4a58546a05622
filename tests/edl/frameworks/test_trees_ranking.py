"""Trees that rank, against the libraries called by hand on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from edl import frameworks, metrics
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.trees.ranking import Ranked, RankingAdapter, exchange_groups
from edl.spec import ALL_ROWS, RankingLabel, Rows
from tests.edl.frameworks.test_trees_workers import Workers, trees
from tests.edl.programs import loaded, simple

ROUNDS = 8
rng = np.random.default_rng(11)
ROWS = 1200
MATRIX = rng.normal(size=(ROWS, 3))
GROUP = rng.integers(0, 70, ROWS)  # in no order
RELEVANCE = np.digitize(MATRIX[:, 0] - np.abs(MATRIX[:, 1]) + 0.5 * rng.normal(size=ROWS), [0.3, 1.1])
LABELS = np.column_stack([RELEVANCE, GROUP]).astype(np.int64)
WEIGHTS = rng.uniform(0.5, 1.5, 70)[GROUP].astype(np.float32)
OBJECTIVES = [
    ("lightgbm", "lambdarank"),
    ("lightgbm", "rank_xendcg"),
    ("xgboost", "rank:ndcg"),
    ("xgboost", "rank:pairwise"),
    ("xgboost", "rank:map"),
]


def adapter(
    folder: Path,
    library: str,
    objective: str,
    written: str = '{"ndcg@10": metrics.NDCG(10)}',
    **params: object,
) -> RankingAdapter:
    more = "".join(f", {name}={value!r}" for name, value in params.items())
    path = simple(
        folder, library, rows=Rows(False, ROWS, ROWS), label=RankingLabel("y", "q"), features=("a", "b", "c"),
        replace={"seed=0)": f"seed=0{more})", '"OBJECTIVE"': f'"{objective}"', '{"ndcg": metrics.NDCG()}': written},
    )  # fmt: skip
    made = frameworks.create(loaded(path), {"dense": MATRIX[:2]}, LABELS[:2], seed=0)
    assert isinstance(made, RankingAdapter)
    return made


def grown(
    subject: RankingAdapter,
    labels: np.ndarray = LABELS,
    weights: np.ndarray | None = None,
    rounds: int = ROUNDS,
) -> list[float]:
    given = Minibatches({"dense": MATRIX}, labels, ALL_ROWS, weights)
    return [float(subject.train(given)[0]) for _ in range(rounds)]


def by_hand(library: str, objective: str, labels: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Scores of the rows, in their own order."""
    order = np.argsort(GROUP, kind="stable")
    sizes = np.unique(GROUP, return_counts=True)[1]
    params: dict[str, Any] = {"objective": objective, "learning_rate": 0.1, "seed": 0}
    if library == "lightgbm":
        params |= {"deterministic": True, "force_row_wise": True, "verbosity": -1, "num_threads": 1}
        rows = lightgbm.Dataset(
            MATRIX[order], labels[order, 0], group=sizes, weight=None if weights is None else weights[order]
        )
        return np.asarray(lightgbm.train(params, rows, ROUNDS).predict(MATRIX))
    first = np.cumsum(sizes) - sizes
    data = xgboost.QuantileDMatrix(
        MATRIX[order],
        labels[order, 0],
        group=sizes,
        weight=None if weights is None else weights[order][first],
    )
    return np.asarray(xgboost.train({**params, "nthread": 1}, data, ROUNDS).inplace_predict(MATRIX))


@pytest.mark.variants(3)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize(("library", "objective"), OBJECTIVES)
def test_scores_equal_the_library_called_by_hand(
    tmp_path: Path, library: str, objective: str, weights: np.ndarray | None
) -> None:
    labels = LABELS if objective != "rank:map" else np.minimum(LABELS, [1, 10**6])
    subject = adapter(tmp_path, library, objective)
    losses = grown(subject, labels, weights)
    found = subject.predict({"dense": MATRIX})[:, 0]
    wanted = by_hand(library, objective, labels, weights)
    np.testing.assert_allclose(found, wanted, rtol=2e-6 if library == "xgboost" else 1e-12, atol=1e-7)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("written", "metric"),
    [
        ('{"ndcg@5": metrics.NDCG(5)}', metrics.NDCG(5)),
        ('{"ndcg": metrics.NDCG()}', metrics.NDCG()),
        ('{"map@4": metrics.MAP(4), "ndcg": metrics.NDCG()}', metrics.MAP(4)),
    ],
)
@pytest.mark.parametrize(("library", "objective"), [("lightgbm", "lambdarank"), ("xgboost", "rank:ndcg")])
def test_the_loss_is_one_less_the_first_metric(
    tmp_path: Path, library: str, objective: str, written: str, metric: metrics.Metric
) -> None:
    labels = np.where((GROUP % 3 == 0)[:, np.newaxis], LABELS * [0, 1], LABELS)  # a third: nothing relevant
    if "map" in written:
        labels = np.minimum(labels, [1, 10**6])
    subject = adapter(tmp_path, library, objective, written)
    losses = grown(subject, labels, WEIGHTS, rounds=20)
    evaluated = subject.evaluate({"dense": MATRIX}, labels, WEIGHTS)
    state = metric.update(metric.zero(), labels, evaluated.outputs, WEIGHTS)
    assert evaluated.loss == 0
    assert losses[-1] == pytest.approx(1 - metric.result(state), abs=2e-3)  # libraries break ties by position


@pytest.mark.parametrize(
    ("library", "objective", "params"),
    [
        ("lightgbm", "lambdarank", {}),
        ("lightgbm", "rank_xendcg", {}),
        ("xgboost", "rank:ndcg", {}),
        ("xgboost", "rank:pairwise", {"lambdarank_pair_method": "mean"}),
    ],
)
def test_training_goes_on_from_its_state_as_if_it_had_not_stopped(
    tmp_path: Path, library: str, objective: str, params: dict[str, object]
) -> None:
    alone = adapter(tmp_path / "alone", library, objective, **params)
    grown(alone, rounds=7)
    first = adapter(tmp_path / "first", library, objective, **params)
    grown(first, rounds=3)
    second = adapter(tmp_path / "second", library, objective, **params)
    second.set_weights(first.get_weights())
    second.set_state(first.get_state())
    grown(second, rounds=4)
    assert second.get_weights()["booster"].tobytes() == alone.get_weights()["booster"].tobytes()


def test_groups_of_single_rows_have_no_order_to_learn(tmp_path: Path) -> None:
    labels = np.column_stack([RELEVANCE, np.arange(ROWS)])
    with pytest.raises(JobError, match="no group has several training rows"):
        grown(adapter(tmp_path, "lightgbm", "lambdarank"), labels)


def test_xgboost_has_no_mean_average_precision_of_graded_relevances(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="XGBoost has map of relevances 0 and 1 alone"):
        grown(adapter(tmp_path, "xgboost", "rank:ndcg", '{"map": metrics.MAP()}'))


def test_a_program_without_a_metric_of_rankings_has_no_loss(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="has no metric of rankings, whose figure is the loss"):
        grown(adapter(tmp_path, "lightgbm", "lambdarank", "{}"))


def test_an_objective_of_numbers_suits_no_ranking(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="the objective regression ranks no rows, and the label is one of fc"):
        adapter(tmp_path, "lightgbm", "regression")


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("library", "objective", "weighed"),
    [
        *((library, objective, True) for library, objective in OBJECTIVES),
        *(
            pytest.param(library, objective, False, marks=[] if objective == first else [pytest.mark.soak])
            for library, objective in OBJECTIVES
            for first in [dict(OBJECTIVES[::-1])[library]]
        ),
    ],
)
def test_two_workers_rank_whole_groups_and_nearly_as_one(
    tmp_path: Path, library: str, objective: str, weighed: bool
) -> None:
    workers = Workers(2)
    labels = np.minimum(LABELS, [1, 100]) if objective == "rank:map" else LABELS
    given = Minibatches({"dense": MATRIX}, labels, ALL_ROWS, WEIGHTS if weighed else None)
    alone, *together = (adapter(tmp_path / f"{number}", library, objective) for number in range(3))
    losses = [float(alone.train(given)[0]) for _ in range(ROUNDS)]
    found = workers.grow(together, given, ROUNDS)
    assert found[0] == found[1] == pytest.approx(losses, abs=0.03)
    assert found[0][-1] < 0.8 * found[0][0]
    assert trees(together[0]) == trees(together[1])


def exchange(own: list[Ranked]) -> list[Ranked]:
    """Exchange the rows that workers have read."""
    workers = Workers(len(own))
    groups = workers.meet()
    try:
        found: list[Ranked] = workers.do(lambda rank: exchange_groups(own[rank], groups[rank]))
        return found
    finally:
        for group in groups:
            group.close()


def test_each_group_is_on_one_worker_and_all_rows_are_somewhere() -> None:
    numbers = np.arange(ROWS)
    found = exchange(
        [Ranked(MATRIX[part], LABELS[part], numbers[part]) for part in np.array_split(numbers, 3)]
    )
    of_each = [set(part.labels[:, 1].tolist()) for part in found]
    assert sum(map(len, of_each)) == len(set.union(*of_each)) == 70
    assert min(map(len, of_each)) >= 23
    assert sorted(np.concatenate([part.weights for part in found]).tolist()) == numbers.tolist()
    for part in found:
        assert part.weights is not None
        np.testing.assert_array_equal(part.matrix, MATRIX[part.weights])
        np.testing.assert_array_equal(part.labels, LABELS[part.weights])


def test_workers_that_are_more_than_the_groups_are_an_error() -> None:
    few = Ranked(MATRIX[:40], LABELS[:40] * [1, 0] + [0, 5], None)
    with pytest.raises(JobError, match="the training rows have 1 groups for 3 workers"):
        exchange([few] * 3)


@pytest.mark.soak
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_worker_with_groups_of_nothing_relevant_grows_the_same_trees(tmp_path: Path, library: str) -> None:
    labels = LABELS.copy()
    labels[labels[:, 1] >= 35, 0] = 0
    together = [adapter(tmp_path / f"{rank}", library, dict(OBJECTIVES[::-1])[library]) for rank in range(2)]
    found = Workers(2).grow(together, Minibatches({"dense": MATRIX}, labels, ALL_ROWS, None), ROUNDS)
    assert found[0] == found[1]
    assert found[0][-1] < found[0][0]
    assert trees(together[0]) == trees(together[1])
