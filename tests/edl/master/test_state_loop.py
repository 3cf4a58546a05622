"""Answers, long polls, and what is written down before it is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from edl.errors import ClusterError, JobError
from edl.master.rendezvous import JOIN_SECS
from edl.master.state import MasterState
from edl.master.state_loop import StateLoop
from edl.master.tasks.recovery import AllReduceRecovery, ServerRecovery, TrainerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Mode
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Flag, JoinRequest, Request, TaskUpdate
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import Report, Task
from tests.edl.master.stage import Stage

T = TypeVar("T")


class MemoryStateStore:
    """Keeps what is written; `open` lets writes end."""

    def __init__(self) -> None:
        self.written: list[MasterState] = []
        self.open = threading.Event()
        self.open.set()
        self.full = self.taken = False
        self.writing = self.most = 0  # threads, now and at the most

    def read(self) -> bytes | None:
        return None

    def write(self, data: bytes) -> None:
        self.writing += 1
        self.most = max(self.most, self.writing)
        assert self.open.wait(10.0)
        self.writing -= 1
        if self.taken:
            raise ClusterError("this job has another master")
        if self.full:
            raise JobError("the state of the job cannot be written; the disk is full")
        self.written.append(encoding.decode(data, MasterState))

    def close(self) -> None:
        """Nothing is open."""


def written_checkpoint(worker: str, sequence: int, name: str) -> Request:
    """A request of a trainer that has written a checkpoint."""
    done = Report(Task(0, "train"))
    kinds = ("checkpoint", "checkpoint written")
    return Request(
        worker,
        0,
        1,
        tuple(TaskUpdate(sequence + i, kind, done, folder=name) for i, kind in enumerate(kinds)),  # type: ignore[arg-type]
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 20.0))


def state_loop(tasks: int = 2) -> tuple[StateLoop, MemoryStateStore]:
    state_store = MemoryStateStore()
    return StateLoop(TaskManager(Plan("predict", tasks * STREAMED_ROWS)), state_store), state_store


def request(name: str = "worker-0", *told: Report, want: int = 1, seen: int = 0) -> Request:
    numbered = tuple(TaskUpdate(number, "done", report) for number, report in enumerate(told, seen + 1))
    return Request(name, 0, 1, numbered, (), {"predict": want}, seen)


def test_a_registration_is_written_down_before_it_is_answered() -> None:
    async def work() -> None:
        subject, state_store = state_loop()
        state_store.open.clear()
        joining = asyncio.create_task(subject.join("worker-0", 0, {}))
        await asyncio.sleep(0)
        assert not joining.done()
        state_store.open.set()
        assert await joining is not None
        assert "worker-0" in state_store.written[-1].members

    run(work())


def test_with_parameter_servers_a_lease_is_written_down_before_it_is_told() -> None:
    async def work() -> None:
        state_store = MemoryStateStore()
        plan = Plan("train", LEAST_ROWS, 0, Training(batch_size=512))
        subject = StateLoop(TaskManager(plan, None, ServerRecovery), state_store)
        await subject.join("worker-0", 0, {})
        answer = await subject.exchange(Request("worker-0", 0, 1, want={"train": 1}), 0.0, Flag.NONE)
        written = state_store.written[-1]
        written.expand_runs()
        assert [task.attempt for task in answer.tasks] == list(written.leases)

    run(work())


def test_a_group_is_written_down_before_it_is_told() -> None:
    async def work() -> None:
        state_store = MemoryStateStore()
        subject = StateLoop(TaskManager(Plan("train", LEAST_ROWS), None, AllReduceRecovery), state_store)
        await subject.join("worker-0", 0, {})
        writing = asyncio.create_task(subject.run())
        asked = Request("worker-0", 0, 1, join=JoinRequest("a:1"))
        answer = await subject.exchange(asked, 10.0, Flag.PREDICT_OVER)
        assert answer.group is not None
        assert answer.group == state_store.written[-1].rendezvous.present
        writing.cancel()

    run(work())


def test_a_server_is_written_down_before_it_is_answered_and_wanted_only_where_there_are_some() -> None:
    async def work() -> None:
        subject, state_store = state_loop()
        assert await subject.register_server("ps-0", 0, "a:1") is None
        stage = Stage(Mode("async"))
        subject = StateLoop(stage.leases, state_store, stage.servers)
        assert await subject.register_server("ps-1", 0, "a:1") is not None
        assert [place.address for place in state_store.written[-1].servers] == ["", "a:1"]

    run(work())


def test_registrations_at_the_same_time_share_a_write() -> None:
    async def work() -> None:
        subject, state_store = state_loop()
        await asyncio.gather(*(subject.join(f"worker-{number}", 0, {}) for number in range(100)))
        assert len(state_store.written) <= 3

    run(work())


def test_a_write_goes_on_alone_when_who_asked_for_it_is_gone() -> None:
    async def work() -> None:
        subject, state_store = state_loop()
        state_store.open.clear()
        gone = asyncio.create_task(subject.write())
        while not state_store.writing:
            await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        next_one = asyncio.create_task(subject.write())
        for _ in range(100):  # it does not begin
            await asyncio.sleep(0)
        state_store.open.set()
        await next_one
        assert (len(state_store.written), state_store.most) == (2, 1)

    run(work())


def test_who_waits_is_answered_when_a_task_is_given_back() -> None:
    async def work() -> None:
        subject, _ = state_loop(tasks=1)
        for name in ("worker-0", "worker-1"):
            await subject.join(name, 0, {})
        [task] = (await subject.exchange(request(), 0.0, Flag.TRAIN_OVER)).tasks
        waiting = asyncio.create_task(subject.exchange(request("worker-1"), 15.0, Flag.TRAIN_OVER))
        await asyncio.sleep(0)
        subject.tasks.on_loss("worker-0", 0, subject.now())
        subject.notify()
        [again] = (await waiting).tasks
        assert (again.id, again.attempt > task.attempt) == (task.id, True)

    run(work())


def test_the_end_is_told_when_it_is_written_down() -> None:
    async def work() -> None:
        subject, state_store = state_loop(tasks=1)
        running = asyncio.create_task(subject.run())
        await subject.join("worker-0", 0, {})
        [task] = (await subject.exchange(request(), 0.0, Flag.TRAIN_OVER)).tasks
        state_store.open.clear()
        answer = await subject.exchange(request("worker-0", Report(task, task.rows)), 0.0, Flag.NONE)
        assert not answer.flags & Flag.FINISHED
        state_store.open.set()
        await running
        assert state_store.written[-1].job is not None
        assert state_store.written[-1].job.finished
        answer = await subject.exchange(request(seen=1), 0.0, Flag.NONE)
        assert answer.flags & Flag.FINISHED
        assert answer.durable_upto == 1
        assert subject.left == {"worker-0"}

    run(work())


def test_at_the_end_nobody_waits_for_who_is_silent_or_never_came_or_is_lost() -> None:
    async def work() -> None:
        subject, _ = state_loop()
        for name in ("silent", "lost", "there"):
            await subject.join(name, 0, {})
        assert subject.waits_for(["silent"])
        assert not subject.waits_for(["never came"])
        subject.tasks.on_loss("lost", 0, subject.now())
        subject.tasks.state.members["silent"].seen -= subject.tasks.lease_secs / 2
        assert not subject.waits_for(["silent", "lost"])
        assert subject.waits_for(["silent", "lost", "there"])

    run(work())


def test_at_the_end_nobody_waits_for_who_was_left_out_of_the_group() -> None:
    async def work() -> None:
        leases = TaskManager(Plan("train", LEAST_ROWS), None, AllReduceRecovery)
        subject = StateLoop(leases, MemoryStateStore())
        for name in ("left out", "leader"):
            await subject.join(name, 0, {})
        leases.exchange(Request("leader", 0, 1, join=JoinRequest("a:1")), 0.0)
        leases.tick(JOIN_SECS)
        assert subject.waits_for(["leader"])
        assert not subject.waits_for(["left out"])
        leases.exchange(Request("left out", 0, 1, number=1, join=JoinRequest("b:1")), subject.now())
        assert subject.waits_for(["left out"])

    run(work())


def test_a_state_store_that_cannot_be_written_ends_the_job() -> None:
    async def work() -> None:
        subject, state_store = state_loop()
        running = asyncio.create_task(subject.run())
        await subject.join("worker-0", 0, {})
        [task] = (await subject.exchange(request(), 0.0, Flag.TRAIN_OVER)).tasks
        await subject.write()  # and with it the state of the beginning
        state_store.full = True
        await subject.exchange(request("worker-0", Report(task, task.rows)), 0.0, Flag.NONE)
        await running
        failed = subject.tasks.state.failed
        assert failed is not None
        assert "the disk is full" in failed.message

    run(work())


@pytest.mark.soak
@pytest.mark.parametrize("reports", [1, 300])
def test_reports_are_written_in_groups(reports: int) -> None:
    async def work() -> None:
        subject, state_store = state_loop(tasks=reports + 1)
        running = asyncio.create_task(subject.run())
        await subject.join("worker-0", 0, {})
        before = len(state_store.written)
        seen = 0
        tasks = (await subject.exchange(request(want=reports), 0.0, Flag.TRAIN_OVER)).tasks
        for task in tasks:
            answer = await subject.exchange(
                request("worker-0", Report(task, task.rows), want=0, seen=seen), 0.0, Flag.NONE
            )
            seen = answer.seen_upto
        while answer.durable_upto < seen:
            answer = await subject.exchange(request(want=0, seen=seen), 0.2, answer.flags)
        assert len(state_store.written) - before <= 4
        running.cancel()

    run(work())


def test_a_state_store_of_another_master_ends_this_one_and_not_the_job() -> None:
    async def work() -> None:
        subject, state_store = state_loop()
        running = asyncio.create_task(subject.run())
        while not state_store.written:
            await asyncio.sleep(0)
        state_store.taken = True
        with pytest.raises(ClusterError, match="another master"):
            await subject.join("worker-0", 0, {})
        with pytest.raises(ClusterError, match="another master"):
            await running
        assert not subject.tasks.is_finished

    run(work())


def test_every_checkpoint_gets_the_state_that_refers_to_it_once_that_is_durable() -> None:
    added: list[tuple[str, MasterState, int]] = []

    async def work() -> None:
        store = MemoryStateStore()
        leases = TaskManager(Plan("train", LEAST_ROWS), None, TrainerRecovery)
        subject = StateLoop(
            leases,
            store,
            add_state=lambda name, data: added.append(
                (name, encoding.decode(data, MasterState), len(store.written))
            ),
        )
        going_on = asyncio.create_task(subject.run())
        await subject.join("worker-0", 0, {})
        for number in range(2):
            await subject.exchange(
                written_checkpoint("worker-0", 1 + 2 * number, f"cut-{number}"), 0.0, Flag(0)
            )
            while len(added) <= number:
                await asyncio.sleep(0)
        leases.cancel("enough")
        subject.notify()
        await going_on

    run(work())
    assert [(name, state.checkpoint_name) for name, state, _ in added] == [
        ("cut-0", "cut-0"),
        ("cut-1", "cut-1"),
    ]
    assert all(writes for _, _, writes in added)


def test_a_state_says_when_it_was_written_so_that_the_time_without_a_master_counts() -> None:
    store = MemoryStateStore()

    async def work() -> None:
        subject = StateLoop(TaskManager(Plan("predict", LEAST_ROWS)), store, date=lambda: 1000.0)
        await subject.write()

    run(work())
    assert store.written[-1].written == 1000.0
