"""Trees that several workers grow together, each from its rows. Workers are threads here: each has a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from edl.collectives.base import GroupError
from edl.collectives.gloo import GlooGroup, GlooHost
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.trees import xgboost_network
from edl.frameworks.trees.adapter import TreeAdapter
from edl.frameworks.trees.xgboost_network import XGBoostNetwork as XGBoostNetwork
from edl.worker.strategies.allreduce.trees import READ_SECS
from tests.edl.frameworks.test_trees import LABELS, MATRIX, OBJECTIVES, ROUNDS, WEIGHTS, adapter, rows

_NUMBERS = count(1)


class Workers:
    """A host and a thread for each worker; a thread keeps the library's network of its worker."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._hosts = [GlooHost() for _ in range(size)]
        self._pools = [ThreadPoolExecutor(1) for _ in range(size)]

    def do(self, task: Callable[[int], Any]) -> list[Any]:
        """What each gives of a call of `task` with its rank."""
        begun = [pool.submit(task, rank) for rank, pool in enumerate(self._pools)]
        return [future.result(30) for future in begun]

    def meet(self) -> list[GlooGroup]:
        number, address = next(_NUMBERS), self._hosts[0].address
        return self.do(lambda rank: self._hosts[rank].meet(address, number, rank, self.size, 10.0))

    def grow(self, subjects: Sequence[TreeAdapter], given: Minibatches, rounds: int) -> list[list[float]]:
        """Rounds of a new group; the losses of each worker."""
        groups = self.meet()
        shares = [share(given, rank, self.size) for rank in range(self.size)]

        def grown(rank: int) -> list[float]:
            return [float(subjects[rank].train(shares[rank], groups[rank])[0]) for _ in range(rounds)]

        try:
            return self.do(grown)
        finally:
            for group in groups:
                group.close()


def share(given: Minibatches, rank: int, size: int) -> Minibatches:
    total = len(given.labels)
    return given.rows(slice(total * rank // size, total * (rank + 1) // size))


def rounds_until_lost(
    subjects: Sequence[TreeAdapter], groups: Sequence[GlooGroup], given: Minibatches, rank: int
) -> int:
    """Rounds of a worker of two before the other one, or itself, is lost."""
    part = share(given, rank, 2)
    for rounds in range(ROUNDS):
        try:
            subjects[rank].train(part, groups[rank])
        except GroupError:
            groups[rank].close()
            return rounds
    raise AssertionError


@pytest.fixture(scope="module")
def pair() -> Workers:
    return Workers(2)


@pytest.fixture(scope="module")
def trio() -> Workers:
    return Workers(3)


def trees(subject: TreeAdapter) -> bytes:
    return subject.get_weights()["booster"].tobytes()


Made = Callable[..., list[TreeAdapter]]
SMALL: Mapping[str, dict[str, Any]] = {"lightgbm": {"num_leaves": 8}, "xgboost": {"max_depth": 3}}


def of(library: str, folder: Path) -> Made:
    """Models of the same program of a library; each call takes another folder."""
    folders = count()

    def made(size: int, *described: Any, **params: Any) -> list[TreeAdapter]:
        place = folder / library / str(next(folders))
        params = SMALL[library] | params
        return [adapter(place / str(rank), library, *described, **params) for rank in range(size)]

    return made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return of("lightgbm", tmp_path)


@pytest.fixture
def xgboosts(tmp_path: Path) -> Made:
    return of("xgboost", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"feature_fraction": 0.5},
        {"bin_construct_sample_cnt": 300},
        {"boosting": "dart", "drop_rate": 0.4},
    ],
)
def test_trees_of_three_workers_equal_the_trees_of_one(
    trio: Workers, made: Made, params: dict[str, Any]
) -> None:
    [alone] = made(1, **params)
    given = rows()
    losses = [float(alone.train(given)[0]) for _ in range(ROUNDS)]
    together = made(3, **params)
    for found in trio.grow(together, given, ROUNDS):
        assert found == pytest.approx(losses, rel=1e-6)
    assert len({trees(subject) for subject in together}) == 1
    wanted, found = alone.predict({"dense": MATRIX}), together[0].predict({"dense": MATRIX})
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_workers_that_draw_thresholds_have_the_same_trees(pair: Workers, made: Made) -> None:
    [alone], given = made(1, extra_trees=True), rows()
    losses = [float(alone.train(given)[0]) for _ in range(ROUNDS)]
    together = made(2, extra_trees=True)
    assert pair.grow(together, given, ROUNDS)[0] == pytest.approx(losses, rel=0.1)
    assert trees(together[0]) == trees(together[1])


