"""Synchronous training on servers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edl.embeddings import sum_parts
from edl.embeddings.model_tables import RowGradients
from edl.frameworks import Minibatches
from edl.frameworks.exchange import StepGradients
from edl.ps import messages as msg
from edl.worker.strategies.base import VoidError
from tests.edl.frameworks.exchanging import gradients
from tests.edl.programs import FRAMEWORKS
from tests.edl.worker.strategies.on_servers import OneWorker, arranged, close, cluster, create, part, subject


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_worker_and_two_servers_are_local_training(tmp_path: Path, framework: str) -> None:
    model = subject(tmp_path, framework)
    local = create(model)
    expected = local.train(part(0, 60))
    with arranged(2, "sync") as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("sync"))
        found = np.concatenate([worker.train(first, first + 20) for first in range(0, 60, 20)])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        worker.strategy.flush()
        assert worker.strategy.is_durable(worker.strategy.mark())
        close(worker.weights(), local.get_weights(), 1e-5)


@pytest.mark.soak
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_worker_that_starts_anew_goes_on_with_random_numbers_and_normalisation(
    tmp_path: Path, framework: str
) -> None:
    model = subject(tmp_path, framework)
    local = create(model)
    local.train(part(0, 20))
    with arranged(2, "sync") as (_, place):
        first = OneWorker(model, place, tmp_path, cluster("sync"))
        first.train(0, 10)
        first.strategy.flush()
        second = OneWorker(model, place, tmp_path, cluster("sync"), incarnation=1)
        second.train(10, 20)
        second.strategy.flush()
        close(second.weights(), local.get_weights(), 1e-5)


@pytest.mark.soak
def test_a_round_of_two_with_one_worker_is_the_mean_of_two_minibatches(tmp_path: Path) -> None:
    model = subject(tmp_path, "torch")
    serial: Any = create(model)
    for number in range(0, 10, 2):
        one, other = (gradients(serial, rows.features, rows.labels).values for rows in _two(number))
        _take_step(serial, {name: _mean(one[name], other[name]) for name in one})
    with arranged(2, "sync", grads_to_wait=2) as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("sync", grads_to_wait=2))
        worker.train(0, 10)
        worker.strategy.flush()
        assert worker.strategy.step == 5
        close(worker.weights(), serial.get_weights(), 1e-5)


def _two(number: int) -> list[Minibatches]:
    return [part(number, number + 1), part(number + 1, number + 2)]


def _mean(one: Any, other: Any) -> Any:
    if not isinstance(one, RowGradients):
        return (one + other) / 2
    ids, sums = sum_parts([(one.ids, one.values), (other.ids, other.values)])
    return RowGradients(ids, sums / 2)


def _take_step(adapter: Any, mean: dict[str, Any]) -> None:
    for name, parameter in adapter.model.named_parameters():
        parameter.grad = torch.from_numpy(mean[name])
    adapter.optimizer.step()
    adapter.tables.update({name: mean[name] for name in adapter.tables.tables}, adapter.learning_rate(0))


def test_a_gradient_that_comes_too_late_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other worker takes a step while this one computes: the result is as of one after the other."""
    model = subject(tmp_path, "torch", replace={"nn.BatchNorm1d(8), nn.Dropout(0.2), ": ""})
    serial = create(model)
    for number in (0, 2, 1):
        serial.train(part(number, number + 1))
    with arranged(2, "sync") as (_, place):
        late, other = (
            OneWorker(model, place, tmp_path, cluster("sync", workers=2), name=name)
            for name in ("worker-0", "worker-1")
        )
        late.train(0, 1)
        end, calls = late.strategy.end, []

        def overtaken(gradients: StepGradients) -> Any:
            calls.append(1)
            if len(calls) == 1:
                other.train(2, 3)
                other.strategy.flush()
            return end(gradients)

        monkeypatch.setattr(late.strategy, "end", overtaken)
        late.train(1, 2)
        late.strategy.flush()
        assert len(calls) == 2
        assert late.strategy.step == 3
        close(late.weights(), serial.get_weights(), 1e-5)


