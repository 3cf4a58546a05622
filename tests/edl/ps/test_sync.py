"""Sync: rounds over several servers, by real calls."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.errors import JobError
from edl.ps import messages as msg
from edl.ps.channel import Pending
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Mode, Version
from edl.ps.messages import GenerationError, NotReadyError
from edl.ps.peers import Peers
from edl.rpc.channel import AwayError
from tests.edl.ps import servers as serving
from tests.edl.ps.servers import (
    ADAM,
    SECONDS,
    SYNC,
    Servers,
    definition,
    first_values,
    progress,
    training_servers,
)

MODEL = definition()
TWO = Mode("sync", 2)
IDS = np.arange(20)


def step(running: Servers) -> int:
    return int(running.call(0, msg.Status(), msg.Figures)[0].version.step)


def ask(running: Servers, instance: str, lease: int, at: int, *, wait: float = 0.0) -> msg.Ticketed:
    asked = msg.Ticket(0, instance, 0, lease, Version(0, 0, at), wait)
    answer: msg.Ticketed = running.call(0, asked, msg.Ticketed)[0]
    return answer


def begin(running: Servers, instance: str, lease: int, at: int) -> Pending:
    """Ask for a ticket, and wait for it elsewhere."""
    return running.channels[0].begin(
        msg.Ticket(0, instance, 0, lease, Version(0, 0, at), SECONDS), (), SECONDS
    )


def confirm(running: Servers, ticket: int) -> msg.Confirmed:
    answer: msg.Confirmed = running.call(0, msg.Confirm(0, ticket), msg.Confirmed)[0]
    return answer


def committed(running: Servers, at: int) -> None:
    """Wait until every server has that step."""
    for index in range(len(running.servers)):
        pulled, _ = running.call(index, msg.Pull(0, at_least=at, wait_secs=SECONDS), msg.Pulled)
        assert pulled.version.step == at


def push(running: Servers, instance: str, ticket: int, value: float, rows: int = 10, **more: object) -> None:
    gradients = {name: np.full_like(first, value) for name, first in first_values().items()}
    blocks = {"items": (IDS, np.full((len(IDS), 4), value, np.float32))}
    running.push(MODEL, gradients, blocks, instance=instance, ticket=ticket, count=rows, rate=1.0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 3])
def test_one_worker_steps_round_by_round(count: int) -> None:
    with training_servers(count, MODEL, SYNC) as servers:
        for number in range(3):
            answer = ask(servers, "worker-0", 1, number)
            push(servers, "worker-0", answer.ticket, 0.5)
            assert not confirm(servers, answer.ticket).stale
            committed(servers, number + 1)
        found = servers.pull(MODEL, {"items": IDS})
    np.testing.assert_array_equal(found["items"], np.full((20, 4), -1.5, np.float32))
    np.testing.assert_allclose(found["kernel"], first_values()["kernel"] - 1.5, rtol=1e-6)


def test_a_push_moves_nothing_before_its_round() -> None:
    with training_servers(2, MODEL, TWO) as servers:
        first = ask(servers, "worker-0", 1, 0)
        push(servers, "worker-0", first.ticket, 1.0)
        confirm(servers, first.ticket)
        found = servers.pull(MODEL, {"items": IDS})
        assert not found["items"].any() and step(servers) == 0


def test_a_round_is_the_mean_weighted_by_rows() -> None:
    with training_servers(2, MODEL, TWO) as servers:
        tickets = [ask(servers, name, lease, 0).ticket for lease, name in enumerate(("a", "b"), start=1)]
        for name, ticket, value, rows in zip("ab", tickets, (1.0, 5.0), (30, 10), strict=True):
            push(servers, name, ticket, value, rows)
            confirm(servers, ticket)
        committed(servers, 1)
        found = servers.pull(MODEL, {"items": IDS})
    np.testing.assert_array_equal(found["items"], np.full((20, 4), -2, np.float32))
    np.testing.assert_allclose(found["kernel"], first_values()["kernel"] - 2, rtol=1e-6)


def test_rows_that_one_of_two_pushed_move_by_its_share() -> None:
    with training_servers(1, MODEL, TWO) as servers:
        flat = np.zeros(0, np.float32)
        for number, ids in enumerate(([1, 2], [2, 3])):
            ticket = ask(servers, "ab"[number], number + 1, 0).ticket
            header = msg.Push(0, "ab"[number], 0, 1, 1.0, 10, ("items",), ticket=ticket)
            servers.call(0, header, msg.Pushed, [flat, np.array(ids), np.ones((2, 4), np.float32)])
            confirm(servers, ticket)
        committed(servers, 1)
        found = servers.pull(MODEL, {"items": np.array([1, 2, 3])})
    assert found["items"][:, 0].tolist() == [-0.5, -1, -0.5]


def test_who_asks_too_late_is_stale_and_who_waits_hears_it_when_the_round_ends() -> None:
    with training_servers(2, MODEL, SYNC) as servers:
        first = ask(servers, "a", 1, 0)
        assert ask(servers, "b", 2, 0).outcome == "wait"
        waiting = begin(servers, "b", 2, 0)
        push(servers, "a", first.ticket, 1.0)
        confirm(servers, first.ticket)
        answer, _ = waiting.result(msg.Ticketed)
        assert (answer.outcome, answer.version.step) == ("stale", 1)


def test_a_worker_that_dies_between_its_pushes_is_in_no_round() -> None:
    """A9: what it pushed to one server is dropped everywhere, and another one's gradient takes its place."""
    with training_servers(2, MODEL, TWO) as servers:
        dead, other = ask(servers, "a", 1, 0).ticket, ask(servers, "b", 2, 0).ticket
        flat = np.full(servers.servers[0]._of(0).require_store().layout.size, 100, np.float32)
        header = msg.Push(0, "a", 0, 1, 1.0, 10, ticket=dead, progress=progress(1, 10))
        servers.call(0, header, msg.Pushed, [flat])
        push(servers, "b", other, 1.0, progress=progress(2, 10))
        confirm(servers, other)
        waiting = begin(servers, "c", 3, 0)
        revoked, _ = servers.call(0, msg.Revoke(0, (1,)), msg.Revoked)
        assert revoked.progress == ()
        third, _ = waiting.result(msg.Ticketed)
        assert third.outcome == "granted"
        push(servers, "c", third.ticket, 3.0, progress=progress(3, 10))
        confirm(servers, third.ticket)
        committed(servers, 1)
        found = servers.pull(MODEL, {"items": IDS})
        assert confirm(servers, dead).stale
        assert ask(servers, "a", 1, 1).outcome == "revoked"
        told, _ = servers.call(0, msg.Revoke(0, (2, 3)), msg.Revoked)
    np.testing.assert_array_equal(found["items"], np.full((20, 4), -2, np.float32))
    np.testing.assert_allclose(found["kernel"], first_values()["kernel"] - 2, rtol=1e-6)
    assert told.progress == (progress(2, 10), progress(3, 10))


