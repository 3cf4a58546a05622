"""Instances where there is less room than wanted, and workers that stand in for servers."""

from __future__ import annotations

import pytest

from edl.cluster import Change, Instance, NoRoomError, Room
from edl.ps.checkpoint.content import Mode
from edl.tasks.protocol import Flag
from edl.worker.outbox import Outbox
from tests.edl.master.managed import Job, names, served
from tests.edl.master.stage import Stage

LEASE = 10.0


def test_there_are_no_more_instances_than_there_is_room_for_and_the_others_wait() -> None:
    job = Job(3)
    job.instances.on_resize(Room(0))
    assert job.instances.actions(0.0) == []
    assert job.instances.waiting == ["worker-0", "worker-1", "worker-2"]
    job.instances.on_resize(Room(2))
    assert job.started(0.0) == [("worker-0", 0), ("worker-1", 0)]
    assert (job.started(1.0), job.instances.waiting) == ([], ["worker-2"])
    assert (job.instances.starting_count, job.instances.running) == (2, 0)
    job.instances.on_change(Change(Instance("worker-0", "worker", 0), "running"), 1.0)
    assert (job.instances.starting_count, job.instances.running) == (1, 1)
    job.instances.on_resize(Room(3))
    assert (job.started(2.0), job.instances.waiting) == ([("worker-2", 0)], [])


def test_the_youngest_workers_leave_once_where_room_shrinks_and_come_again_where_it_grows() -> None:
    job = Job(3, patience=3)
    job.started(0.0)
    for incarnation in range(10):
        job.on_end("worker-0", incarnation, "preempted")
        assert job.started(1.0 + incarnation) == [("worker-0", incarnation + 1)]
        job.instances.on_resize(Room(2))
        [action] = job.instances.actions(1.0 + incarnation)
        assert (action.stop, action.instance.key) == (True, ("worker-0", incarnation + 1))
        assert job.instances.actions(1.5 + incarnation) == []
        job.instances.on_resize(Room(3))
        assert job.instances.actions(1.5 + incarnation) == []  # it leaves, and is there until then
    job.on_end("worker-0", 10, "stopped")
    assert job.started(20.0) == [("worker-0", 11)]
    assert not job.leases.is_finished


def test_one_that_left_for_want_of_room_waits_and_costs_nothing() -> None:
    job = Job(2, patience=1)
    job.started(0.0)
    job.instances.on_resize(Room(1))
    assert names(job.instances.actions(0.0), stop=True) == ["worker-1"]
    job.on_end("worker-1", 0, "stopped")
    assert (job.instances.actions(0.0), job.instances.waiting) == ([], ["worker-1"])
    assert not job.leases.is_finished
    job.instances.on_resize(Room(2))
    assert job.started(0.0) == [("worker-1", 1)]


def test_who_forms_groups_is_told_how_many_workers_there_is_room_for() -> None:
    stage, instances = served()
    told: list[int] = []
    stage.leases.want = told.append  # type: ignore[method-assign]
    instances.on_resize(Room(3))
    instances.scale(7)
    instances.on_resize(Room(8))
    instances.on_resize(Room(20))
    assert told == [1, 1, 6, 7]


def test_servers_have_their_room_before_workers_and_keep_it_when_they_die() -> None:
    _, instances = served(patience=9)
    instances.on_resize(Room(3))
    assert names(instances.actions(0.0), stop=False) == ["ps-0", "ps-1", "worker-0"]
    for incarnation in range(3):
        instances.on_change(Change(Instance("ps-1", "ps", incarnation), "ended", reason="killed"), 0.0)
        early = names(instances.actions(0.0), stop=False)
        assert (early or names(instances.actions(100.0), stop=False)) == ["ps-1"]
    instances.on_resize(Room(2))
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
            self.instances.on_change(Change(action.instance, "running"), 0.0)
        self.stage.open()
        self.stage.complete()
        self.instances.on_change(Change(Instance("ps-1", "ps", 0), "ended", reason="killed"), 0.0)
        [action] = self.instances.actions(0.0)
        if withdrawn:
            self.instances.on_change(Change(action.instance, "ended", reason="no room"), 0.0)
        else:
            self.instances.on_refusal(action.instance, NoRoomError("all slots are taken"), 0.0)

    def flags(self, box: Outbox) -> Flag:
        box.on_answer(self.stage.leases.exchange(box.request({}), self.stage.now))
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
        job.instances.on_change(Change(Instance("ps-1", "ps", incarnation), "ended", reason="no room"), 0.0)
    assert job.stage.leases.state.failed is None
    assert job.instances.waiting == ["ps-1"]
    assert job.instances.slots["ps-1"][1] == 1  # it was killed once


@pytest.mark.parametrize("registered", [True, False])
def test_a_stand_in_that_dies_leaves_the_place_to_the_server(registered: bool) -> None:
    job = StandIns()
    if registered:
        job.take_over()
        job.started()
    job.instances.on_change(Change(Instance("worker-1", "worker", 0), "ended", reason="killed"), 900.0)
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
    job.instances.on_resize(Room(4))
    assert job.instances.actions(job.stage.now) == []
    job.instances.on_resize(Room(3))
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
