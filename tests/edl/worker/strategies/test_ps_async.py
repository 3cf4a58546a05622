"""Asynchronous training on servers, with and without local steps."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.errors import JobError
from edl.jobs.snapshot import Staleness
from edl.ps import messages as msg
from edl.ps.checkpoint.content import Mode, Version
from edl.rpc.channel import AwayError
from edl.tasks.task import Round
from edl.worker.strategies.base import VoidError
from tests.edl.programs import FRAMEWORKS
from tests.edl.ps.servers import Servers
from tests.edl.worker.strategies.on_servers import (
    LABELS,
    OneWorker,
    arranged,
    close,
    cluster,
    create,
    part,
    subject,
)

STEPS = 120


def figures(servers: Servers) -> list[Any]:
    return [servers.call(server, msg.Status(), msg.Figures)[0] for server in range(len(servers.servers))]


@pytest.mark.variants(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("local_steps", [1, 4])
def test_a10_training_learns_and_is_settled_when_pushes_are_answered(
    tmp_path: Path, framework: str, local_steps: int
) -> None:
    with arranged(2) as (servers, place):
        worker = OneWorker(
            subject(tmp_path, framework), place, tmp_path, cluster("async", local_steps=local_steps)
        )
        losses = np.concatenate([worker.train(first, first + 40) for first in range(0, STEPS, 40)])
        worker.strategy.flush()
        assert worker.strategy.is_durable(worker.strategy.mark())
        assert losses[-40:].mean() < losses[:40].mean()
        assert [found.pushes for found in figures(servers)] == [STEPS // local_steps] * 2
        assert worker.strategy.step <= STEPS // local_steps
        with worker.strategy.scoring():
            everything = part(0, 200)
            found = worker.adapter.evaluate(everything.features, everything.labels)
        assert found.loss < float(np.var(LABELS))


@pytest.mark.soak
def test_local_steps_of_one_minibatch_are_plain_pushes(tmp_path: Path) -> None:
    """One at a time, so that no pull overtakes a push."""
    model = subject(tmp_path, "torch")
    weights = []
    for steps in (1, 2):
        with arranged(1) as (_, place):
            worker = OneWorker(model, place, tmp_path, cluster("async", local_steps=steps))
            for number in range(20):
                worker.train(number, number + 1)
                worker.strategy.flush()
            weights.append(worker.weights())
    close(weights[0], weights[1], 1e-6)


@pytest.mark.soak
def test_local_steps_of_plain_sgd_are_local_training(tmp_path: Path) -> None:
    model = subject(
        tmp_path, "torch", "\n\ndef optimizer(parameters):\n    return torch.optim.SGD(parameters, 0.05)\n"
    )
    local = create(model)
    expected = local.train(part(0, 8))
    with arranged(2) as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("async", local_steps=8))
        np.testing.assert_allclose(worker.train(0, 8), expected, rtol=1e-4)
        worker.strategy.flush()
        close(worker.weights(), local.get_weights(), 1e-5)  # a step of plain SGD is linear in its gradients


@pytest.mark.soak
def test_rates_follow_the_steps_of_all_workers(tmp_path: Path) -> None:
    model = subject(tmp_path, "torch")
    asked: list[int] = []

    def rates(first: int, count: int) -> np.ndarray:
        asked.append(first)
        return np.zeros(count, np.float32)

    with arranged(1) as (_, place):
        one, other = (OneWorker(model, place, tmp_path, cluster("async"), name=f"worker-{i}") for i in (0, 1))
        for number in range(3):
            for worker in (one, other):
                worker.train(number, number + 1, rates)
                worker.strategy.flush()
    assert asked == list(range(6))


def test_a_push_of_local_steps_is_as_many_steps_to_a_schedule(tmp_path: Path) -> None:
    asked: list[int] = []

    def rates(first: int, count: int) -> np.ndarray:
        asked.append(first)
        return np.zeros(count, np.float32)

    with arranged(1) as (_, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("async", local_steps=4))
        for first in (0, 8):
            worker.train(first, first + 8, rates)
            worker.strategy.flush()
    assert asked == list(range(16))


@pytest.mark.soak
@pytest.mark.parametrize("local_steps", [1, 2])
def test_a_worker_alone_is_as_far_behind_as_it_has_pushes_under_way(tmp_path: Path, local_steps: int) -> None:
    with arranged(2) as (servers, place):
        model = subject(tmp_path, "torch")
        worker = OneWorker(model, place, tmp_path, cluster("async", local_steps=local_steps))
        worker.train(0, 8)
        worker.strategy.flush()
        found = [each.staleness for each in figures(servers)]
    expected = Staleness(8, 7, 1) if local_steps == 1 else Staleness(4, 3, 1)
    assert found == [expected, expected]


def test_a23_a_push_with_a_lost_answer_is_repeated_and_applied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = subject(tmp_path, "torch")
    weights = []
    for lost in (False, True):
        with arranged(2) as (servers, place), monkeypatch.context() as patched:
            worker = OneWorker(model, place, tmp_path, cluster("async"))
            if lost:
                patched.setattr(
                    servers.servers[1], "answer", _losing_every_other_push(servers.servers[1].answer)
                )
            for number in range(10):
                worker.train(number, number + 1)
                worker.strategy.flush()
            weights.append(worker.weights())
            assert [found.version.step for found in figures(servers)] == [10, 10]
    close(weights[1], weights[0], 0)


def _losing_every_other_push(answer: Any) -> Any:
    """The push is applied, and its answer does not come."""
    seen: set[int] = set()

    def losing(header: Any, arrays: Any) -> Any:
        found = answer(header, arrays)
        if isinstance(header, msg.Push) and header.sequence % 2 and header.sequence not in seen:
            seen.add(header.sequence)
            raise AwayError("the answer is lost")
        return found

    return losing


@pytest.mark.soak
def test_a_server_that_is_replaced_goes_on_from_its_checkpoint_and_the_worker_with_it(tmp_path: Path) -> None:
    with arranged(2) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("async"))
        worker.train(0, 20)
        worker.strategy.flush()
        cut = str(tmp_path / "cut")
        servers.call(0, msg.TakeCheckpoint(0, cut, wait=True), msg.CheckpointTaken)
        worker.train(20, 30)
        worker.strategy.flush()
        servers.replace(1)
        servers.arrange(restore=cut, lives=(0, 1))
        place.tell(servers)
        assert np.isfinite(worker.train(30, 60)).all()
        worker.strategy.flush()
        assert [found.version for found in figures(servers)] == [Version(0, 0, 60), Version(0, 1, 50)]
        assert worker.strategy.step == 60


def test_a_server_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    """It comes back while the worker's push waits."""
    with arranged(1) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("async"))
        worker.train(0, 5)
        worker.strategy.flush()
        cut = str(tmp_path / "cut")
        servers.call(0, msg.TakeCheckpoint(0, cut, wait=True), msg.CheckpointTaken)
        servers.replace(0)
        thread = _in_thread(lambda: worker.train(5, 10))
        servers.arrange(restore=cut, lives=(1,))
        place.tell(servers)
        thread.join(30)
        worker.strategy.flush()
        assert figures(servers)[0].version == Version(0, 1, 10)


