"""How a job stops before its end: its workers leave, the last of a group last, and its servers write a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from edl.cluster import Change, Instance, NoRoomError
from edl.jobs.failure import Failed
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.slots import STOP_GRACE
from edl.master.stopping import PAUSED, Deadline, Stopper, WaitLimit
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import TakeCheckpoint
from edl.tasks.protocol import WorkerGroup
from tests.edl.master.managed import Job, names
from tests.edl.master.stage import Stage

LATE = Failed("job", "it took too long")


def run(instances: InstanceManager, *workers: str) -> None:
    for name in workers:
        instances.on_change(Change(Instance(name, "worker"), "running"), 0.0)


def stops(stopper: Stopper, step: Callable[[], object]) -> Failed:
    """Stop the job, while its world does a step at a time; return the reason."""

    async def play() -> Failed:
        stopping = asyncio.ensure_future(stopper.stop())
        async with asyncio.timeout(10.0):
            while not stopping.done():
                step()
                await asyncio.sleep(0.01)
        return stopping.result()

    return asyncio.run(play())


def test_workers_leave_with_time_for_a_checkpoint_and_none_is_started() -> None:
    job = Job(3)
    job.started(0.0)
    run(job.instances, "worker-0", "worker-1", "worker-2")
    stopper, asked = Stopper(job.leases, job.instances, None), []

    def step() -> None:
        for action in job.instances.actions(1.0):
            asked.append((action.stop, action.grace))
            job.on_end(action.instance.name, 0, "stopped")

    stopper.begin()
    stopper.begin(LATE)  # the first reason counts
    assert stops(stopper, step) is PAUSED
    assert asked == 3 * [(True, STOP_GRACE)]
    assert (job.instances.kept, job.started(2.0)) == ("none", [])
    stopper.withdraw()
    assert [name for name, _ in job.started(3.0)] == ["worker-0", "worker-1", "worker-2"]


def test_the_last_worker_of_a_group_leaves_when_the_group_is_its_own() -> None:
    job = Job(2)
    job.started(0.0)
    run(job.instances, "worker-0", "worker-1")
    groups = [WorkerGroup(1, ("worker-0", "worker-1"), 2, "", ())]
    left = []

    class Rendezvous:
        complete = False

        @property
        def members(self) -> tuple[str, ...]:
            return groups[-1].members

    job.leases.rendezvous = Rendezvous()  # type: ignore[assignment]
    stopper = Stopper(job.leases, job.instances, None)

    def step() -> None:
        for name in names(job.instances.actions(1.0), stop=True):
            left.append((name, groups[-1].number))
            job.on_end(name, 0, "stopped")
        if left and groups[-1].number == 1:
            groups.append(WorkerGroup(2, ("worker-0",), 1, "", ()))

    stopper.begin()
    stops(stopper, step)
    assert left == [("worker-1", 1), ("worker-0", 2)]


def test_servers_write_a_checkpoint_of_the_last_step_before_they_go() -> None:
    stage = Stage(Mode("sync"))
    instances = InstanceManager(stage.leases, 1, stage.servers)
    stage.open()
    stage.complete()
    stage.said(TakeCheckpoint)
    stage.step += 3
    stopper = Stopper(stage.leases, instances, stage.servers)
    taken = 0

    def step() -> None:
        nonlocal taken
        stage.talk(1.0)
        if stage.said(TakeCheckpoint):
            taken += 1
            stage.complete()

    stopper.begin(LATE)
    assert stops(stopper, step) is LATE
    assert (taken, instances.kept) == (1, "none")


def test_a_job_that_an_earlier_master_stopped_starts_nothing() -> None:
    job = Job(1)
    stopper = Stopper(job.leases, job.instances, None)

    async def play() -> Failed:
        stopper.begin_stopped()
        return await stopper.stop()

    assert asyncio.run(play()) is PAUSED
    assert job.started(0.0) == []


@pytest.mark.parametrize("has_ended", ["cancelled", "failed"])
def test_a_job_that_has_ended_is_not_stopped(has_ended: str) -> None:
    job = Job(1)
    job.leases.cancel("enough") if has_ended == "cancelled" else job.leases.fail(LATE)
    stopper = Stopper(job.leases, job.instances, None)
    stopper.begin()
    assert not stopper.has_begun


@pytest.mark.parametrize("orderly", [True, False])
def test_a_job_that_has_not_ended_at_its_deadline_is_stopped_and_counts_from_its_resumption(
    orderly: bool,
) -> None:
    job = Job(1)
    job.leases.state.began = 100.0
    stopper = Stopper(job.leases, job.instances, None)
    deadline = Deadline(job.leases, stopper, 3600.0, orderly=orderly)
    deadline.tick(3699.0)
    assert not (stopper.has_begun or job.leases.is_finished)
    deadline.tick(3700.0)
    assert (stopper.has_begun, job.leases.is_finished) == (orderly, not orderly)
    why = stopper._why if orderly else job.leases.state.failed
    assert why is not None
    assert why.message == "the job did not end before its deadline of 3,600 s"


@pytest.mark.parametrize("orderly", [True, False])
def test_a_pause_does_not_count_toward_the_deadline(orderly: bool) -> None:
    job = Job(1)
    stopper = Stopper(job.leases, job.instances, None)
    deadline = Deadline(job.leases, stopper, 3600.0, orderly=orderly)
    deadline.tick(3000.0)
    stopper.begin()
    for now in (3001.0, 9000.0, 9001.0):
        deadline.tick(now)
    assert (stopper._why, job.leases.is_finished, job.leases.state.began) == (PAUSED, False, 6001.0)
    stopper.withdraw()
    deadline.tick(9600.0)
    assert not (stopper.has_begun or job.leases.is_finished)
    deadline.tick(9601.0)
    assert stopper.has_begun or job.leases.is_finished


def test_a_job_without_a_deadline_is_not_stopped() -> None:
    job = Job(1)
    stopper = Stopper(job.leases, job.instances, None)
    Deadline(job.leases, stopper, 0.0, orderly=True).tick(1e9)
    assert not stopper.has_begun


def test_a_job_whose_workers_find_no_room_within_the_limit_fails_with_the_reason() -> None:
    job = Job(2)
    limit = WaitLimit(job.leases, job.instances, Stopper(job.leases, job.instances, None), 1800.0)
    job.started(0.0)
    job.instances.on_refusal(Instance("worker-0", "worker"), NoRoomError("exceeded quota: few"), 0.0)
    waits = Change(Instance("worker-1", "worker"), "pending", detail="0/3 nodes are available")
    job.instances.on_change(waits, 0.0)
    limit.tick(1.0)
    limit.tick(1800.0)
    assert not job.leases.is_finished
    limit.tick(1801.0)
    assert job.leases.state.failed is not None
    assert job.leases.state.failed.message == (
        "the job has waited for 1,800 s, and its limit is over: worker-0 waits: exceeded quota: few; "
        "worker-1 waits: 0/3 nodes are available"
    )


def test_a_worker_that_runs_ends_the_wait_and_so_does_a_pause() -> None:
    job = Job(2)
    stopper = Stopper(job.leases, job.instances, None)
    limit = WaitLimit(job.leases, job.instances, stopper, 60.0)
    job.started(0.0)
    limit.tick(1.0)
    run(job.instances, "worker-1")  # worker-0 still waits
    limit.tick(50.0)
    job.on_end("worker-1", 0, "preempted")
    limit.tick(100.0)
    limit.tick(159.0)
    stopper.begin()
    limit.tick(170.0)
    stopper.withdraw()
    limit.tick(180.0)
    assert not job.leases.is_finished
    limit.tick(240.0)
    assert job.leases.is_finished


def test_a_job_waits_for_its_servers_too() -> None:
    stage = Stage(Mode("sync"))
    instances = InstanceManager(stage.leases, 1, stage.servers)
    instances.actions(0.0)
    run(instances, "worker-0")
    no_node = "0/3 nodes are available"
    instances.on_change(Change(Instance("ps-1", "ps"), "pending", detail=no_node), 0.0)
    assert instances.hindrances == {"ps-0": "", "ps-1": no_node}
    for name in ("ps-0", "ps-1"):
        instances.on_change(Change(Instance(name, "ps"), "running"), 0.0)
    assert instances.hindrances == {}
