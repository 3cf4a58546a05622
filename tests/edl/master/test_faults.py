"""The fault matrix on the master's state machine: a clock in the test's hands, workers that follow a script."""

from __future__ import annotations

import msgspec
import pytest

from edl.errors import JobError
from edl.jobs.failure import Failed
from edl.master.state import MasterState
from edl.master.tasks.backups import LEAST_DONE
from edl.master.tasks.recovery import RecoveryPolicy, ServerRecovery, TrainerRecovery
from edl.master.tasks.task_manager import ATTEMPTS, TaskManager
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Flag
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import CONTROL, Report, Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.listed_checkpoints import ListedCheckpoints
from tests.edl.master.test_schedules import finished

LEASE = 10.0
ALL: dict[TaskType, int] = dict.fromkeys((*CONTROL, "train", "predict"), 1)
MANY = Plan("predict", 6 * STREAMED_ROWS)
PREDICT = Plan("predict", 3 * STREAMED_ROWS)
TRAIN = Plan("train", 4 * LEAST_ROWS, 100, Training(epochs=2, batch_size=512))


class Job:
    """A master, and the workers that talk to it."""

    def __init__(self, plan: Plan, *, recovery: type[RecoveryPolicy] = RecoveryPolicy) -> None:
        self.plan = plan
        self.recovery = recovery
        self.now = 0.0
        self.notes: list[str] = []
        self.lost_cuts: set[str] = set()
        self.stored = ListedCheckpoints(lambda name: name not in self.lost_cuts)
        self.master = self._master(None)

    def _master(self, kept: MasterState | None) -> TaskManager:
        return TaskManager(
            self.plan,
            kept,
            self.recovery,
            lease_secs=LEASE,
            log=self.notes.append,
            checkpoints=self.stored,
        )

    def worker(self, name: str = "worker-0", incarnation: int = 0) -> Outbox:
        """A worker that has registered."""
        box = Outbox(name, incarnation)
        joined = self.master.join(name, incarnation, self.now)
        assert joined is not None
        box.apply_registration(joined)
        return box

    def call(self, box: Outbox, want: dict[TaskType, int] | None = None) -> Task | None:
        """An exchange; a task that the worker has then."""
        box.on_answer(self.master.exchange(box.request(ALL if want is None else want), self.now))
        return box.take(*CONTROL, "train", "predict")

    def work(self, box: Outbox, tasks: int = 10_000) -> list[Task]:
        """Do so many tasks, or all there are; those that were done."""
        done: list[Task] = []
        task = self.call(box)
        while task is not None and len(done) < tasks:
            done.append(task)
            box.report("done", finished(task))
            task = self.call(box) if len(done) < tasks else self.call(box, {})
        return done

    def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            self.now += min(seconds, 1.0)
            seconds -= 1.0
            self.master.tick(self.now)

    def restart(self) -> None:
        """The master dies and comes back with all that it knew."""
        self.master = self._master(encoding.decode(encoding.encode(self.master.to_store()[0]), MasterState))


@pytest.mark.parametrize(
    "moment", ["while idle", "in a task", "in the last task of an epoch", "waiting for the end"]
)
def test_a1_a_preempted_worker_loses_nothing(moment: str) -> None:
    job = Job(TRAIN)
    gone, other = job.worker("worker-0"), job.worker("worker-1")
    if moment == "in a task":
        assert job.call(gone)
    elif moment == "in the last task of an epoch":
        job.work(other, 3)
        task = job.call(gone)
        assert task is not None
        assert task.settles
    elif moment == "waiting for the end":
        task = job.call(other)
        while task is not None and task.type != "export":
            other.report("done", finished(task))
            task = job.call(other)
        assert task is not None
        assert job.call(gone) is None
        other.report("done", finished(task))
    job.master.on_loss("worker-0", 0, job.now, "preempted")
    job.work(other)
    state = job.master.job.state
    assert (state.finished, state.rows, len(state.curve.rows)) == (True, 2 * TRAIN.rows, 2)
    assert job.master.state.done["export"] == 1


def test_a2_a_task_keeps_its_budget_if_its_owners_are_preempted() -> None:
    job = Job(PREDICT)
    for incarnation in range(5):
        task = job.call(job.worker("worker-0", incarnation))
        assert task is not None
        assert task.id == 0
        job.master.on_loss("worker-0", incarnation, job.now)
    assert not job.master.state.failures
    job.work(job.worker("worker-0", 5))
    assert job.master.job.is_finished