def _in_thread(do: Any) -> threading.Thread:
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread


@pytest.mark.variants(1)
@pytest.mark.parametrize("strategy", ["async", "sync"])
def test_a_generation_that_is_over_drops_the_work_and_goes_on_from_the_checkpoint(
    tmp_path: Path, strategy: Any
) -> None:
    with arranged(2, strategy) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster(strategy))
        worker.train(0, 10)
        worker.strategy.flush()
        cut = str(tmp_path / "cut")
        servers.call(0, msg.TakeCheckpoint(0, cut, wait=True), msg.CheckpointTaken)
        expected = worker.weights()
        worker.train(10, 15)
        mark = worker.strategy.mark()
        servers.generation = 1
        servers.arrange(Mode(strategy), restore=cut)
        place.tell(servers)
        with pytest.raises(VoidError):
            worker.train(15, 20)
            worker.strategy.flush()
        close(worker.weights(), expected, 0)
        worker.strategy.flush()
        assert worker.strategy.is_durable(mark)  # for nothing
        worker.train(10, 20)
        worker.strategy.flush()
        assert worker.strategy.step == 20


@pytest.mark.soak
def test_servers_that_begin_anew_without_a_checkpoint_get_the_first_values_again(tmp_path: Path) -> None:
    model = subject(tmp_path, "torch")
    with arranged(2, "sync") as (servers, place):
        worker = OneWorker(model, place, tmp_path, cluster("sync"))
        expected = worker.train(0, 10)
        servers.generation = 1
        servers.arrange(Mode("sync"))
        place.tell(servers)
        with pytest.raises(VoidError):
            worker.train(10, 20)
        np.testing.assert_array_equal(worker.train(0, 10), expected)


def test_a_worker_that_has_to_go_does_not_wait_for_servers_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edl.worker.strategies.ps_client.GRACE_SECS", 0.0)
    with arranged(1) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("async"))
        worker.train(0, 5)
        servers.replace(0)
        worker.leaving.set()
        with pytest.raises(VoidError):
            worker.train(5, 10)


def test_nobody_waits_for_servers_when_the_job_is_over(tmp_path: Path) -> None:
    with arranged(1) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("async"))
        worker.train(0, 5)
        servers.replace(0)
        place.ended = True
        with pytest.raises(VoidError):
            worker.train(5, 10)


