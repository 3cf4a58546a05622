"""Cuts in memory: pieces of shards, and servers that get theirs back from the ones beside them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from edl.errors import JobError, SpecError
from edl.ps import messages as msg
from edl.ps.checkpoint import manifests, shard_file
from edl.ps.checkpoint.content import Manifest, Mode, Shard, Version
from edl.ps.checkpoint.replication import HeldShard, ShardCache
from edl.rpc.channel import AwayError
from tests.edl.ps.servers import ADAM, ASYNC, SYNC, TABLES, Servers, definition, servers, training_servers

MODEL = definition(ADAM)
NOBODY = "127.0.0.1:1"
EVERY = {"users": np.arange(-20, 60), "items": np.array([3, 2**40, -1, 77])}
DATA = np.arange(100, dtype=np.uint8)
SHARD = Shard(1, "server-1.safetensors", len(DATA), zlib.crc32(DATA.data))


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_file, "PIECE", 1000)


@pytest.fixture
def running() -> Iterator[Servers]:
    with training_servers(3, MODEL) as made:
        for number in range(3):
            step(made, number)
        yield made


def step(of: Servers, number: int, sequence: int = 0, ticket: int = 0) -> None:
    rng = np.random.default_rng(number)
    gradients = {one.name: rng.normal(size=one.shape).astype(np.float32) for one in MODEL.dense}
    rows = {
        spec.name: (EVERY[spec.name], rng.normal(size=(len(EVERY[spec.name]), spec.dim)).astype(np.float32))
        for spec in TABLES
    }
    of.push(MODEL, gradients, rows, state=np.ones(2, np.float32), sequence=sequence, ticket=ticket)


def written(of: Servers, index: int, name: str) -> Shard:
    while True:
        figures, _ = of.call(index, msg.Status(), msg.Figures)
        if name in figures.written:
            found: Shard = figures.written[name]
            return found


def checkpoint(of: Servers, name: str, *kept: str, mode: Mode = ASYNC) -> Manifest:
    taken, _ = of.call(
        0, msg.TakeCheckpoint(of.generation, name, memory=True, kept=kept), msg.CheckpointTaken
    )
    found = [written(of, index, name) for index in range(len(of.servers))]
    return manifests.manifest_of(name, taken.version, mode, found)


def held(of: Servers, name: str) -> dict[int, set[int]]:
    """Return the servers whose shards of the cut each server has."""
    count = range(len(of.servers))
    memories = {server: of.servers[server]._memory for server in count}
    return {
        server: {index for index in count if memory.get(name, index)} for server, memory in memories.items()
    }


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


# Memory ------------------------------------------------------------------------------------------------------


def test_pieces_become_a_shard_however_often_they_come() -> None:
    memory = ShardCache()
    for start in (0, 40, 0, 40, 80, 80):
        assert memory.get("1", 1) is None or start == 80
        memory.add("1", SHARD, start, DATA[start : start + 40])
    found = memory.get("1", 1)
    assert found is not None
    assert (found.shard, found.data.tobytes()) == (SHARD, DATA.tobytes())


@pytest.mark.parametrize(("start", "size"), [(40, 40), (-1, 40), (0, 101)])
def test_a_piece_that_does_not_fit_is_refused(start: int, size: int) -> None:
    with pytest.raises(SpecError, match="out of order"):
        ShardCache().add("1", SHARD, start, np.zeros(size, np.uint8))


def test_a_shard_that_came_damaged_is_not_kept_and_may_come_again() -> None:
    memory = ShardCache()
    with pytest.raises(SpecError, match="damaged"):
        memory.add("1", SHARD, 0, DATA[::-1])
    assert memory.get("1", 1) is None
    memory.add("1", SHARD, 0, DATA)
    assert memory.get("1", 1) is not None


def test_earlier_cuts_are_forgotten_but_for_those_that_are_kept() -> None:
    memory = ShardCache()
    for name in ("1", "2", "3", "4"):
        memory.put(name, HeldShard(SHARD, DATA))
    memory.add("0", SHARD, 0, DATA[:40])
    memory.forget("3", ["2"])
    assert [name for name in "1234" if memory.get(name, 1)] == ["2", "3", "4"]
    with pytest.raises(SpecError, match="out of order"):
        memory.add("0", SHARD, 40, DATA[40:])


# Servers -----------------------------------------------------------------------------------------------------


def test_every_shard_is_with_its_server_and_the_one_after_it(running: Servers) -> None:
    manifest = checkpoint(running, "1")
    assert [shard.index for shard in manifest.shards] == [0, 1, 2]
    assert held(running, "1") == {0: {0, 2}, 1: {1, 0}, 2: {2, 1}}
    assert all(shard.bytes > 1000 for shard in manifest.shards)  # several pieces


@pytest.mark.soak
def test_the_last_two_cuts_stay(running: Servers) -> None:
    for name, *kept in (["1"], ["2", "1"], ["3", "2"]):
        checkpoint(running, name, *kept)
    assert not any(held(running, "1").values())
    assert held(running, "2") == held(running, "3") == {0: {0, 2}, 1: {1, 0}, 2: {2, 1}}


@pytest.mark.variants(2)
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_servers_successor_has_its_rows_slots_and_memory_of_pushes(
    running: Servers, lost: int
) -> None:
    step(running, 3, sequence=9)
    manifest = checkpoint(running, "1")
    before = running.pull(MODEL, EVERY)
    running.replace(lost)
    lives = [int(index == lost) for index in range(3)]
    running.arrange(restore="1", lives=lives, manifest=manifest)
    same(running.pull(MODEL, EVERY), before)
    step(running, 3, sequence=9)  # its answer was lost
    same(running.pull(MODEL, EVERY), before)
    assert held(running, "1") == {0: {0, 2}, 1: {1, 0}, 2: {2, 1}}
    step(running, 4, sequence=10)
    moved = running.pull(MODEL, EVERY)
    with training_servers(3, MODEL) as others:  # slots: the next step is as if no server had been lost
        for number in range(3):
            step(others, number)
        for number in (3, 4):
            step(others, number, sequence=6 + number)
        same(others.pull(MODEL, EVERY), moved)


@pytest.mark.soak
def test_one_after_another_may_be_lost(running: Servers) -> None:
    manifest = checkpoint(running, "1")
    before = running.pull(MODEL, EVERY)
    lives = [0, 0, 0]
    for lost in (1, 2, 0, 1):
        running.replace(lost)
        lives[lost] += 1
        running.arrange(restore="1", lives=lives, manifest=manifest)
    same(running.pull(MODEL, EVERY), before)


def test_in_sync_all_go_back_together_with_what_they_hold() -> None:
    with training_servers(2, MODEL, SYNC) as running:
        manifest = checkpoint(running, "1", mode=SYNC)
        before = running.pull(MODEL, EVERY)
        ask = msg.Ticket(0, "worker-0", 0, 1, Version(), 10.0)
        ticketed, _ = running.call(0, ask, msg.Ticketed)
        step(running, 0, ticket=ticketed.ticket)
        running.call(0, msg.Confirm(0, ticketed.ticket), msg.Confirmed)
        running.call(0, msg.Flush(0, 10.0), msg.Confirmed)
        assert (running.pull(MODEL, EVERY)["kernel"] != before["kernel"]).any()
        running.replace(1)
        running.generation = 1
        running.arrange(SYNC, "1", [0, 1], manifest)
        same(running.pull(MODEL, EVERY), before)


def test_what_two_neighbours_had_is_lost_and_said_so(running: Servers) -> None:
    manifest = checkpoint(running, "1")
    for lost in (1, 2):
        running.replace(lost)
    order = msg.Arrange(1, 0, 1, running.addresses, ASYNC, "1", manifest)
    with pytest.raises(JobError, match=r"server-1\.safetensors of the checkpoint 1 is not in memory"):
        running.call(1, order, msg.Arranged)
    order = msg.Arrange(2, 0, 1, (NOBODY,) * 3, ASYNC, "1", manifest)
    with pytest.raises(AwayError):
        running.call(2, order, msg.Arranged)


def test_a_shard_that_the_neighbour_does_not_take_is_not_written(
    running: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    order = msg.Arrange(1, 0, 0, (*running.addresses[:2], NOBODY), ASYNC)
    running.call(1, order, msg.Arranged)
    taken = msg.TakeCheckpoint(0, "1", alone=True, memory=True)
    running.channels[1].call(taken, (), msg.CheckpointTaken, 30.0)
    assert written(running, 1, "1").error
    assert "the checkpoint 1 could not be written" in capfd.readouterr().err


def test_a_cut_in_memory_is_of_as_many_servers(running: Servers) -> None:
    manifest = checkpoint(running, "1")
    with servers(2) as others, pytest.raises(JobError, match="with 3 servers, not 2"):
        others.arrange(restore="1", manifest=manifest)


def test_a_worker_does_not_wait_for_a_cut_in_memory(running: Servers) -> None:
    with pytest.raises(JobError, match="by the master"):
        running.call(0, msg.TakeCheckpoint(0, "1", wait=True, memory=True), msg.CheckpointTaken)