def test_a3_a_task_that_always_raises_is_quarantined_and_named() -> None:
    job = Job(PREDICT)
    box = job.worker()
    for _ in range(ATTEMPTS):
        assert not job.master.is_finished
        task = job.call(box)
        assert task is not None
        box.report("failed", Report(task), error=Failed(JobError.code, "no such number"))
        job.call(box, {})
    failed = job.master.state.failed
    assert failed is not None
    assert failed.message == (
        "the predict task of the rows [0, 65,536) failed 3 times, the last time: no such number"
    )
    assert job.call(box) is None
    assert box.flags & Flag.FINISHED


def test_a_task_that_raises_twice_and_then_does_not_is_done() -> None:
    job = Job(PREDICT)
    box = job.worker()
    for _ in range(ATTEMPTS - 1):
        task = job.call(box)
        assert task is not None
        box.report("failed", Report(task), error=Failed(JobError.code, "the disk is slow"))
        job.call(box, {})
    job.work(box)
    assert job.master.job.is_finished
    assert not job.master.state.failures


def test_a4_workers_that_could_not_reach_the_master_go_on_where_they_were() -> None:
    job = Job(PREDICT)
    box = job.worker()
    task = job.call(box)
    assert task is not None
    box.report("done", finished(task))
    job.pass_time(60.0)  # the lease ran out six times over
    assert job.call(box) is None
    assert box.rejoin
    joined = job.master.join("worker-0", 0, job.now)
    assert joined is not None
    box.apply_registration(joined)
    job.work(box)
    assert job.master.job.is_finished
    assert job.master.state.done == {"predict": 3}


def test_a5_todo_doing_epoch_and_rounds_survive_the_master() -> None:
    job = Job(TRAIN)
    box, other = job.worker("worker-0"), job.worker("worker-1")
    job.work(box, 4)
    held = job.call(other, {"evaluate": 1})
    assert held is not None
    before = job.master.job.to_state()
    job.restart()
    assert job.master.job.to_state() == before
    other.report("done", finished(held))
    job.call(other, {})
    job.work(box)
    state = job.master.job.state
    assert (state.finished, state.rows) == (True, 2 * TRAIN.rows)
    assert job.master.state.done["evaluate"] == 2


def test_a5_a_lease_that_was_not_written_down_counts_once() -> None:
    job = Job(PREDICT)
    box = job.worker()
    kept = encoding.encode(job.master.to_store()[0])
    task = job.call(box)
    assert task is not None
    job.master = job._master(encoding.decode(kept, MasterState))
    box.report("done", finished(task))
    job.work(box)
    assert job.master.job.is_finished
    assert job.master.state.done == {"predict": 3}


def test_a7_the_death_of_another_instance_leaves_a_workers_tasks_alone() -> None:
    job = Job(PREDICT)
    box = job.worker("worker-0")
    task = job.call(box)
    assert task is not None
    job.master.on_loss("ps-0", 0, job.now)
    assert list(job.master.state.leases) == [task.attempt]


def test_a11_a_worker_that_dies_before_its_report_is_not_counted_twice() -> None:
    plan = Plan("evaluate", 2 * STREAMED_ROWS)
    job = Job(plan)
    box = job.worker("worker-0")
    task = job.call(box)
    assert task is not None
    box.report("done", finished(task))  # and it dies before that is said
    job.master.on_loss("worker-0", 0, job.now)
    other = job.worker("worker-0", 1)
    exported = next(task for task in job.work(other) if task.type == "export")
    assert exported.round is not None
    assert exported.round.measured.rows == plan.rows
    assert job.master.exchange(box.request(ALL), job.now).flags & Flag.REJOIN


def test_a18_a_job_waits_for_workers_and_goes_on() -> None:
    job = Job(PREDICT)
    box = job.worker()
    job.work(box, 1)
    job.call(box)
    job.master.on_loss("worker-0", 0, job.now)
    job.pass_time(3600.0)
    assert not job.master.is_finished
    job.work(job.worker("worker-7"))
    assert job.master.job.is_finished


def test_a_master_that_slept_gives_nobody_up() -> None:
    job = Job(PREDICT)
    box = job.worker()
    task = job.call(box)
    assert task is not None
    job.pass_time(LEASE - 1)
    job.now += 3600.0
    job.master.tick(job.now)
    job.pass_time(LEASE - 1)  # a whole lease, to find the way back
    box.report("done", finished(task))
    assert job.call(box) is not None
    assert not box.rejoin


def test_a_silent_worker_is_given_up_and_its_report_comes_too_late() -> None:
    job = Job(PREDICT)
    frozen, other = job.worker("worker-0"), job.worker("worker-1")
    task = job.call(frozen)
    assert task is not None
    job.pass_time(LEASE / 2)
    job.call(other, {})
    job.pass_time(LEASE / 2 + 1)
    assert "worker-0 was silent for 10 s; 1 task given back" in job.notes
    done = job.work(other)
    assert [each.id for each in done] == [0, 1, 2]
    frozen.report("done", finished(task))
    assert job.call(frozen) is None
    assert job.master.state.done == {"predict": 3}