@pytest.mark.variants(1)
@pytest.mark.parametrize("told", [0, 1])
def test_a_lease_that_any_server_has_revoked_ends_its_task_and_no_other(told: int, tmp_path: Path) -> None:
    with arranged(2) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("async"))
        worker.train(0, 5)
        worker.strategy.flush()
        servers.call(told, msg.Revoke(0, (2,)), msg.Revoked)
        with pytest.raises(VoidError):
            worker.train(5, 15)
        worker.train(15, 20)
        worker.strategy.flush()
        assert figures(servers)[told].version.step == 10


@pytest.mark.soak
def test_a_model_that_differs_is_refused_each_time(tmp_path: Path) -> None:
    model = subject(tmp_path, "torch")
    with arranged(1) as (servers, place):
        one = OneWorker(model, place, tmp_path, cluster("async"))
        one.train(0, 5)
        one.strategy.flush()
        other = OneWorker(model, place, tmp_path, cluster("async"), name="worker-1", seed=2)
        for _ in range(2):
            with pytest.raises(JobError, match="differs from that of the servers in: seed"):
                other.train(5, 10)
        assert figures(servers)[0].version.step == 5


@pytest.mark.soak
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_training_starts_from_the_weights_of_a_model(tmp_path: Path, framework: str) -> None:
    model = subject(tmp_path, framework)
    trained = create(model)
    trained.train(part(0, 20))
    weights = trained.get_weights()
    with arranged(2) as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("async"), seed=9, start=lambda: weights)
        close(worker.weights(), weights, 0)
        late = OneWorker(model, place, tmp_path, cluster("async"), name="worker-1", start=lambda: weights)
        worker.train(20, 30)
        worker.strategy.flush()
        close(late.weights(), worker.weights(), 0)
        assert late.strategy.step == 10


@pytest.mark.soak
def test_scoring_reads_the_servers_and_leaves_the_model_s_own_state(tmp_path: Path) -> None:
    with arranged(2) as (_, place):
        one, other = (
            OneWorker(subject(tmp_path / name, "torch"), place, tmp_path, cluster("async"), name=name)
            for name in ("worker-0", "worker-1")
        )
        for worker, first in ((one, 0), (other, 30)):
            worker.train(first, first + 10 + first)
            worker.strategy.flush()
        own = one.adapter.get_buffers()
        with one.strategy.scoring():
            mean = one.adapter.get_buffers()
            rows = part(0, 10)
            loss = one.adapter.evaluate(rows.features, rows.labels).loss
        close(one.adapter.get_buffers(), own, 0)
        theirs = other.adapter.get_buffers()
        close(mean, {name: (own[name] + 4 * theirs[name]) / 5 for name in own}, 1e-6)
        local = create(subject(tmp_path / "local", "torch"))
        local.set_weights(one.weights())
        assert local.evaluate(rows.features, rows.labels).loss == pytest.approx(loss, rel=1e-6)


def test_a_round_is_measured_on_the_parameters_of_its_first_pull_though_training_goes_on(
    tmp_path: Path,
) -> None:
    def losses(worker: OneWorker, round_: Round | None) -> float:
        with worker.strategy.scoring(round_):
            rows = part(0, 200)
            return worker.adapter.evaluate(rows.features, rows.labels).loss

    with arranged(2) as (_, place):
        one, other = (
            OneWorker(subject(tmp_path / name, "torch"), place, tmp_path, cluster("async"), name=name)
            for name in ("worker-0", "worker-1")
        )
        one.train(0, 20)
        one.strategy.flush()
        first, second = (Round(number, measured_on="validation") for number in (1, 2))
        before = losses(one, None)
        assert losses(one, first) == before
        one.train(20, 60)
        one.strategy.flush()
        now = losses(one, None)
        assert now != before
        assert [losses(worker, first) for worker in (one, other)] == [before, before]
        assert losses(other, second) == now
        assert losses(other, first) == before  # two rounds may be open
        other.strategy.release(first)
        one.train(60, 70)
        one.strategy.flush()
        assert losses(one, first) == losses(one, None)  # it is over: the present ones
        assert losses(one, second) == now
        other.strategy.release(second)
        losses(one, second)  # of a worker that does not know yet: nothing is pinned again
        one.train(70, 80)
        one.strategy.flush()
        assert losses(one, second) == losses(one, None)


def test_the_weights_of_the_best_epoch_are_kept_by_the_servers(tmp_path: Path) -> None:
    with arranged(2) as (_, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path / "cuts", cluster("async"))
        worker.train(0, 5)
        worker.strategy.flush()
        expected = worker.weights()
        worker.strategy.keep(1)
        worker.train(5, 20)
        worker.strategy.flush()
        close(worker.weights_of(1), expected, 0)
        for epoch in range(2, 7):
            worker.strategy.keep(epoch)
        assert sorted(path.name[:11] for path in (tmp_path / "cuts").glob("best-*")) == [
            f"best-{epoch:06d}" for epoch in (4, 5, 6)
        ]