def test_what_landed_under_a_revoked_lease_counts_for_nothing() -> None:
    with training_servers(2, MODEL, TWO) as servers:
        ticket = ask(servers, "a", 1, 0).ticket
        push(servers, "a", ticket, 1.0, progress=progress(1, 10))
        confirm(servers, ticket)
        assert servers.call(0, msg.Revoke(0, (1,)), msg.Revoked)[0].progress == ()
        flushed, _ = servers.call(0, msg.Flush(0, SECONDS), msg.Confirmed)
        assert flushed.version.step == 0


def test_a_flush_commits_what_landed() -> None:
    with training_servers(2, MODEL, TWO) as servers:
        ticket = ask(servers, "a", 1, 0).ticket
        push(servers, "a", ticket, 1.0)
        confirm(servers, ticket)
        flushed, _ = servers.call(0, msg.Flush(0, SECONDS), msg.Confirmed)
        assert flushed.version.step == 1
        committed(servers, 1)
        again, _ = servers.call(0, msg.Flush(0, SECONDS), msg.Confirmed)
        assert again.version.step == 1


def test_repeated_calls_change_nothing() -> None:
    with training_servers(2, MODEL, SYNC) as servers:
        ticket = ask(servers, "a", 1, 0).ticket
        assert ask(servers, "a", 1, 0).ticket == ticket
        for _ in range(2):
            push(servers, "a", ticket, 1.0, sequence=1)
        assert not confirm(servers, ticket).stale
        committed(servers, 1)
        assert not confirm(servers, ticket).stale
        push(servers, "a", ticket, 1.0, sequence=1)
        servers.call(1, msg.Commit(0, 1, (ticket,)), msg.Done)
        next_ticket = ask(servers, "a", 1, 1).ticket
        push(servers, "a", next_ticket, 1.0, sequence=2)
        confirm(servers, next_ticket)
        committed(servers, 2)
        found = servers.pull(MODEL, {"items": IDS})
    assert (found["items"] == -2).all()