@pytest.mark.parametrize("servers", [1, 2])
def test_a_worker_that_waits_for_another_in_vain_waits_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: int
) -> None:
    """The parameters that come with a confirmation belong to the next minibatch, though the round is still open."""
    with arranged(servers, "sync", grads_to_wait=2) as (_, place):
        both = cluster("sync", workers=2, grads_to_wait=2)
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, both)
        pull, calls = worker.strategy._parameters.pull, []

        def counted(*given: Any, **options: Any) -> Any:
            calls.append(options)
            return pull(*given, **options)

        worker.train(0, 1)
        monkeypatch.setattr(worker.strategy._parameters, "pull", counted)
        worker.train(1, 9)
        assert len(calls) == (1 if servers == 1 else 8)
        worker.strategy.flush()
        assert worker.strategy.step == 5


def test_two_workers_make_rounds_together(tmp_path: Path) -> None:
    with arranged(2, "sync", grads_to_wait=2) as (servers, place):
        workers = [
            OneWorker(
                subject(tmp_path / name, "torch"), place, tmp_path / name, cluster("sync", workers=2, grads_to_wait=2),
                name=name,
            )
            for name in ("worker-0", "worker-1")
        ]  # fmt: skip
        losses: dict[int, np.ndarray] = {}

        def train(number: int) -> None:
            losses[number] = workers[number].train(100 * number, 100 * number + 15)
            workers[number].strategy.flush()

        threads = [threading.Thread(target=train, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert all(len(found) == 15 for found in losses.values())
        versions = [servers.call(server, msg.Status(), msg.Figures)[0].version.step for server in (0, 1)]
        assert versions[0] == versions[1]
        assert 15 <= versions[0] <= 30  # a flush commits what there is
        for worker in workers:
            assert worker.strategy.is_durable(worker.strategy.mark())


@pytest.mark.soak
def test_an_unfinished_round_is_settled_by_a_flush_alone(tmp_path: Path) -> None:
    with arranged(2, "sync", grads_to_wait=3) as (_, place):
        worker = OneWorker(
            subject(tmp_path, "torch"), place, tmp_path, cluster("sync", workers=2, grads_to_wait=3)
        )
        worker.train(0, 2)
        assert not worker.strategy.is_durable(worker.strategy.mark())
        worker.strategy.flush()
        assert worker.strategy.is_durable(worker.strategy.mark())
        assert worker.strategy.step == 1


@pytest.mark.soak
def test_a_revoked_lease_gets_no_ticket(tmp_path: Path) -> None:
    with arranged(2, "sync") as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("sync"))
        worker.train(0, 1)
        servers.call(0, msg.Revoke(0, (2,)), msg.Revoked)
        before = worker.adapter.get_buffers()
        with pytest.raises(VoidError):
            worker.train(1, 5)
        close(worker.adapter.get_buffers(), before, 0.0)  # nor does it count for normalisation
        worker.train(5, 7)
        worker.strategy.flush()
        assert worker.strategy.step == 3


def test_what_landed_and_was_revoked_is_waited_for_by_nobody(tmp_path: Path) -> None:
    with arranged(2, "sync", grads_to_wait=2) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("sync", grads_to_wait=2))
        worker.train(0, 1)
        servers.call(0, msg.Revoke(0, (1,)), msg.Revoked)
        worker.strategy.flush()
        assert worker.strategy.step == 0

        worker.train(1, 2)
        servers.call(0, msg.Revoke(0, (2, 3)), msg.Revoked)
        with pytest.raises(VoidError):
            worker.train(2, 3)
        worker.train(3, 5)
        worker.strategy.flush()
        assert worker.strategy.step == 1


@pytest.mark.soak
def test_a_round_that_is_not_as_full_as_was_thought_is_filled(tmp_path: Path) -> None:
    with arranged(2, "sync", grads_to_wait=3) as (servers, place):
        worker = OneWorker(subject(tmp_path, "torch"), place, tmp_path, cluster("sync", grads_to_wait=3))
        worker.train(0, 2)
        servers.call(0, msg.Revoke(0, (1,)), msg.Revoked)
        worker.train(2, 5)
        worker.strategy.flush()
        assert worker.strategy.step == 1
