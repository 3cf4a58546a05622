"""A job that begins with a least number of workers."""

from __future__ import annotations

from edl.cluster import Change, Instance
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.whole_start import AGAIN_SECS, FIRST_SECS, WholeStart
from edl.master.state import MasterState
from edl.master.stopping import Stopper, WaitLimit
from edl.master.tasks.task_manager import TaskManager
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Request
from edl.tasks.ranges import STREAMED_ROWS

LEAST, WORKERS = 2, 3
PLAN = Plan("predict", 40 * STREAMED_ROWS)


class Job:
    """A job of three workers that begins with two of them."""

    def __init__(self, state: MasterState | None = None) -> None:
        self.said: list[str] = []
        self.tasks = TaskManager(PLAN, state, log=self.said.append)
        self.instances = InstanceManager(self.tasks, WORKERS)
        self.instances.actions(0.0)
        self.start = WholeStart(self.tasks, self.instances, LEAST)
        self.limit = WaitLimit(self.tasks, self.instances, Stopper(self.tasks, self.instances, None), 30.0)

    def register(self, *numbers: int) -> None:
        for number in numbers:
            instance = Instance(f"worker-{number}", "worker")
            self.instances.on_change(Change(instance, "running"), 0.0)
            self.tasks.join(instance.name, 0, 0.0)

    def ask(self, number: int) -> int:
        """Return the number of tasks that a worker gets."""
        return len(self.tasks.exchange(Request(f"worker-{number}", 0, 1, want={"predict": 1}), 0.0).tasks)


def test_no_task_is_handed_out_until_enough_workers_are_ready() -> None:
    job = Job()
    job.register(0)
    job.start.tick(0.0)
    assert job.ask(0) == 0
    before = job.tasks.signal
    job.register(1)
    job.start.tick(1.0)
    assert job.tasks.signal != before
    assert job.ask(0) == 1


def test_the_wait_is_told_with_its_reason_and_again_every_minute() -> None:
    job = Job()
    job.register(0)
    waiting = Change(Instance("worker-1", "worker"), "pending", detail="0/1 nodes are available")
    job.instances.on_change(waiting, 0.0)
    for now in (0.0, FIRST_SECS, FIRST_SECS + 1, FIRST_SECS + AGAIN_SECS):
        job.start.tick(now)
    note = "the job begins when 2 workers are ready, and 1 are; worker-1 waits: 0/1 nodes are available"
    assert job.said == [note, note]


def test_a_limit_bounds_the_wait_though_a_worker_runs() -> None:
    job = Job()
    job.register(0)
    for now in (0.0, 29.0):
        job.limit.tick(now)
    assert not job.tasks.is_finished
    job.limit.tick(30.0)
    assert job.tasks.state.failed is not None
    assert "its limit is over: worker-1 waits" in job.tasks.state.failed.message


def test_a_job_that_has_begun_goes_on_with_the_workers_that_it_has() -> None:
    job = Job()
    job.register(0, 1)
    job.start.tick(0.0)
    assert job.ask(0) == 1
    later = Job(job.tasks.state)
    assert not later.tasks.is_held
    assert later.instances.least_workers == 1
