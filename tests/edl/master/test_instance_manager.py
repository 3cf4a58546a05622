"""How many workers there are, and who is replaced when."""

from __future__ import annotations

import pytest

from edl.cluster import Change, Instance, NoRoomError, Reason, Room
from edl.errors import ClusterError
from edl.master.instances.instance_manager import (
    LONGEST_WAIT,
    REGISTER_SECS,
    SILENT_LEASES,
    InstanceManager,
    ScaleAction,
)
from edl.master.state import MasterState
from edl.master.tasks.recovery import TrainerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.ps.messages import Mode
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Flag
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import Report, Task
from edl.worker.outbox import Outbox
from tests.edl.master.group_stage import GroupStage
from tests.edl.master.stage import Stage
from tests.edl.master.test_schedules import finished

LEASE = 10.0
PREDICT = Plan("predict", 40 * STREAMED_ROWS)
PAIR = ("worker-0", "worker-1")
TRAIN = Plan("train", 40 * LEAST_ROWS, 0, Training(batch_size=512))


class Job:
    def __init__(self, workers: int, *, patience: int = 0) -> None:
        self.notes: list[str] = []
        self.leases = TaskManager(PREDICT, log=self.notes.append)
        self.instances = InstanceManager(self.leases, workers, patience=patience, advice="look there")

    def started(self, now: float) -> list[tuple[str, int]]:
        return [action.instance.key for action in self.instances.actions(now)]

    def ended(self, name: str, incarnation: int, reason: Reason, now: float = 0.0) -> None:
        change = Change(Instance(name, "worker", incarnation), "ended", reason=reason, exit_code=1)
        self.instances.changed(change, now)


def test_as_many_workers_are_started_as_are_wanted_once() -> None:
    job = Job(2)
    assert job.started(0.0) == [("worker-0", 0), ("worker-1", 0)]
    assert job.started(1.0) == []


def test_the_first_to_end_is_replaced_at_once_and_the_next_ones_after_longer_and_longer() -> None:
    job = Job(1, patience=100)
    job.started(0.0)
    job.ended("worker-0", 0, "killed")
    assert job.started(0.0) == [("worker-0", 1)]
    waits = []
    now = 0.0
    for incarnation in range(1, 9):
        job.ended("worker-0", incarnation, "killed", now)
        began = now
        while not job.started(now):
            now += 0.1
        waits.append(round(now - began, 1))
    assert waits[0] < 0.3
    assert waits == sorted(waits)
    assert waits[-1] <= 5.1


def test_a_name_that_keeps_ending_waits_longer_and_longer_though_another_worker_gets_on() -> None:
    job = Job(2, patience=100)
    job.started(0.0)
    joined = job.leases.join("worker-0", 0, 0.0)
    assert joined is not None
    mailbox = Outbox("worker-0", 0)
    mailbox.joined(joined)
    now, waits = 0.0, []
    for incarnation in range(10):
        mailbox.answered(job.leases.exchange(mailbox.request({"predict": 1}), now))
        task = mailbox.take("predict")
        assert task is not None
        mailbox.report("done", Report(task, task.rows))
        mailbox.answered(job.leases.exchange(mailbox.request({}), now))
        job.ended("worker-1", incarnation, "killed", now)
        began = now
        while not job.started(now):
            now += 1 / 16
        waits.append(now - began)
    assert waits[0] == 0.0
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(LONGEST_WAIT, abs=1 / 16)


@pytest.mark.parametrize(
    ("reason", "code", "detail", "said"),
    [
        ("killed", -9, "killed by SIGKILL", "killed by SIGKILL"),
        ("failed", 1, "exit code 1", "failed (exit code 1)"),
        ("failed", 1, "the node is gone", "failed (exit code 1): the node is gone"),
        ("lost", None, "", "lost"),
    ],
)
def test_how_a_worker_ended_is_said_once(reason: Reason, code: int | None, detail: str, said: str) -> None:
    job = Job(1, patience=1)
    job.started(0.0)
    change = Change(Instance("worker-0", "worker", 0), "ended", reason=reason, exit_code=code, detail=detail)
    job.instances.changed(change, 0.0)
    failed = job.leases.state.failed
    assert failed is not None
    assert failed.message.endswith(f"the last, worker-0, {said}")


