"""Tasks that workers hold in advance, from the master's side: who gets them when another worker has none."""

from __future__ import annotations

import msgspec
import pytest

from edl.master.state import LeaseRun, MasterState
from edl.master.tasks.recovery import RecoveryPolicy, ServerRecovery, TrainerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Answer, Flag
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.test_schedules import finished

PREDICT = Plan("predict", 12 * STREAMED_ROWS)
TRAIN = Plan("train", 6 * LEAST_ROWS, 0, Training(epochs=9, batch_size=512))


class Job:
    """A master, and workers that hold as many tasks as they ask for."""

    def __init__(self, plan: Plan, recovery: type[RecoveryPolicy] = RecoveryPolicy) -> None:
        self.kind: TaskType = "train" if plan.kind == "train" else "predict"
        self.master = TaskManager(plan, None, recovery)
        self.now = 0.0

    def worker(self, name: str) -> Outbox:
        box = Outbox(name, 0)
        joined = self.master.join(name, 0, self.now)
        assert joined is not None
        box.apply_registration(joined)
        return box

    def call(self, box: Outbox, want: int) -> Answer:
        answer = self.master.exchange(box.request({self.kind: want} if want else {}), self.now)
        box.on_answer(answer)
        return answer

    def held(self, box: Outbox) -> list[int]:
        """Positions of the tasks that the worker has not begun."""
        return [task.id for task in box._received[self.kind]]

    def begin(self, box: Outbox) -> Task:
        task = box.take(self.kind)
        assert task is not None
        return task


def test_a_worker_gets_its_share_of_the_queue() -> None:
    job = Job(PREDICT)
    one, other = job.worker("worker-0"), job.worker("worker-1")
    job.call(one, 1)
    job.begin(one)
    job.call(other, 1)
    job.begin(other)
    job.call(one, 100)
    assert len(job.held(one)) == 5


def test_a_worker_without_a_task_gets_the_later_half_of_another_ones_queue() -> None:
    job = Job(PREDICT)
    rich = job.worker("worker-0")
    job.call(rich, 12)
    job.begin(rich)
    job.call(rich, 0)
    idle = job.worker("worker-1")
    assert not job.call(idle, 3).tasks
    before = job.master.signal
    answer = job.call(rich, 0)
    assert len(answer.asked) == 6
    assert job.held(rich) == [1, 2, 3, 4, 5]
    job.call(rich, 0)
    assert job.master.signal != before
    job.call(idle, 3)
    assert job.held(idle) == [6, 7, 8]


def test_a_task_that_was_begun_meanwhile_stays_where_it_is() -> None:
    job = Job(PREDICT)
    rich = job.worker("worker-0")
    job.call(rich, 12)
    job.call(rich, 0)
    idle = job.worker("worker-1")
    job.call(idle, 1)
    answer = job.master.exchange(rich.request({}), job.now)
    assert len(answer.asked) == 6
    begun = [job.begin(rich).id for _ in range(10)]
    rich.on_answer(answer)
    assert rich.asked  # it answers at once
    assert not job.call(rich, 0).asked
    job.call(idle, 5)
    assert (begun, job.held(idle)) == (list(range(10)), [10, 11])


def test_who_has_tasks_does_not_get_what_was_returned_for_another() -> None:
    job = Job(PREDICT)
    third = job.worker("worker-2")
    job.call(third, 2)
    job.begin(third)
    rich = job.worker("worker-0")
    while job.call(rich, 10).tasks:
        pass
    idle = job.worker("worker-1")
    job.call(idle, 1)
    job.call(rich, 0)
    job.call(rich, 0)
    assert not job.call(third, 5).tasks
    assert job.call(idle, 5).tasks


def test_the_tasks_of_a_lost_worker_return_at_once() -> None:
    job = Job(PREDICT)
    lost, other = job.worker("worker-0"), job.worker("worker-1")
    job.call(lost, 12)
    job.begin(lost)
    job.master.on_loss("worker-0", 0, job.now)
    job.call(other, 100)
    assert len(job.held(other)) == 12


