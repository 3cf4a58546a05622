"""Jobs with instances that keep ending, hang or never register: they get on, or fail."""

from __future__ import annotations

from edl.cluster import Change, Instance
from edl.master.instances.instance_manager import REGISTER_SECS, SILENT_LEASES, InstanceManager
from edl.master.instances.slots import ScaleAction
from edl.master.tasks.recovery import TrainerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.spec import Training
from edl.tasks.job_state import Plan
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import Report, Task
from edl.worker.outbox import Outbox
from tests.edl.master.group_stage import GroupStage
from tests.edl.master.managed import Job
from tests.edl.master.test_schedules import finished

LEASE = 10.0
PREDICT = Plan("predict", 40 * STREAMED_ROWS)
PAIR = ("worker-0", "worker-1")
TRAIN = Plan("train", 40 * LEAST_ROWS, 0, Training(batch_size=512))


class Trainers:
    """Task manager and instance manager of a training, and its workers."""

    def __init__(self, plan: Plan) -> None:
        self.now = 0.0
        self.leases = TaskManager(plan, None, TrainerRecovery, lease_secs=LEASE)
        self.instances = InstanceManager(self.leases, 1)

    def start(self) -> tuple[Instance, Outbox]:
        """Have the instance manager start its worker, which registers."""
        self.now += 60.0
        (action,) = self.instances.actions(self.now)
        self.instances.on_change(Change(action.instance, "running"), self.now)
        box = Outbox(action.instance.name, action.instance.incarnation)
        joined = self.leases.join(box.instance, box.incarnation, self.now)
        assert joined is not None
        box.apply_registration(joined)
        return action.instance, box

    def do_a_task(self, box: Outbox) -> None:
        box.on_answer(self.leases.exchange(box.request({"train": 1, "predict": 1}), self.now))
        task = box.take("train", "predict")
        assert task is not None
        box.report("done", finished(task))
        box.on_answer(self.leases.exchange(box.request({}), self.now))

    def checkpoint(self, box: Outbox) -> None:
        for kind in ("checkpoint", "checkpoint written"):
            box.report(kind, Report(Task(0, "train")), folder="a cut")  # type: ignore[arg-type]
        box.on_answer(self.leases.exchange(box.request({}), self.now))

    def crash(self, instance: Instance) -> None:
        self.instances.on_change(Change(instance, "ended", reason="failed", exit_code=1), self.now)


def test_a_trainer_that_always_crashes_before_its_first_checkpoint_fails_the_job() -> None:
    """Each does tasks, and each loss takes them back."""
    stage = Trainers(TRAIN)
    for _ in range(6):
        instance, box = stage.start()
        stage.do_a_task(box)
        stage.crash(instance)
    assert stage.leases.state.failed is not None
    assert "6 workers in a row ended without lasting progress" in stage.leases.state.failed.message


def test_a_trainer_that_crashes_after_each_checkpoint_gets_on() -> None:
    stage = Trainers(TRAIN)
    for _ in range(20):
        instance, box = stage.start()
        stage.do_a_task(box)
        stage.checkpoint(box)
        stage.crash(instance)
    assert stage.leases.state.failed is None


class Group(GroupStage):
    """A group of two, and the instance manager that starts its workers again."""

    def __init__(self) -> None:
        super().__init__(PAIR, TRAIN)
        self.instances = InstanceManager(self.master, len(PAIR))
        self.instances.actions(self.now)
        self.train_together(PAIR)

    def crash(self, name: str) -> None:
        incarnation = self.incarnations[name]
        change = Change(Instance(name, "worker", incarnation), "ended", reason="failed", exit_code=1)
        self.instances.on_change(change, self.now)
        if not self.master.is_finished:
            self.now += 60.0
            (action,) = self.instances.actions(self.now)
            assert action.instance.name == name
            self.start(name)

    def do_a_task(self) -> None:
        leader = self.present.members[0]
        task = self.take(leader)
        assert task is not None
        self.held[leader].clear()
        self.say(leader, finished(task))


def test_a_group_gets_on_while_it_does_tasks_though_its_members_crash_in_turn() -> None:
    stage = Group()
    for number in range(20):
        if stage.master.job.waits("train"):
            stage.do_a_task()
        gone, stays = PAIR[number % 2], PAIR[1 - number % 2]
        stage.crash(gone)
        stage.train_together((gone, stays))
    assert stage.master.state.generation == 1