def test_workers_that_end_with_nothing_done_fail_the_job_and_say_where_to_look() -> None:
    job = Job(1, patience=3)
    job.started(0.0)
    for incarnation in range(3):
        assert not job.leases.finished
        job.ended("worker-0", incarnation, "failed")
        job.started(100.0)
    failed = job.leases.state.failed
    assert failed is not None
    assert failed.message.startswith(
        "3 workers in a row ended without lasting progress; the last, worker-0, failed"
    )
    assert job.started(1000.0) == []


def starved(incarnation: int, *, remedied: bool = False) -> Change:
    worker = Instance("worker-0", "worker", incarnation)
    detail = "out of memory (limit 2Gi)"
    return Change(worker, "ended", "", "out of memory", -9, detail, "take 4Gi", remedied)


def test_who_runs_out_of_memory_is_told_each_time_though_it_had_not_begun() -> None:
    job = Job(1)
    job.started(0.0)
    for incarnation in range(2):
        job.instances.changed(starved(incarnation), 0.0)
        job.started(100.0)
    assert job.notes == ["worker-0 ran out of memory (limit 2Gi)"] * 2
    assert job.instances.ending("worker-0") == "ran out of memory (limit 2Gi)"
    assert job.instances.notes == ("workers ran out of memory 2 times; take 4Gi",)


def test_ends_after_which_the_next_one_gets_more_memory_never_fail_the_job() -> None:
    job = Job(1, patience=1)
    job.started(0.0)
    for incarnation in range(5):
        job.instances.changed(starved(incarnation, remedied=True), 0.0)
        assert job.started(0.0) == [("worker-0", incarnation + 1)]
    job.instances.changed(starved(5), 0.0)
    assert job.leases.state.failed is not None


def test_a_job_that_fails_for_want_of_memory_says_that_and_what_to_do() -> None:
    job = Job(1, patience=1)
    job.started(0.0)
    job.instances.changed(starved(0), 0.0)
    failed = job.leases.state.failed
    assert failed is not None
    assert failed.message.endswith("the last, worker-0, ran out of memory (limit 2Gi)")
    assert failed.hint == "take 4Gi; its log: worker-0"


def test_preempted_workers_never_fail_the_job() -> None:
    job = Job(1, patience=3)
    job.started(0.0)
    for incarnation in range(50):
        job.ended("worker-0", incarnation, "preempted")
        assert job.started(0.0) == [("worker-0", incarnation + 1)]


def test_a_task_that_is_done_in_between_gives_new_patience() -> None:
    job = Job(1, patience=3)
    job.started(0.0)
    for incarnation in range(20):
        job.leases.state.done["predict"] = incarnation
        job.ended("worker-0", incarnation, "killed")
        job.started(100.0)
    assert not job.leases.finished


def test_a_change_of_an_earlier_start_is_nothing() -> None:
    job = Job(1)
    job.started(0.0)
    job.ended("worker-0", 0, "killed")
    job.started(0.0)
    job.ended("worker-0", 0, "killed")
    assert job.started(0.0) == []


def test_fewer_workers_are_stopped_and_more_are_started() -> None:
    job = Job(3)
    job.started(0.0)
    assert [action.instance.key for action in job.instances.scale(1)] == [("worker-1", 0), ("worker-2", 0)]
    job.ended("worker-1", 0, "stopped")
    job.ended("worker-2", 0, "stopped")
    assert job.started(0.0) == []
    assert job.instances.scale(2) == []
    assert job.started(0.0) == [("worker-1", 1)]


def test_the_next_master_knows_how_many_workers_are_wanted_and_stops_those_beyond() -> None:
    job = Job(3)
    job.started(0.0)
    job.instances.scale(2)
    state = encoding.decode(encoding.encode(job.leases.state), MasterState)
    instances = InstanceManager(TaskManager(PREDICT, state), 3)
    running = [Change(Instance(f"worker-{number}", "worker"), "running") for number in range(3)]
    instances.found(running, 0.0)
    assert instances.wanted == 2
    assert names(instances.actions(0.0), stop=True) == ["worker-2"]
    assert instances.actions(1.0) == []


