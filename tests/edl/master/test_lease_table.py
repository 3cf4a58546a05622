"""Leases of one job, whatever the policy: which one of an earlier time holds."""

from __future__ import annotations

from edl.master.state import MasterState
from edl.master.tasks.lease_table import LeaseTable
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import Task

PLAN = Plan("train", 2 * LEAST_ROWS, 0, Training(epochs=1, batch_size=512))


def table(state: MasterState | None = None) -> LeaseTable:
    return LeaseTable(PLAN, state or MasterState(), log=str)


def assigned(leases: LeaseTable) -> Task:
    task = leases.take("train", "worker-0")
    assert task is not None
    return task


def test_a_lease_that_the_master_before_had_not_written_down_holds() -> None:
    earlier = table()
    written = encoding.encode(earlier.state)
    task = assigned(earlier)
    later = table(encoding.decode(written, MasterState))
    assert later.adopt(task, "worker-0")
    assert later.of("worker-0") == [task.attempt]
    assert assigned(later).id != task.id


def test_a_lease_that_this_master_took_back_does_not_hold() -> None:
    leases = table()
    task = assigned(leases)
    leases.give_back(task.attempt)
    assert not leases.adopt(task, "worker-0")
    assert leases.of("worker-0") == []


def test_a_lease_of_a_task_that_another_worker_has_meanwhile_does_not_hold() -> None:
    earlier = table()
    written = encoding.encode(earlier.state)
    task = assigned(earlier)
    later = table(encoding.decode(written, MasterState))
    later.take("train", "worker-1")
    assert not later.adopt(task, "worker-0")