@pytest.mark.parametrize("recovery", [TrainerRecovery, ServerRecovery])
def test_tasks_with_a_lost_answer_are_told_again_under_their_leases(
    recovery: type[RecoveryPolicy],
) -> None:
    """With parameter servers nothing is revoked, so a single worker does its tasks in their order."""
    job = Job(TRAIN, recovery=recovery)
    box = job.worker()
    lost = job.master.exchange(box.request({"train": 3}), job.now)
    box.on_answer(job.master.exchange(box.request({"train": 4}), job.now))
    told = list(iter(lambda: box.take("train"), None))
    assert told[:3] == list(lost.tasks)
    assert [task.id for task in told] == [0, 1, 2, 3]


def test_tasks_that_are_given_back_come_before_tasks_with_a_lost_answer() -> None:
    job = Job(TRAIN, recovery=TrainerRecovery)
    box = job.worker()
    box.on_answer(job.master.exchange(box.request({"train": 2}), job.now))
    job.master.exchange(box.request({"train": 3}), job.now)
    box.give_back_received()
    box.on_answer(job.master.exchange(box.request({"train": 3}), job.now))
    assert [task.id for task in iter(lambda: box.take("train"), None)] == [0, 1, 2]


def test_tasks_with_a_lost_answer_go_to_others_where_they_are_not_wanted_any_more() -> None:
    job = Job(TRAIN, recovery=RecoveryPolicy)
    box, other = job.worker(), job.worker("worker-1")
    job.master.exchange(box.request({"train": 2}), job.now)
    job.call(box, {})
    assert [task.id for task in job.master.exchange(other.request({"train": 2}), job.now).tasks] == [0, 1]


def cut_after(job: Job, box: Outbox, tasks: int, name: str = "cut-1") -> None:
    """The trainer does so many tasks, and cuts."""
    job.work(box, tasks)
    for kind in ("checkpoint", "checkpoint written"):
        box.report(kind, Report(Task(0, "train")), folder=name)  # type: ignore[arg-type]
    job.call(box, {})


def test_a_master_that_comes_back_without_its_checkpoints_goes_on_with_the_trainer_that_lives() -> None:
    job = Job(TRAIN, recovery=TrainerRecovery)
    box = job.worker()
    cut_after(job, box, 2)
    job.lost_cuts.add("cut-1")
    job.restart()
    assert job.master.state.generation == 1
    job.work(box)
    assert job.master.job.is_finished
    assert job.notes == []


@pytest.mark.parametrize("order", ["the worker first", "the master first"])
def test_a_trainer_that_is_lost_with_all_checkpoints_begins_anew_and_the_log_says_so(order: str) -> None:
    job = Job(TRAIN, recovery=TrainerRecovery)
    cut_after(job, job.worker(), 2)
    job.lost_cuts.add("cut-1")
    if order == "the worker first":
        job.lost_cuts.clear()
        job.master.on_loss("worker-0", 0, job.now)
        assert job.master.job.state.rows == 2 * LEAST_ROWS
        job.lost_cuts.add("cut-1")
        job.restart()
    else:
        job.restart()
        job.master.on_loss("worker-0", 0, job.now)
    assert job.notes[-3:] == [
        "the last checkpoint is lost, with the disk of the master that stored it",
        "steps 1 to 32 are repeated",
        "training restarts",
    ]
    assert job.master.job.state.rows == 0
    joined = job.master.join("worker-0", 1, job.now)
    assert joined is not None
    assert joined.resume == ""


def test_a_job_that_is_over_does_not_begin_anew_though_its_checkpoints_are_lost() -> None:
    job = Job(TRAIN, recovery=TrainerRecovery)
    box = job.worker()
    cut_after(job, box, 2)
    job.work(box)
    job.master.on_loss("worker-0", 0, job.now)
    job.lost_cuts.add("cut-1")
    job.restart()
    assert job.master.job.is_finished
    assert job.notes == []


def test_a_state_store_that_was_written_before_there_were_servers_is_read() -> None:
    job = Job(PREDICT)
    task = job.call(job.worker())
    assert task is not None
    kept = msgspec.msgpack.decode(encoding.encode(job.master.to_store()[0]))
    del kept["revoking"], kept["servers"]
    kept["leases"] = {number: lease[:8] for number, lease in kept["leases"].items()}
    job.master = job._master(encoding.decode(msgspec.msgpack.encode(kept), MasterState))
    assert list(job.master.state.leases) == [task.attempt]
    other = job.worker("worker-1")
    job.work(other)
    job.master.on_loss("worker-0", 0, job.now)
    job.work(other)
    assert job.master.job.is_finished