def test_a_worker_that_waits_for_room_and_is_not_wanted_any_more_was_never_requested() -> None:
    job = Job(3)
    job.instances.resized(Room(2))
    assert job.started(0.0) == [("worker-0", 0), ("worker-1", 0)]
    assert job.instances.waiting == ["worker-2"]
    assert job.instances.scale(2) == []
    assert (job.instances.waiting, job.instances.starting) == ([], 2)
    job.instances.scale(3)
    job.instances.resized(Room(3))
    assert job.started(0.0) == [("worker-2", 0)]
    assert job.instances.slots["worker-2"][1] == 0


def test_a_worker_that_is_refused_after_fewer_are_wanted_does_not_wait() -> None:
    job = Job(2)
    job.started(0.0)
    job.instances.scale(1)
    job.instances.refused(Instance("worker-1", "worker"), NoRoomError("all slots are taken"), 0.0)
    assert job.started(0.0) == []
    assert job.instances.waiting == []


def served(*, patience: int = 0) -> tuple[Stage, InstanceManager]:
    stage = Stage(Mode("async"))
    return stage, InstanceManager(stage.leases, 2, stage.servers, patience=patience)


def test_servers_are_started_before_workers_and_scaling_is_about_workers() -> None:
    _, instances = served()
    started = [action.instance for action in instances.actions(0.0)]
    assert [(each.name, each.role) for each in started] == [
        ("ps-0", "ps"),
        ("ps-1", "ps"),
        ("worker-0", "worker"),
        ("worker-1", "worker"),
    ]
    assert [action.instance.name for action in instances.scale(0)] == ["worker-0", "worker-1"]
    assert instances.actions(0.0) == []


def test_servers_that_end_with_no_checkpoint_in_between_fail_the_job_whatever_workers_do() -> None:
    stage, instances = served(patience=3)
    instances.actions(0.0)
    for incarnation in range(3):
        assert not stage.leases.finished
        stage.leases.state.done["train"] = incarnation
        instances.changed(Change(Instance("ps-1", "ps", incarnation), "ended", reason="out of memory"), 0.0)
        instances.actions(100.0)
    assert stage.leases.state.failed is not None
    assert stage.leases.state.failed.message == (
        "3 parameter servers in a row ended without lasting progress; the last, ps-1, ran out of memory"
    )


def test_a_server_that_ends_is_replaced_by_the_next_of_its_name() -> None:
    stage, instances = served()
    instances.actions(0.0)
    stage.open()
    instances.changed(Change(Instance("ps-1", "ps", 0), "ended", reason="killed"), 0.0)
    assert stage.leases.state.servers[1].address == ""
    assert [action.instance for action in instances.actions(0.0)] == [Instance("ps-1", "ps", 1)]


def test_a_cluster_that_refuses_is_asked_again() -> None:
    job = Job(1)
    [action] = job.instances.actions(0.0)
    job.instances.refused(action.instance, ClusterError("there is no room"), 0.0)
    assert job.started(0.0) == [("worker-0", 1)]


def test_a_cluster_without_room_is_asked_for_the_same_start_later_and_later_and_never_fails_the_job() -> None:
    job = Job(1, patience=3)
    now, waits = 0.0, []
    for _ in range(20):
        [action] = job.instances.actions(now)
        assert action.instance.key == ("worker-0", 0)
        job.instances.refused(action.instance, NoRoomError("all slots are taken"), now)
        began = now
        while not job.instances._slots["worker-0"].not_before <= now:
            now += 0.05
        waits.append(round(now - began, 1))
    assert waits == sorted(waits)
    assert waits[-1] < 5.2
    assert not job.leases.finished
    assert job.notes == ["worker-0 waits: all slots are taken"]


def names(actions: list[ScaleAction], *, stop: bool) -> list[str]:
    return [action.instance.name for action in actions if action.stop == stop]


def test_there_are_no_more_instances_than_there_is_room_for_and_the_others_wait() -> None:
    job = Job(3)
    job.instances.resized(Room(0))
    assert job.instances.actions(0.0) == []
    assert job.instances.waiting == ["worker-0", "worker-1", "worker-2"]
    job.instances.resized(Room(2))
    assert job.started(0.0) == [("worker-0", 0), ("worker-1", 0)]
    assert (job.started(1.0), job.instances.waiting) == ([], ["worker-2"])
    assert (job.instances.starting, job.instances.running) == (2, 0)
    job.instances.changed(Change(Instance("worker-0", "worker", 0), "running"), 1.0)
    assert (job.instances.starting, job.instances.running) == (1, 1)
    job.instances.resized(Room(3))
    assert (job.started(2.0), job.instances.waiting) == ([("worker-2", 0)], [])