def test_an_owner_that_does_not_answer_keeps_nobody_waiting() -> None:
    job = Job(PREDICT)
    frozen, rich, idle = (job.worker(f"worker-{number}") for number in range(3))
    job.call(frozen, 1)
    job.call(rich, 1)
    job.call(frozen, 100)
    job.call(rich, 100)
    while job.call(frozen, 100).tasks or job.call(rich, 100).tasks:
        pass
    job.call(frozen, 0)
    job.call(rich, 0)
    job.call(idle, 1)
    longest = max((frozen, rich), key=lambda box: len(job.held(box)))
    other = rich if longest is frozen else frozen
    assert not job.call(other, 0).asked
    job.now += 1.5
    job.master.tick(job.now)
    assert job.call(other, 0).asked


def test_tasks_of_later_epochs_are_held_and_begun_in_their_time() -> None:
    job = Job(TRAIN, ServerRecovery)
    box = job.worker("worker-0")
    job.call(box, 6)
    for _ in range(6):
        box.report("done", finished(job.begin(box)))
    job.call(box, 0)
    box.on_answer(job.master.exchange(box.request({"conclude": 1}), job.now))
    conclude = box.take("conclude")
    assert conclude is not None
    box.report("done", finished(conclude))
    answer = job.call(box, 6)
    assert answer.certain_epoch == 9  # nothing ends the training before
    for _ in range(5):
        answer = job.call(box, 24)
    assert {task.number for task in box._received["train"]} == {2, 3, 4, 5}
    assert answer.open_epoch == 3  # the next one after the epoch that is not concluded
    begun = [task.number for task in iter(lambda: box.take("train"), None)]
    assert begun == 6 * [2] + 6 * [3]
    assert box.take("train", away=True) is not None


def test_a_worker_waits_for_tasks_of_an_earlier_epoch_that_another_one_has_not_begun() -> None:
    job = Job(TRAIN, ServerRecovery)
    slow = job.worker("worker-0")
    job.call(slow, 6)
    job.begin(slow)
    job.call(slow, 0)
    quick = job.worker("worker-1")
    answer = job.call(quick, 2)
    assert not answer.tasks
    assert answer.flags & Flag.DRY
    assert len(job.call(slow, 0).asked) == 3
    job.call(slow, 0)
    job.call(quick, 2)
    assert [task.number for task in box_tasks(quick)] == [1, 1]


def box_tasks(box: Outbox) -> list[Task]:
    return list(box._received["train"])


@pytest.mark.parametrize(("recovery", "shared"), [(TrainerRecovery, False), (ServerRecovery, True)])
def test_only_leases_that_another_worker_could_get_are_written_before_they_are_told(
    recovery: type[RecoveryPolicy], *, shared: bool
) -> None:
    job = Job(TRAIN, recovery)
    assert job.master.is_written_first([Task(0, "train")]) == shared


def test_leases_are_stored_as_runs() -> None:
    job = Job(PREDICT)
    box = job.worker("worker-0")
    job.call(box, 12)
    state, _ = job.master.to_store()
    assert (len(state.leases), [run.count for run in state.lease_runs]) == (0, [12])
    kept = encoding.decode(encoding.encode(state), MasterState)
    kept.expand_runs()
    assert kept.leases == job.master.state.leases
    assert kept.lease_runs == []


def test_a_lease_of_a_task_that_is_done_in_part_is_stored_by_itself() -> None:
    job = Job(PREDICT)
    box = job.worker("worker-0")
    job.call(box, 12)
    task = job.begin(box)
    box.progress(msgspec.structs.replace(finished(task), rows=7))
    job.call(box, 0)
    state, _ = job.master.to_store()
    assert list(state.leases) == [task.attempt]
    assert state.lease_runs == [LeaseRun(task.attempt + 1, "predict", 0, 1, "worker-0", 11)]
