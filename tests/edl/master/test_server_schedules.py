"""Thousands of random schedules of jobs with parameter servers."""

from __future__ import annotations

from collections import Counter

import pytest

from edl.ps.messages import Mode
from edl.spec import Training
from edl.tasks.job_state import Plan
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from tests.edl.master.blocks import blocks
from tests.edl.master.server_world import PIECE, World, run

ROWS = 5 * LEAST_ROWS + 77
PLAN = Plan("train", ROWS, STREAMED_ROWS + 3, Training(epochs=2, batch_size=512))


def every_piece_once() -> Counter[tuple[int, int]]:
    """Epoch, and first row of each push; every task begins with a new one."""
    starts = [
        start
        for first in range(0, ROWS, LEAST_ROWS)
        for start in range(first, min(first + LEAST_ROWS, ROWS), PIECE)
    ]
    return Counter({(epoch, start): 1 for epoch in (1, 2) for start in starts})


def pieces(world: World, server: int) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for (epoch, _, start), times in world.machines[server].rows.items():
        found[epoch, start] += times
    return found


def check_the_job(world: World) -> None:
    state = world.master.job.state
    assert world.master.state.failed is None
    assert state.rows == 2 * ROWS
    assert [(row.epoch, row.loss) for row in state.curve.rows if row.final] == [(1, 2.0), (2, 2.0)]
    assert world.master.state.done["export"] == 1
    assert not world.master.state.leases
    assert not world.master.state.revoking


@blocks(20, always=1)
def test_in_sync_every_gradient_is_in_what_is_exported_once_whoever_dies(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        world = run(seed, PLAN, Mode("sync"))
        check_the_job(world)
        assert pieces(world, 0) == pieces(world, 1) == every_piece_once()


@blocks(6, always=1)
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a_checkpoint_in_memory_is_gone_back_to_only_where_every_shard_is(mode: str, block: int) -> None:
    notes: list[str] = []
    for seed in range(50 * block, 50 * block + 50):
        world = run(seed, PLAN, Mode(mode), servers=3, copies="neighbours")  # type: ignore[arg-type]
        check_the_job(world)
        notes += world.notes
        if mode == "sync":
            assert all(pieces(world, server) == every_piece_once() for server in range(3))
    said = "\n".join(notes)
    assert "and with it the checkpoint in memory" in said
    assert "resumes from" in said


@blocks(6, always=1)
def test_in_async_a_worker_that_dies_or_is_given_up_costs_half_a_gradient_at_most(block: int) -> None:
    halves = 0
    for seed in range(50 * block, 50 * block + 50):
        world = run(seed, PLAN, Mode("async"), deaths=False, halves=True)
        check_the_job(world)
        one, other = pieces(world, 0), pieces(world, 1)
        assert one | other == every_piece_once()
        halves += one != other
    assert halves  # some die between their two pushes


@blocks(6, always=1)
def test_in_async_no_gradient_is_on_any_server_twice_whoever_dies_between_two_pushes(block: int) -> None:
    missing = 0
    for seed in range(50 * block, 50 * block + 50):
        world = run(seed, PLAN, Mode("async"), servers=3, halves=True)
        check_the_job(world)
        for server in range(3):
            found = pieces(world, server)
            assert max(found.values()) == 1
            missing += (every_piece_once() - found).total()
    assert missing  # what a server lost that was replaced alone, and the other half of a gradient


@blocks(6, always=1)
@pytest.mark.parametrize("servers", [1, 3])
def test_servers_with_update_logs_lose_nothing_that_they_acknowledged_whoever_dies(
    servers: int, block: int
) -> None:
    incomplete, notes = 0, Counter[str]()
    for seed in range(50 * block, 50 * block + 50):
        mode = Mode("async", durable_updates="process")
        world = run(seed, PLAN, mode, servers=servers, halves=True)
        check_the_job(world)
        assert world.acknowledged and not any(world.servers.losses)
        found = [pieces(world, server) for server in range(servers)]
        generation = world.master.state.generation  # one begins if a server dies before there is a checkpoint
        acknowledged = Counter(
            {(epoch, start): 1 for at, epoch, _, start in world.acknowledged if at == generation}
        )
        assert all(acknowledged <= each <= every_piece_once() for each in found)
        assert set().union(*found) == set(every_piece_once())
        incomplete += any(each != every_piece_once() for each in found)
        notes.update("in its log" in note for note in world.notes)
    assert bool(incomplete) == (servers > 1)  # gradients of workers that died before every server had them
    assert notes[True]


@blocks(4, always=1)
def test_a_single_server_takes_the_job_back_with_it(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        world = run(seed, PLAN, Mode("async"), servers=1, workers=1)
        check_the_job(world)
        assert pieces(world, 0) == every_piece_once()