def test_the_youngest_workers_leave_once_where_room_shrinks_and_come_again_where_it_grows() -> None:
    job = Job(3, patience=3)
    job.started(0.0)
    for incarnation in range(10):
        job.ended("worker-0", incarnation, "preempted")
        assert job.started(1.0 + incarnation) == [("worker-0", incarnation + 1)]
        job.instances.resized(Room(2))
        [action] = job.instances.actions(1.0 + incarnation)
        assert (action.stop, action.instance.key) == (True, ("worker-0", incarnation + 1))
        assert job.instances.actions(1.5 + incarnation) == []
        job.instances.resized(Room(3))
        assert job.instances.actions(1.5 + incarnation) == []  # it leaves, and is there until then
    job.ended("worker-0", 10, "stopped")
    assert job.started(20.0) == [("worker-0", 11)]
    assert not job.leases.finished


def test_one_that_left_for_want_of_room_waits_and_costs_nothing() -> None:
    job = Job(2, patience=1)
    job.started(0.0)
    job.instances.resized(Room(1))
    assert names(job.instances.actions(0.0), stop=True) == ["worker-1"]
    job.ended("worker-1", 0, "stopped")
    assert (job.instances.actions(0.0), job.instances.waiting) == ([], ["worker-1"])
    assert not job.leases.finished
    job.instances.resized(Room(2))
    assert job.started(0.0) == [("worker-1", 1)]


def test_who_forms_groups_is_told_how_many_workers_there_is_room_for() -> None:
    stage, instances = served()
    told: list[int] = []
    stage.leases.want = told.append  # type: ignore[method-assign]
    instances.resized(Room(3))
    instances.scale(7)
    instances.resized(Room(8))
    instances.resized(Room(20))
    assert told == [1, 1, 6, 7]


def test_servers_have_their_room_before_workers_and_keep_it_when_they_die() -> None:
    _, instances = served(patience=9)
    instances.resized(Room(3))
    assert names(instances.actions(0.0), stop=False) == ["ps-0", "ps-1", "worker-0"]
    for incarnation in range(3):
        instances.changed(Change(Instance("ps-1", "ps", incarnation), "ended", reason="killed"), 0.0)
        early = names(instances.actions(0.0), stop=False)
        assert (early or names(instances.actions(100.0), stop=False)) == ["ps-1"]
    instances.resized(Room(2))
    assert names(instances.actions(100.0), stop=True) == ["worker-0"]


class StandIns:
    """Two servers and two workers that run; then the second server is killed, and there is no room for another."""

    def __init__(self, workers: int = 2, *, withdrawn: bool = False) -> None:
        """withdrawn: the server was taken, and given up as it waited for a place."""
        self.stage = Stage(Mode("async"))
        self.instances = self.stage.instances
        self.instances.wanted = workers
        self.boxes = [self.stage.worker(f"worker-{number}") for number in range(workers)]
        for action in self.instances.actions(0.0):
            self.instances.changed(Change(action.instance, "running"), 0.0)
        self.stage.open()
        self.stage.complete()
        self.instances.changed(Change(Instance("ps-1", "ps", 0), "ended", reason="killed"), 0.0)
        [action] = self.instances.actions(0.0)
        if withdrawn:
            self.instances.changed(Change(action.instance, "ended", reason="no room"), 0.0)
        else:
            self.instances.refused(action.instance, NoRoomError("all slots are taken"), 0.0)

    def flags(self, box: Outbox) -> Flag:
        box.answered(self.stage.leases.exchange(box.request({}), self.stage.now))
        return box.flags

    def take_over(self) -> None:
        """The last worker has become a server."""
        last = self.boxes[-1].instance
        assert self.stage.servers.register(last, 0, "a:1", self.stage.now) is not None
        self.stage.talk()

    def started(self) -> list[tuple[str, int]]:
        return [action.instance.key for action in self.instances.actions(1000.0) if not action.stop]


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a6_where_there_is_no_room_for_a_server_the_last_worker_stands_in(withdrawn: bool) -> None:
    job = StandIns(withdrawn=withdrawn)
    assert [bool(job.flags(box) & Flag.TAKE_OVER) for box in job.boxes] == [False, True]
    assert job.started() == []  # neither the server nor another worker
    job.take_over()
    assert job.stage.leases.servers is not None
    assert job.stage.leases.servers.ready
    assert job.stage.leases.servers.addresses == ("ps-0:0", "a:1")
    assert job.started() == [("worker-1", 1)]  # when there is room
    assert job.instances.workers == ["worker-0"]
    assert job.stage.leases.state.members["worker-1"].gone