SIMILAR = {
    "quantile",
    "gamma",
    "tweedie",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:gamma",
    "reg:tweedie",
}
CLOSE = {  # losses of training that several workers and one differ by at most: counts of rows and medians are estimated
    "regression_l1": 0.05, "quantile": 0.05, "poisson": 0.02, "gamma": 0.02, "tweedie": 0.02, "binary": 0.02,
    "multiclass": 0.05,
}  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize(
    ("library", "objective", "kind", "params"),
    [
        pytest.param(*row[:4], marks=[pytest.mark.soak] if row[1] in SIMILAR else [])
        for row in OBJECTIVES
        if row[0] == "xgboost" or row[1] in CLOSE
    ],
)
def test_losses_of_several_workers_are_close_to_one_workers_with_weights(
    pair: Workers, tmp_path: Path, library: str, objective: str, kind: str, params: dict[str, Any]
) -> None:
    made = of(library, tmp_path)
    [alone], given = made(1, objective, kind, **params), rows(kind, WEIGHTS)
    losses = [float(alone.train(given)[0]) for _ in range(ROUNDS)]
    together = made(2, objective, kind, **params)
    found = pair.grow(together, given, ROUNDS)
    assert found[0] == found[1] == pytest.approx(losses, rel=CLOSE.get(objective, 0.05))
    assert trees(together[0]) == trees(together[1])


@pytest.mark.soak
@pytest.mark.parametrize(
    "params",
    [{}, {"tree_method": "approx"}, {"booster": "dart", "rate_drop": 0.4}, {"colsample_bytree": 0.5}],
)
def test_losses_of_three_workers_of_xgboost_equal_the_losses_of_one(
    trio: Workers, xgboosts: Made, params: dict[str, Any]
) -> None:
    [alone], given = xgboosts(1, **params), rows()
    losses = [float(alone.train(given)[0]) for _ in range(ROUNDS)]
    together = xgboosts(3, **params)
    found = trio.grow(together, given, ROUNDS)
    assert found[0] == found[1] == found[2] == pytest.approx(losses, rel=1e-6)
    assert len({trees(subject) for subject in together}) == 1


@pytest.mark.parametrize(("name", "value"), [("booster", "gblinear"), ("tree_method", "exact")])
def test_what_xgboost_trains_on_one_worker_is_an_error_on_several(
    pair: Workers, xgboosts: Made, name: str, value: str
) -> None:
    with pytest.raises(JobError, match=f"XGBoost trains {name} {value} on one worker"):
        pair.grow(xgboosts(2, **{name: value}), rows(), 1)


def test_the_tracker_of_xgboost_listens_where_its_own_worker_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group meets at its first member, and ranks of trees are in the order of names: rank 0 may be another."""
    said: list[str] = []

    class Tracker:
        def __init__(self, size: int, host: str, **_: object) -> None:
            said.append(host)
            raise GroupError

    monkeypatch.setattr(xgboost_network, "RabitTracker", Tracker)
    hosts = GlooHost("127.0.0.1"), GlooHost("127.0.0.2")
    with ThreadPoolExecutor(2) as pool:
        begun = [
            pool.submit(host.meet, hosts[1].address, 0, rank, 2, 10.0) for rank, host in enumerate(hosts)
        ]
        groups = [each.result(30) for each in begun]
    with pytest.raises(GroupError):
        XGBoostNetwork(groups[0])
    for group in groups:
        group.close()
    assert said == ["127.0.0.1"]


def test_nobody_waits_for_a_tracker_of_xgboost_without_its_pod(
    pair: Workers, xgboosts: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xgboost_network, "LEAVE_SECS", 0.05)
    answers, left = Event(), xgboost_network._close_communicator

    def late() -> None:
        answers.wait()
        left()

    monkeypatch.setattr(xgboost_network, "_close_communicator", late)
    subjects, given = xgboosts(2), rows()
    try:
        pair.grow(subjects, given, 1)
        losses = pair.grow(subjects, given, 1)  # in another group: its members have left the first network
    finally:
        answers.set()
    assert losses[0] == losses[1]


def test_a_worker_that_is_lost_before_the_ring_of_xgboost_has_formed_is_noticed(
    pair: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edl.frameworks.trees.xgboost_network.MEETING_SECS", 1)
    groups = pair.meet()

    def meet(rank: int) -> None:
        groups[rank].timeout = READ_SECS
        if rank:
            groups[rank].broadcast(None, 0)
        else:
            with pytest.raises(GroupError):
                XGBoostNetwork(groups[rank])
        groups[rank].close()

    pair.do(meet)


XGBOOSTS: Sequence[dict[str, Any]] = ({}, {"subsample": 0.5}, {"booster": "dart", "rate_drop": 0.4})


class _Leaving(XGBoostNetwork):
    """A network that loses its member at the member's call of that number."""

    def __init__(self, group: GlooGroup, last: int) -> None:
        self._calls, self._last = 0, last
        super().__init__(group)

    def call(self, function: Callable[..., None], *arguments: Any, **named: Any) -> None:
        self._calls += 1
        if self._calls == self._last:
            self.close()
            raise GroupError
        super().call(function, *arguments, **named)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("params", "call"),
    [
        ({}, 2),
        *((params, 4) for params in XGBOOSTS),
        *(pytest.param(params, 2, marks=pytest.mark.soak) for params in XGBOOSTS if params),
    ],
)
def test_a_lost_worker_of_xgboost_changes_no_tree(
    pair: Workers, xgboosts: Made, monkeypatch: pytest.MonkeyPatch, params: dict[str, Any], call: int
) -> None:
    given = rows()
    expected = xgboosts(2, **params)
    pair.grow(expected, given, ROUNDS)
    subjects = xgboosts(2, **params)
    pair.grow(subjects, given, 5)
    groups = pair.meet()

    def network(group: GlooGroup) -> XGBoostNetwork:
        return _Leaving(group, call) if group is groups[1] else XGBoostNetwork(group)

    monkeypatch.setattr("edl.frameworks.trees.xgboost.XGBoostNetwork", network)

    rounds = pair.do(partial(rounds_until_lost, subjects, groups, given))
    assert rounds[0] == rounds[1]
    monkeypatch.undo()
    [replacement] = xgboosts(1, **params)
    replacement.set_weights(subjects[0].get_weights())
    replacement.set_state(subjects[0].get_state())
    pair.grow([subjects[0], replacement], given, ROUNDS - 5 - rounds[0])
    assert trees(subjects[0]) == trees(replacement) == trees(expected[0])