def test_a_request_that_was_overtaken_by_a_later_one_changes_nothing() -> None:
    job = Job(TRAIN)
    box = job.worker()
    late = box.request(ALL)
    task = job.call(box)
    assert task is not None
    assert not job.master.exchange(late, job.now).tasks
    box.report("done", finished(task))
    job.call(box, {})
    assert job.master.job.state.rows == task.rows


# Backups of tasks that take long --------------------------------------------------------------------------------


class Straggling(Job):
    """Tasks of which worker-0 has one since the start; worker-1 has done the others, one a second."""

    def __init__(self, tasks: int = 6) -> None:
        super().__init__(Plan("predict", tasks * STREAMED_ROWS))
        self.slow, self.quick = self.worker(), self.worker("worker-1")
        found = self.call(self.slow)
        assert found is not None
        self.task = found
        for _ in range(tasks - 1):
            task = self.call(self.quick)
            assert task is not None
            self.pass_time(1)
            self.quick.report("done", finished(task))
            self.call(self.quick, {})

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.master.tick(self.now)
            self.call(self.slow, {})


def test_a_task_that_takes_long_at_the_end_is_given_to_an_idle_worker_as_well() -> None:
    job = Straggling()
    backup = job.call(job.quick)
    assert backup is not None
    assert (backup.id, backup.start, backup.end) == (job.task.id, job.task.start, job.task.end)
    assert backup.attempt > job.task.attempt
    assert "takes long on worker-0: worker-1 does it too" in job.notes[-1]
    job.pass_time(10)
    assert job.call(job.worker("worker-2")) is None  # two are enough


@pytest.mark.parametrize(("others", "is_late"), [(LEAST_DONE - 1, False), (LEAST_DONE, True)])
def test_a_task_takes_long_only_beside_enough_others(others: int, is_late: bool) -> None:
    job = Straggling(others + 1)
    job.pass_time(5)
    assert (job.call(job.quick) is not None) == is_late


def test_tasks_held_in_advance_count_though_they_were_never_named_as_begun() -> None:
    job = Job(Plan("predict", (LEAST_DONE + 1) * STREAMED_ROWS))
    slow, quick = job.worker(), job.worker("worker-1")
    hanging, task = job.call(slow), job.call(quick, {"predict": LEAST_DONE})
    assert hanging is not None
    while task is not None:
        quick.report("done", finished(task))
        task = quick.take("predict") or job.call(quick, {"predict": LEAST_DONE})
    for _ in range(5):
        job.now += 1.0
        job.master.tick(job.now)
        job.call(slow, {})
        job.call(quick, {})
    backup = job.call(quick)
    assert backup is not None
    assert backup.id == hanging.id


def test_a_task_that_takes_no_longer_than_others_has_no_backup() -> None:
    job = Job(MANY)
    slow, quick = job.worker(), job.worker("worker-1")
    for box in (slow, quick, slow, quick):
        job.call(box)
        job.now += 5.0
        job.master.tick(job.now)
        task = next(iter(box._held.values())).task
        box.report("done", finished(task))
    assert job.call(slow) is not None
    job.now += 4.0
    assert job.call(quick) is not None
    job.master.tick(job.now)
    assert job.call(job.worker("worker-2")) is None


@pytest.mark.parametrize("first", ["the backup", "the first"])
def test_the_first_result_of_the_two_counts_and_the_other_one_is_void(first: str) -> None:
    job = Straggling()
    backup = job.call(job.quick)
    assert backup is not None
    boxes = {job.slow: job.task, job.quick: backup}
    winner, loser = (job.quick, job.slow) if first == "the backup" else (job.slow, job.quick)
    winner.report("done", finished(boxes[winner]))
    job.call(winner)
    assert job.master.is_finished
    job.call(loser, {})
    assert not loser.holds_lease(boxes[loser])
    loser.report("done", finished(boxes[loser]))
    job.call(loser, {})
    assert job.master.state.done["predict"] == 6


@pytest.mark.parametrize("restarts", [False, True])
def test_a_task_goes_back_only_when_both_workers_are_lost(*, restarts: bool) -> None:
    job = Straggling()
    backup = job.call(job.quick)
    assert backup is not None
    if restarts:
        job.master = job._master(encoding.decode(encoding.encode(job.master.to_store()[0]), MasterState))
    third = job.worker("worker-2")
    job.master.on_loss("worker-0", 0, job.now)
    assert job.call(third) is None
    job.master.on_loss("worker-1", 0, job.now)
    again = job.call(third)
    assert again is not None
    assert again.id == job.task.id