def test_the_only_worker_goes_on_training() -> None:
    job = StandIns(workers=1)
    assert not job.flags(job.boxes[0]) & Flag.TAKE_OVER
    assert job.started() == [("ps-1", 1)]


def test_a_server_that_was_given_up_for_want_of_room_is_started_anew_and_nobody_is_to_blame() -> None:
    job = StandIns(workers=1, withdrawn=True)
    for incarnation in range(2, 20):
        assert job.started() == [("ps-1", incarnation)]
        job.instances.changed(Change(Instance("ps-1", "ps", incarnation), "ended", reason="no room"), 0.0)
    assert job.stage.leases.state.failed is None
    assert job.instances.waiting == ["ps-1"]
    assert job.instances.slots["ps-1"][1] == 1  # it was killed once


@pytest.mark.parametrize("registered", [True, False])
def test_a_stand_in_that_dies_leaves_the_place_to_the_server(registered: bool) -> None:
    job = StandIns()
    if registered:
        job.take_over()
        job.started()
    job.instances.changed(Change(Instance("worker-1", "worker", 0), "ended", reason="killed"), 900.0)
    assert job.stage.leases.state.servers[1].address == ""
    assert "ps-1" in [name for name, _ in job.started()]


def test_a_stand_in_is_not_ended_for_being_no_worker_any_more() -> None:
    job = StandIns()
    job.take_over()
    job.started()
    for _ in range(10 * int(LEASE)):
        job.stage.talk(1.0)
        job.stage.leases.exchange(job.boxes[0].request({}), job.stage.now)
        job.stage.leases.tick(job.stage.now)
        stopped = [action.instance.name for action in job.instances.actions(job.stage.now) if action.stop]
        assert stopped == []


@pytest.mark.parametrize("registered", [True, False])
def test_a_stand_in_is_no_worker_that_leaves_where_room_shrinks(registered: bool) -> None:
    job = StandIns(workers=3)
    if registered:
        job.take_over()
    job.instances.resized(Room(4))
    assert job.instances.actions(job.stage.now) == []
    job.instances.resized(Room(3))
    assert names(job.instances.actions(job.stage.now), stop=True) == ["worker-1"]


@pytest.mark.parametrize("registered", [True, False])
def test_a_stand_in_is_no_worker_that_leaves_where_fewer_are_wanted(registered: bool) -> None:
    job = StandIns(workers=3)
    if registered:
        job.take_over()
    assert names(job.instances.scale(1), stop=True) == ["worker-1"]
    assert names(job.instances.actions(job.stage.now), stop=True) == []


def test_a_new_master_knows_who_stands_in() -> None:
    job = StandIns()
    job.take_over()
    job.stage.restart()
    running = [Instance("ps-0", "ps"), Instance("worker-0", "worker"), Instance("worker-1", "worker")]
    job.stage.instances.wanted = 2
    job.stage.instances.found([Change(instance, "running") for instance in running], job.stage.now)
    assert [action.instance.key for action in job.stage.instances.actions(job.stage.now)] == [("worker-1", 1)]
    job.stage.talk()
    assert job.stage.leases.servers is not None
    assert job.stage.leases.servers.ready


def test_a_new_master_finds_who_runs_and_misses_who_does_not() -> None:
    job = Job(2)
    for name in ("worker-0", "worker-1"):
        job.leases.join(name, 4, 0.0)
    job.instances.found([Change(Instance("worker-0", "worker", 4), "running", "pid 1")], 0.0)
    assert job.started(0.0) == [("worker-1", 5)]
    assert job.leases.state.members["worker-1"].gone
    assert not job.leases.state.members["worker-0"].gone