def test_state_and_private_and_progress_come_with_the_round() -> None:
    with training_servers(1, MODEL, TWO) as servers:
        ticket = ask(servers, "a", 1, 0).ticket
        state = np.array([3, 4], np.float32)
        push(servers, "a", ticket, 1.0, state=state, private=b"mine", progress=progress(1, 10))
        confirm(servers, ticket)
        pull = msg.Pull(0, state=True, instance="a")
        pulled, (before,) = servers.call(0, pull, msg.Pulled)
        assert (before.tolist(), pulled.private) == (first_values()["mean"].tolist(), b"")
        servers.call(0, msg.Flush(0, SECONDS), msg.Confirmed)
        pulled, (after,) = servers.call(0, pull, msg.Pulled)
        assert (after.tolist(), pulled.private) == ([3, 4], b"mine")


def test_a_push_without_a_ticket_is_refused() -> None:
    with training_servers(1, MODEL, SYNC) as servers, pytest.raises(JobError, match="needs a ticket"):
        push(servers, "a", 0, 1.0)


def test_rounds_are_kept_by_server_0_of_a_synchronous_job_alone() -> None:
    with training_servers(2, MODEL, SYNC) as servers, pytest.raises(JobError, match="server 0"):
        servers.call(1, msg.Flush(0), msg.Confirmed)
    with training_servers(1, MODEL) as servers, pytest.raises(JobError, match="synchronous"):
        servers.call(0, msg.Flush(0), msg.Confirmed)


class Away(Peers):
    """Other servers that are lost."""

    def __init__(self) -> None:
        super().__init__((), "")
        self.asked = threading.Event()

    def ask(self, *_: object) -> list[Any]:
        self.asked.set()
        raise AwayError("lost")


def test_a_round_of_no_gradients_is_refused() -> None:
    with serving.servers(1) as servers, pytest.raises(JobError, match="cannot wait for 0 gradients"):
        servers.arrange(Mode("sync", 0))


def test_a_server_that_is_lost_ends_the_generation_and_nobody_waits_on() -> None:
    with training_servers(2, MODEL, SYNC) as servers:
        ticket = ask(servers, "a", 1, 0).ticket
        push(servers, "a", ticket, 1.0)
        servers.replace(1)
        servers.servers[0]._peers = others = Away()
        confirm(servers, ticket)
        assert others.asked.wait(SECONDS)
        waiting = begin(servers, "b", 2, 0)
        revoking = servers.channels[0].begin(msg.Revoke(0, (1,)), (), SECONDS)
        servers.generation = 1
        servers.arrange(SYNC, lives=(0, 1))
        for pending, kind in ((waiting, msg.Ticketed), (revoking, msg.Revoked)):
            with pytest.raises((GenerationError, NotReadyError)):  # the latter, where it came in between
                pending.result(kind)
        servers.define(MODEL)
        servers.open()
        found = servers.pull(MODEL, {"items": IDS})
        assert not found["items"].any() and step(servers) == 0


@pytest.mark.soak
def test_a_cut_lies_between_two_rounds_on_all_servers(tmp_path: Path) -> None:
    model = definition(ADAM)
    stopped = threading.Event()

    def train() -> None:
        at = 0
        while not stopped.is_set():
            ticket = ask(servers, "a", 1, at).ticket
            push(servers, "a", ticket, 1.0, progress=progress(1, at + 1, 10**9))
            confirm(servers, ticket)
            at += 1
            committed(servers, at)

    with training_servers(3, model, SYNC) as servers:
        thread = threading.Thread(target=train)
        thread.start()
        try:
            for number in range(8):
                folder = tmp_path / f"{number}"
                taken, _ = servers.call(0, msg.TakeCheckpoint(0, str(folder), wait=True), msg.CheckpointTaken)
                manifest = manifests.read_manifest(folder)
                restored = [
                    manifests.restore(folder, manifest, index, 3, same_leases=False) for index in range(3)
                ]
                assert {start.step for start in restored} == {taken.version.step}
                assert {start.store.flat.steps for start in restored} == {taken.version.step}
                assert sum(told.rows for told in taken.progress) == taken.version.step
        finally:
            stopped.set()
            thread.join(SECONDS)


def test_a_lease_of_an_earlier_generation_gets_no_ticket() -> None:
    """Its worker has the new servers' addresses, and does not know yet that its task is another one's."""
    with training_servers(1, MODEL, SYNC) as servers:
        servers.generation = 1
        order = msg.Arrange(0, 1, 0, servers.addresses, SYNC, leased=5, valid=(5,))
        servers.call(0, order, msg.Arranged)
        servers.define(MODEL)
        servers.open()
        answers = [
            servers.call(0, msg.Ticket(1, f"worker-{lease}", 0, lease, Version(1), 0.0), msg.Ticketed)[0]
            for lease in (4, 5)
        ]
    assert [answer.outcome for answer in answers] == ["revoked", "granted"]