@pytest.mark.soak
def test_splits_of_two_workers_equal_the_splits_of_one_where_no_count_decides(
    pair: Workers, made: Made
) -> None:
    [alone] = made(1, "binary", "two", min_data_in_leaf=1)
    given = rows("two")
    for _ in range(ROUNDS):
        alone.train(given)
    together = made(2, "binary", "two", min_data_in_leaf=1)
    pair.grow(together, given, ROUNDS)
    wanted, found = alone.predict({"dense": MATRIX}), together[0].predict({"dense": MATRIX})
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.soak
def test_classes_have_their_weights_on_all_workers(pair: Workers, made: Made) -> None:
    described = ("binary", "two", ", class_weights=(1.0, 3.0)")
    plain, weighed = made(2, "binary", "two"), made(2, *described)
    for subjects in (plain, weighed):
        pair.grow(subjects, rows("two"), ROUNDS)
    assert weighed[0].predict({"dense": MATRIX}).mean() > plain[0].predict({"dense": MATRIX}).mean() + 0.3


class _Lost(GlooGroup):
    """A group that loses its member at the member's exchange of that number."""

    exchanges = 0
    last = 0

    def all_to_all(self, blocks: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
        self.exchanges += 1
        if self.exchanges == self.last:
            self.close()
            raise GroupError
        return super().all_to_all(blocks, sizes)


MODELS: Mapping[str, tuple[Sequence[str], dict[str, Any]]] = {
    "plain": ((), {}),
    "three classes": (("multiclass", "three"), {"num_class": 3}),
    "rows at random": ((), {"bagging_fraction": 0.5, "bagging_freq": 1}),
    "dart": ((), {"boosting": "dart", "drop_rate": 0.4}),
}


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("plain", 1),
        *((name, 40) for name in MODELS),
        *(pytest.param(name, 1, marks=pytest.mark.soak) for name in MODELS if name != "plain"),
    ],
)
def test_a_lost_worker_changes_no_tree(pair: Workers, made: Made, name: str, exchange: int) -> None:
    described, params = MODELS[name]
    given = rows(described[1] if described else "number")
    expected = made(2, *described, **params)
    pair.grow(expected, given, ROUNDS)
    subjects = made(2, *described, **params)
    pair.grow(subjects, given, 5)
    before = [trees(subject) for subject in subjects]
    groups = pair.meet()
    groups[1].__class__ = _Lost
    groups[1].last = exchange  # type: ignore[attr-defined]

    rounds = pair.do(partial(rounds_until_lost, subjects, groups, given))
    for group in groups:
        group.close()
    assert rounds[0] == rounds[1]
    if exchange == 1:
        assert [trees(subject) for subject in subjects] == before
    [replacement] = made(1, *described, **params)
    replacement.set_weights(subjects[0].get_weights())
    replacement.set_state(subjects[0].get_state())
    pair.grow([subjects[0], replacement], given, ROUNDS - 5 - rounds[0])
    assert trees(subjects[0]) == trees(replacement) == trees(expected[0])


def test_workers_add_rounds_to_a_model_that_was_trained_before(pair: Workers, made: Made) -> None:
    [parent] = made(1)
    given = rows()
    for _ in range(4):
        parent.train(given)
    together = made(2)
    for subject in together:
        subject.set_weights(parent.get_weights())
    pair.grow(together, given, ROUNDS)
    assert together[0].rounds == 4 + ROUNDS
    assert trees(together[0]) == trees(together[1])


def test_ranks_with_rows_of_one_class_alone_grow_the_same_trees(pair: Workers, made: Made) -> None:
    order = np.argsort(LABELS["two"][1][:, 0], kind="stable")
    given = rows("two")
    apart = Minibatches({"dense": MATRIX[order]}, given.labels[order], given.size)
    together = made(2, "binary", "two")
    losses = pair.grow(together, apart, ROUNDS)
    assert losses[0][-1] < 0.6 * losses[0][0]
    assert trees(together[0]) == trees(together[1])