def test_a_group_that_always_crashes_at_the_same_place_fails_the_job() -> None:
    stage = Group()
    while not stage.master.is_finished:
        stage.do_a_task()
        for name in PAIR:
            stage.crash(name)
        if not stage.master.is_finished:
            stage.train_together(PAIR)
    assert stage.master.state.failed is not None
    assert "6 workers in a row ended without lasting progress" in stage.master.state.failed.message


def test_workers_that_do_a_task_each_before_they_crash_get_on() -> None:
    stage = Trainers(PREDICT)
    for _ in range(20):
        instance, box = stage.start()
        stage.do_a_task(box)
        stage.crash(instance)
    assert stage.leases.state.failed is None


def test_a_process_that_hangs_is_ended_once_and_replaced() -> None:
    stage = Trainers(PREDICT)
    instance, _ = stage.start()
    actions = []
    for _ in range(5 * SILENT_LEASES * int(LEASE)):
        stage.now += 1.0
        stage.leases.tick(stage.now)
        actions += stage.instances.actions(stage.now)
    assert [(action.instance, action.stop) for action in actions] == [(instance, True)]
    stage.instances.on_change(Change(instance, "ended", reason="stopped"), stage.now)
    (action,) = stage.instances.actions(stage.now)
    assert (action.instance.incarnation, action.stop) == (instance.incarnation + 1, False)


def test_a_worker_that_never_registers_is_ended_and_the_job_fails_if_all_do() -> None:
    job = Job(1, patience=2)
    now = 0.0
    for incarnation in (0, 1):
        now += 10.0
        assert job.started(now) == [("worker-0", incarnation)]
        instance = Instance("worker-0", "worker", incarnation)
        job.instances.on_change(Change(instance, "running"), now)
        now += 10_000.0  # this machine slept
        for _ in range(int(REGISTER_SECS) - 1):
            assert job.instances.actions(now) == []
            now += 1.0
        assert job.instances.actions(now) == []
        assert job.instances.actions(now + 1.0) == [ScaleAction(instance, stop=True, grace=0.0)]
        job.instances.on_change(Change(instance, "ended", reason="stopped", exit_code=-9), now)
    assert job.leases.state.failed is not None
    assert "the last, worker-0, hung: it never registered" in job.leases.state.failed.message
    assert job.leases.state.failed.hint == "look there; its log: worker-0"
    assert job.notes[:2] == [
        "worker-0 has run for 31 s, and has not reached the master; why: worker-0; look there",
        "worker-0 has not registered for 120 s and is stopped",
    ]


def test_an_instance_that_has_not_reached_the_master_is_reported_until_it_does() -> None:
    job = Job(2)
    job.started(0.0)
    for name in PAIR:
        job.instances.on_change(Change(Instance(name, "worker", 0), "running"), 0.0)
    job.leases.join("worker-1", 0, 0.0)
    for second in range(1, 41):
        job.instances.actions(float(second))
    assert [job.instances.cut_off(name) for name in PAIR] == [
        "has not reached the master for 40 s; why: worker-0; look there",
        "",
    ]
    assert [note for note in job.notes if "worker-1" in note] == []
    job.leases.join("worker-0", 0, 41.0)
    job.instances.actions(41.0)
    assert job.instances.cut_off("worker-0") == ""
    assert job.notes[-1] == "worker-0 has reached the master after 40 s"


def test_a_worker_that_has_registered_may_be_slow() -> None:
    job = Job(1)
    job.started(0.0)
    job.instances.on_change(Change(Instance("worker-0", "worker", 0), "running"), 0.0)
    job.leases.join("worker-0", 0, 1.0)
    assert not any(job.instances.actions(float(now)) for now in range(2 * int(REGISTER_SECS)))


def test_a_worker_that_speaks_again_soon_is_left_in_its_place() -> None:
    stage = Trainers(PREDICT)
    _, box = stage.start()
    for _ in range(int(2 * LEASE)):
        stage.now += 1.0
        stage.leases.tick(stage.now)
    stage.leases.join(box.instance, box.incarnation, stage.now)
    stage.now += 2 * LEASE
    assert stage.instances.actions(stage.now) == []
