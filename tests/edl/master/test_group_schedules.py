"""Thousands of random schedules of jobs of all-reduce."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from edl.spec import Training
from edl.tasks.job_state import Plan
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from tests.edl.master.blocks import blocks, drawn
from tests.edl.master.group_world import PIECE, Piece, World, run

ROWS = 5 * LEAST_ROWS + 77
PLAN = Plan("train", ROWS, STREAMED_ROWS + 3, Training(epochs=2, batch_size=512))


def every_piece_once() -> Counter[Piece]:
    starts = [
        start
        for first in range(0, ROWS, LEAST_ROWS)
        for start in range(first, min(first + LEAST_ROWS, ROWS), PIECE)
    ]
    return Counter({(epoch, start): 1 for epoch in (1, 2) for start in starts})


def check_the_job(world: World) -> None:
    kept, state = world.master.state, world.master.job.state
    assert kept.failed is None
    assert state.rows == 2 * ROWS
    assert [(row.epoch, row.loss) for row in state.curve.rows if row.final] == [(1, 2.0), (2, 2.0)]
    assert kept.done["export"] == 1
    assert not kept.leases
    assert world.exports
    assert all(export == every_piece_once() for export in world.exports)


def check_group(seed: int, workers: int, *, loses_disks: bool = False) -> None:
    check_the_job(run(seed, PLAN, workers=workers, loses_disks=loses_disks))


CHECKS: dict[str, Callable[[int], None]] = {
    **{f"group-{workers}": partial(check_group, workers=workers) for workers in (1, 2, 3, 4)},
    **{
        f"group-{workers}-disks": partial(check_group, workers=workers, loses_disks=True)
        for workers in (1, 3)
    },
}


@blocks(8, always=1)
@pytest.mark.parametrize("workers", [1, 3, *(pytest.param(many, marks=pytest.mark.soak) for many in (2, 4))])
def test_every_row_is_in_what_is_exported_once_whoever_is_lost(workers: int, block: int) -> None:
    drawn(f"group-{workers}", CHECKS[f"group-{workers}"], block)


@blocks(3, always=1)
@pytest.mark.parametrize("workers", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_so_it_is_when_masters_are_lost_with_the_checkpoints_that_they_keep(workers: int, block: int) -> None:
    drawn(f"group-{workers}-disks", CHECKS[f"group-{workers}-disks"], block)
