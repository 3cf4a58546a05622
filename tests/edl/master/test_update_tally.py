"""Totals of updates that parameter servers have lost."""

from __future__ import annotations

import msgspec

from edl.master.ps.update_tally import UpdateTally
from edl.master.state import Checkpoint, MasterState, ServerLoss, ServerRecord
from edl.ps.checkpoint.content import Progress, Version
from edl.ps.messages import Figures
from edl.tasks.job_state import JobState
from edl.tasks.task import Task


def test_a_server_replaces_the_estimate_of_its_own_loss_and_of_no_other() -> None:
    """The place of a server, its index and its epoch, may have been another one's before the servers changed."""
    estimates = [ServerLoss(1, 1, "000001-000001", 3, 30), ServerLoss(1, 1, "000001-000004", 1, 10)]
    servers = [ServerRecord("ps-1", 0, "ps-1:0", 0), ServerRecord("ps-3", 1, "ps-3:1", 1)]
    tally = UpdateTally(MasterState(generation=2, servers=servers, losses=estimates))
    figures = Figures(1, 1, Version(), open=True, lost=9, lost_rows=90)
    tally.observe(1, figures)  # of the generation before
    assert tally.losses == (4, 40)
    tally.observe(1, msgspec.structs.replace(figures, generation=2))
    assert tally.losses == (12, 120)


def test_a_push_that_only_some_servers_have_is_lost_until_the_job_goes_back() -> None:
    state = MasterState(checkpoint=Checkpoint("000001-000002", JobState()))
    tally = UpdateTally(state)
    task = Task(7, "train", 0, 64, 1)
    whole, half = Progress(task, rows=48, steps=3), Progress(task, rows=32, steps=2)
    tally.record_torn_push([whole, whole])
    tally.record_torn_push([None, None])
    assert tally.losses == tally.torn == (0, 0)
    tally.record_torn_push([half, whole])
    tally.record_torn_push([None, half])
    assert tally.losses == tally.torn == (3, 48)
    state.checkpoint = Checkpoint("000001-000003", JobState())
    state.go_back()
    assert tally.torn == (3, 48)  # the later checkpoint has them
    state.checkpoint = Checkpoint("000001-000002", JobState())
    state.go_back()
    assert tally.losses == (0, 0)