def test_a_new_master_counts_the_starts_that_earlier_ones_gave() -> None:
    """Be it of one that registered, or of one that the cluster alone knows of."""
    job = Job(3)
    job.leases.join("worker-0", 2, 0.0)
    running = [
        Instance("worker-0", "worker", 2),
        Instance("worker-1", "worker", 1),
        Instance("worker-2", "worker"),
    ]
    job.instances.found([Change(instance, "running") for instance in running], 0.0)
    assert {name: relaunches for name, (_, relaunches) in job.instances.slots.items()} == {
        "worker-0": 2,
        "worker-1": 1,
        "worker-2": 0,
    }
    job.ended("worker-1", 1, "killed")
    assert job.started(0.0) == [("worker-1", 2)]
    assert job.instances.slots["worker-1"][1] == 2


class Trainers:
    """A crew, its leases, and workers that do what they are told."""

    def __init__(self, plan: Plan) -> None:
        self.now = 0.0
        self.leases = TaskManager(plan, None, TrainerRecovery, lease_secs=LEASE)
        self.instances = InstanceManager(self.leases, 1)

    def start(self) -> tuple[Instance, Outbox]:
        """Have the crew start its worker, which registers."""
        self.now += 60.0
        (action,) = self.instances.actions(self.now)
        self.instances.changed(Change(action.instance, "running"), self.now)
        box = Outbox(action.instance.name, action.instance.incarnation)
        joined = self.leases.join(box.instance, box.incarnation, self.now)
        assert joined is not None
        box.joined(joined)
        return action.instance, box

    def do_a_task(self, box: Outbox) -> None:
        box.answered(self.leases.exchange(box.request({"train": 1, "predict": 1}), self.now))
        task = box.take("train", "predict")
        assert task is not None
        box.report("done", finished(task))
        box.answered(self.leases.exchange(box.request({}), self.now))

    def checkpoint(self, box: Outbox) -> None:
        for kind in ("checkpoint", "checkpoint written"):
            box.report(kind, Report(Task(0, "train")), folder="a cut")  # type: ignore[arg-type]
        box.answered(self.leases.exchange(box.request({}), self.now))

    def crash(self, instance: Instance) -> None:
        self.instances.changed(Change(instance, "ended", reason="failed", exit_code=1), self.now)


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


class Ring(GroupStage):
    """A ring of two, and the crew that starts its workers again."""

    def __init__(self) -> None:
        super().__init__(PAIR, TRAIN)
        self.instances = InstanceManager(self.master, len(PAIR))
        self.instances.actions(self.now)
        self.train_together(PAIR)

    def crash(self, name: str) -> None:
        incarnation = self.incarnations[name]
        change = Change(Instance(name, "worker", incarnation), "ended", reason="failed", exit_code=1)
        self.instances.changed(change, self.now)
        if not self.master.finished:
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


def test_a_group_whose_members_crash_in_turn_gets_on_while_it_does_tasks() -> None:
    stage = Ring()
    for number in range(20):
        if stage.master.job.waits("train"):
            stage.do_a_task()
        gone, stays = PAIR[number % 2], PAIR[1 - number % 2]
        stage.crash(gone)
        stage.train_together((gone, stays))
    assert stage.master.state.generation == 1


def test_a_group_that_always_crashes_at_the_same_place_fails_the_job() -> None:
    stage = Ring()
    while not stage.master.finished:
        stage.do_a_task()
        for name in PAIR:
            stage.crash(name)
        if not stage.master.finished:
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
    stage.instances.changed(Change(instance, "ended", reason="stopped"), stage.now)
    (action,) = stage.instances.actions(stage.now)
    assert (action.instance.incarnation, action.stop) == (instance.incarnation + 1, False)


def test_a_worker_that_never_registers_is_ended_and_the_job_fails_if_all_do() -> None:
    job = Job(1, patience=2)
    now = 0.0
    for incarnation in (0, 1):
        now += 10.0
        assert job.started(now) == [("worker-0", incarnation)]
        instance = Instance("worker-0", "worker", incarnation)
        job.instances.changed(Change(instance, "running"), now)
        now += 10_000.0  # this machine slept
        for _ in range(int(REGISTER_SECS) - 1):
            assert job.instances.actions(now) == []
            now += 1.0
        assert job.instances.actions(now) == []
        assert job.instances.actions(now + 1.0) == [ScaleAction(instance, stop=True, grace=0.0)]
        job.instances.changed(Change(instance, "ended", reason="stopped", exit_code=-9), now)
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
        job.instances.changed(Change(Instance(name, "worker", 0), "running"), 0.0)
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
    job.instances.changed(Change(Instance("worker-0", "worker", 0), "running"), 0.0)
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
