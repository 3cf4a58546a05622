"""The last checkpoint of servers that others follow: what is in it, and what is refused after it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from edl.errors import ClusterError
from edl.ps import messages as msg
from edl.ps import server
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Mode, Version
from edl.ps.messages import NotReadyError
from tests.edl.ps.servers import (
    SECONDS,
    SYNC,
    Servers,
    definition,
    first_values,
    progress,
    servers,
    training_servers,
)

MODEL = definition()
ITEMS = np.arange(200)
ROWS = {"items": (ITEMS, np.ones((200, 4), np.float32))}


def gradients() -> dict[str, np.ndarray]:
    return {name: np.ones_like(value) for name, value in first_values().items()}


def push(running: Servers, sequence: int, *, instance: str = "worker-0", ticket: int = 0) -> None:
    running.push(
        MODEL, gradients(), ROWS, instance=instance, sequence=sequence, rate=0.125, ticket=ticket,
        progress=progress(sequence, 10),
    )  # fmt: skip


def push_to_one(running: Servers, index: int, sequence: int, instance: str = "worker-1") -> None:
    """Push to one server, as a worker does that dies, or waits, before it has reached the others."""
    header = msg.Push(0, instance, 0, sequence, 0.125, 10, progress=progress(sequence, 10))
    running.call(index, header, msg.Pushed, [np.empty(0, np.float32)])


def close(running: Servers, name: str) -> msg.CheckpointTaken:
    """Take the last checkpoint; the manifest is written as by the master."""
    taken, _ = running.call(0, msg.TakeCheckpoint(0, name, last=True), msg.CheckpointTaken)
    assert isinstance(taken, msg.CheckpointTaken)
    return taken


def complete(running: Servers, name: str, taken: msg.CheckpointTaken) -> None:
    shards = []
    for index in range(len(running.servers)):
        while name not in (written := running.call(index, msg.Status(), msg.Figures)[0].written):
            pass
        shards.append(written[name])
    manifest = manifests.manifest_of(name, taken.version, Mode(), shards)
    manifests.write_manifest(running.store, name, manifest)


def seals(running: Servers) -> list[str]:
    return [running.call(i, msg.Status(), msg.Figures)[0].sealed for i in range(len(running.servers))]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2)])
def test_every_row_has_each_update_once_on_the_servers_that_follow(
    tmp_path: Path, before: int, after: int
) -> None:
    name = str(tmp_path / "last")
    with training_servers(before, MODEL) as old, servers(after) as new:
        for sequence in (1, 2, 3):
            push(old, sequence)
        taken = close(old, name)
        with pytest.raises(NotReadyError, match="waits for other servers"):
            push(old, 4)
        complete(old, name, taken)
        new.generation = 1
        new.arrange(restore=name)
        for sequence in (4, 5):
            push(new, sequence)
        found = new.pull(MODEL, {"items": ITEMS})
    assert (found["items"] == -0.125 * 5).all()
    np.testing.assert_allclose(found["kernel"], first_values()["kernel"] - 0.125 * 5, rtol=1e-6)
    assert {part.task.attempt for part in taken.progress} == {1, 2, 3}


def test_a_push_that_some_servers_have_is_waited_for_where_its_worker_repeats_it(tmp_path: Path) -> None:
    with training_servers(2, MODEL) as running:
        push_to_one(running, 1, 1)
        taken: list[msg.CheckpointTaken] = []
        closing = threading.Thread(target=lambda: taken.append(close(running, str(tmp_path / "last"))))
        closing.start()
        while not all(seals(running)):
            pass
        while True:  # the worker repeats it where it is refused
            try:
                push_to_one(running, 0, 1)
                break
            except NotReadyError:
                pass
        closing.join(SECONDS)
        assert [running.call(i, msg.Status(), msg.Figures)[0].version.step for i in (0, 1)] == [1, 1]
        assert taken[0].unfinished == {}


def test_a_push_that_its_worker_does_not_finish_is_said_and_never_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REPEAT_SECS", 0.01)
    with training_servers(2, MODEL) as running:
        push_to_one(running, 1, 7)
        taken = close(running, str(tmp_path / "last"))
        assert taken.unfinished == {"worker-1": 0}
        assert taken.progress == (progress(7, 10),)
        with pytest.raises(NotReadyError):  # it would be in no checkpoint
            push_to_one(running, 0, 7)


def test_a_push_that_was_lost_with_a_server_puts_nothing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REPEAT_SECS", 0.01)
    earlier, last, again = (str(tmp_path / name) for name in ("1", "2", "3"))
    with training_servers(2, MODEL) as running:
        complete(running, earlier, running.call(0, msg.TakeCheckpoint(0, earlier), msg.CheckpointTaken)[0])
        push(running, 1)
        running.replace(1)
        running.arrange(restore=earlier, lives=(0, 1))
        taken = close(running, last)  # the worker evaluates, and pushes nothing meanwhile
        assert (taken.unfinished, taken.progress) == ({}, (progress(1, 10),))
        for index in (0, 1):
            running.call(index, msg.Reopen(0, last), msg.Done)
        push(running, 2)
        push_to_one(running, 0, 3, "worker-0")
        assert close(running, again).unfinished == {"worker-0": 0}


def test_servers_are_reopened_if_their_last_checkpoint_came_to_nothing(tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / name) for name in ("1", "2", "3"))
    with training_servers(2, MODEL) as running:
        close(running, second)
        for name in (first, second):
            assert seals(running) == [second, second]
            for index in (0, 1):
                running.call(index, msg.Reopen(0, name), msg.Done)
        assert seals(running) == ["", ""]
        push(running, 1)
        close(running, third)
        with pytest.raises(ClusterError, match="has followed"):  # a call that was long on its way
            close(running, first)
        assert seals(running) == [third, third]


def test_in_sync_no_round_is_committed_after_it(tmp_path: Path) -> None:
    name = str(tmp_path / "last")
    with training_servers(2, MODEL, SYNC) as running:
        taken = close(running, name)
        version = Version(0, 0, 0)
        ticket, _ = running.call(0, msg.Ticket(0, "worker-0", 0, 1, version, 0.0), msg.Ticketed)
        assert ticket.outcome == "granted"
        push(running, 1, ticket=ticket.ticket)
        running.call(0, msg.Confirm(0, ticket.ticket), msg.Confirmed)
        answer, _ = running.call(0, msg.Flush(0, 0.05), msg.Confirmed)
        assert (answer.idle, answer.version.step, taken.version.step) == (False, 0, 0)
        running.call(0, msg.Reopen(0, name), msg.Done)
        answer, _ = running.call(0, msg.Flush(0, SECONDS), msg.Confirmed)
        assert (answer.idle, answer.version.step) == (True, 1)


def test_a_server_that_is_to_end_leaves_at_once_when_the_master_says_that_others_have_followed() -> None:
    with training_servers(1, MODEL) as running:
        running.call(0, msg.Status(), msg.Figures)
        waiting = threading.Thread(target=running.servers[0].wait_for_another, args=(10 * SECONDS,))
        waiting.start()
        while not running.call(0, msg.Status(), msg.Figures)[0].leaving:
            pass
        running.call(0, msg.Retire(), msg.Done)
        waiting.join(SECONDS)
        assert not waiting.is_alive()


def test_a_server_that_is_to_end_says_so_and_goes_on_until_another_follows() -> None:
    with training_servers(1, MODEL) as running:
        ending = running.servers[0]
        running.call(0, msg.Status(), msg.Figures)
        waiting = threading.Thread(target=ending.wait_for_another, args=(SECONDS,))
        waiting.start()
        while not running.call(0, msg.Status(), msg.Figures)[0].leaving:
            pass
        push(running, 1)
        assert waiting.is_alive()
        ending.wait_for_another(0.0)  # the master looks no more
        ending.close()
        waiting.join(SECONDS)
        assert not waiting.is_alive()
