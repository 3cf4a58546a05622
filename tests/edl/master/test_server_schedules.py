"""Thousands of random schedules of jobs with parameter servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Literal

import pytest

from edl.ps.checkpoint.content import Mode
from edl.spec import Training
from edl.tasks.job_state import Plan
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from tests.edl.master.blocks import blocks, drawn
from tests.edl.master.server_schedule import PIECE, Schedule, run

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


def rows_of_piece(start: int) -> int:
    return min(PIECE, (start // LEAST_ROWS + 1) * LEAST_ROWS - start, ROWS - start)


def pieces(world: Schedule, server: int) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for (epoch, _, start), times in world.machines[server].rows.items():
        found[epoch, start] += times
    return found


def check_the_job(world: Schedule) -> None:
    state = world.master.job.state
    assert world.master.state.failed is None
    assert state.rows == 2 * ROWS
    assert [(row.epoch, row.loss) for row in state.curve.rows if row.final] == [(1, 2.0), (2, 2.0)]
    assert world.master.state.done["export"] == 1
    assert not world.master.state.leases
    assert not world.master.state.revoking


def check_sync(seed: int) -> None:
    world = run(seed, PLAN, Mode("sync"))
    check_the_job(world)
    assert pieces(world, 0) == pieces(world, 1) == every_piece_once()


def check_memory(seed: int, mode: Literal["async", "sync"]) -> list[str]:
    """Return what the master notes of a job with checkpoints in memory."""
    world = run(seed, PLAN, Mode(mode), servers=3, copies="neighbours")
    check_the_job(world)
    if mode == "sync":
        assert all(pieces(world, server) == every_piece_once() for server in range(3))
    return world.notes


def check_async(seed: int) -> bool:
    """Return whether a worker died between its two pushes; no server dies."""
    world = run(seed, PLAN, Mode("async"), deaths=False, halves=True)
    check_the_job(world)
    one, other = pieces(world, 0), pieces(world, 1)
    assert one | other == every_piece_once()
    return one != other


def check_lost_servers(seed: int) -> int:
    """Return how many pieces servers lack."""
    world = run(seed, PLAN, Mode("async"), servers=3, halves=True)
    check_the_job(world)
    found = [pieces(world, server) for server in range(3)]
    assert all(max(each.values()) == 1 for each in found)
    return sum((every_piece_once() - each).total() for each in found)


def check_update_logs(seed: int, servers: int) -> tuple[bool, bool]:
    """Return whether a server lacks a gradient of a worker that died, and whether a log was read."""
    world = run(seed, PLAN, Mode("async", durable_updates="process"), servers=servers, halves=True)
    check_the_job(world)
    assert world.acknowledged
    assert world.servers.losses == world.servers.torn
    if not all(machine.arranged for machine in world.machines):  # killed when the job was as good as over
        return False, False
    found = [pieces(world, server) for server in range(servers)]
    generation = world.master.state.generation  # one begins if a server dies before there is a checkpoint
    acknowledged = Counter(
        {(epoch, start): 1 for at, epoch, _, start in world.acknowledged if at == generation}
    )
    assert all(acknowledged <= each <= every_piece_once() for each in found)
    assert set().union(*found) == set(every_piece_once())
    torn = set().union(*(every_piece_once() - each for each in found))
    assert world.servers.torn[1] == sum(rows_of_piece(start) for _, start in torn)
    return any(each != every_piece_once() for each in found), any(
        "in its log" in note for note in world.notes
    )


def check_single_server(seed: int) -> None:
    world = run(seed, PLAN, Mode("async"), servers=1, workers=1)
    check_the_job(world)
    assert pieces(world, 0) == every_piece_once()


def check_changes(seed: int, mode: Mode, *, deaths: bool, copies: Literal["files", "neighbours"]) -> bool:
    """Return whether other servers have followed. Nothing that was acknowledged is lost but with a server of async."""
    world = run(seed, PLAN, mode, deaths=deaths, halves=mode.kind == "async", copies=copies, changes=True)
    check_the_job(world)
    if not all(machine.arranged for machine in world.machines):  # killed when the job was as good as over
        return False
    found = [pieces(world, server) for server in range(len(world.servers))]
    assert all(each <= every_piece_once() for each in found)
    if mode.kind == "sync":
        assert all(each == every_piece_once() for each in found)
    if mode.kind == "sync" or mode.logs_updates or not deaths:
        assert set().union(*found) == set(every_piece_once())
        assert all(set(every_piece_once() - each) <= world.abandoned for each in found)
        for generation, last in world.last_checkpoints.items():
            acknowledged = {tuple(piece) for at, *piece in world.acknowledged if at == generation}
            assert all(acknowledged <= set(rows) for rows in last.rows)
            halves = set().union(*last.rows).difference(set(last.rows[0]).intersection(*last.rows))
            assert {(epoch, start) for epoch, _, start in halves} <= world.abandoned
    return bool(world.last_checkpoints)


CHANGES = {
    "changes-sync": partial(check_changes, mode=Mode("sync"), deaths=True, copies="files"),
    "changes-async": partial(check_changes, mode=Mode("async"), deaths=False, copies="files"),
    "changes-lost": partial(check_changes, mode=Mode("async"), deaths=True, copies="files"),
    "changes-memory": partial(check_changes, mode=Mode("sync"), deaths=True, copies="neighbours"),
    "changes-logs": partial(
        check_changes, mode=Mode("async", durable_updates="process"), deaths=True, copies="files"
    ),
}
CHECKS: dict[str, Callable[[int], object]] = {
    "sync": check_sync,
    "memory-async": partial(check_memory, mode="async"),
    "memory-sync": partial(check_memory, mode="sync"),
    "async": check_async,
    "lost-servers": check_lost_servers,
    "update-logs-1": partial(check_update_logs, servers=1),
    "update-logs-3": partial(check_update_logs, servers=3),
    "single-server": check_single_server,
    **CHANGES,
}


@blocks(50, always=1)
def test_in_sync_every_gradient_is_in_what_is_exported_once_whoever_dies(block: int) -> None:
    drawn("sync", check_sync, block)


@blocks(15, always=1)
@pytest.mark.parametrize("mode", [pytest.param("async", marks=pytest.mark.soak), "sync"])
def test_a_checkpoint_in_memory_is_gone_back_to_only_where_every_shard_is(
    mode: Literal["async", "sync"], block: int
) -> None:
    notes = drawn(f"memory-{mode}", partial(check_memory, mode=mode), block)
    if block == 0:  # there are blocks without such a death
        said = "\n".join(chain.from_iterable(notes))
        assert "and with it the checkpoint in memory" in said
        assert "resumes from" in said


@pytest.mark.soak
@blocks(15, always=1)
def test_in_async_a_worker_that_dies_or_is_given_up_costs_half_a_gradient_at_most(block: int) -> None:
    assert any(drawn("async", check_async, block))  # some die between their two pushes


@blocks(15, always=1)
def test_in_async_no_gradient_is_on_any_server_twice_whoever_dies_between_two_pushes(block: int) -> None:
    missing = drawn("lost-servers", check_lost_servers, block)
    assert sum(missing)  # what a server lost that was replaced alone, and the other half of a gradient


@blocks(15, always=1)
@pytest.mark.parametrize("servers", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_servers_with_update_logs_lose_nothing_that_they_acknowledged_whoever_dies(
    servers: int, block: int
) -> None:
    found = drawn(f"update-logs-{servers}", partial(check_update_logs, servers=servers), block)
    # Every server has all gradients but the gradients of workers that died before every server had them.
    assert any(incomplete for incomplete, _ in found) == (servers > 1)
    assert any(noted for _, noted in found)


@pytest.mark.soak
@blocks(10, always=1)
def test_a_single_server_takes_the_job_back_with_it(block: int) -> None:
    drawn("single-server", check_single_server, block)


@pytest.mark.variants(1)
@blocks(15, always=1)
@pytest.mark.parametrize(
    "kind",
    [
        "changes-sync",
        "changes-logs",
        *(pytest.param(f"changes-{kind}", marks=pytest.mark.soak) for kind in ("async", "lost", "memory")),
    ],
)
def test_when_the_servers_change_every_gradient_counts_once_whoever_dies(kind: str, block: int) -> None:
    assert any(drawn(kind, CHANGES[kind], block))
