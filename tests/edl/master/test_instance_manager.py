"""How many instances there are, and which ones are replaced when."""

from __future__ import annotations

import pytest

from edl.cluster import Change, Instance, NoRoomError, Reason, Room
from edl.errors import ClusterError
from edl.master.instances.instance_manager import InstanceManager
from edl.master.instances.slots import LONGEST_WAIT
from edl.master.state import MasterState
from edl.master.tasks.task_manager import TaskManager
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.ranges import STREAMED_ROWS
from edl.tasks.task import Report
from edl.worker.outbox import Outbox
from tests.edl.master.managed import Job, names, served

PREDICT = Plan("predict", 40 * STREAMED_ROWS)


def test_as_many_workers_are_started_as_are_wanted_once() -> None:
    job = Job(2)
    assert job.started(0.0) == [("worker-0", 0), ("worker-1", 0)]
    assert job.started(1.0) == []


def test_the_first_to_end_is_replaced_at_once_and_the_next_ones_after_longer_and_longer() -> None:
    job = Job(1, patience=100)
    job.started(0.0)
    job.on_end("worker-0", 0, "killed")
    assert job.started(0.0) == [("worker-0", 1)]
    waits = []
    now = 0.0
    for incarnation in range(1, 9):
        job.on_end("worker-0", incarnation, "killed", now)
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
    outbox = Outbox("worker-0", 0)
    outbox.apply_registration(joined)
    now, waits = 0.0, []
    for incarnation in range(10):
        outbox.on_answer(job.leases.exchange(outbox.request({"predict": 1}), now))
        task = outbox.take("predict")
        assert task is not None
        outbox.report("done", Report(task, task.rows))
        outbox.on_answer(job.leases.exchange(outbox.request({}), now))
        job.on_end("worker-1", incarnation, "killed", now)
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
    job.instances.on_change(change, 0.0)
    failed = job.leases.state.failed
    assert failed is not None
    assert failed.message.endswith(f"the last, worker-0, {said}")


def test_workers_that_end_with_nothing_done_fail_the_job_and_say_where_to_look() -> None:
    job = Job(1, patience=3)
    job.started(0.0)
    for incarnation in range(3):
        assert not job.leases.is_finished
        job.on_end("worker-0", incarnation, "failed")
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
        job.instances.on_change(starved(incarnation), 0.0)
        job.started(100.0)
    assert job.notes == ["worker-0 ran out of memory (limit 2Gi)"] * 2
    assert job.instances.ending("worker-0") == "ran out of memory (limit 2Gi)"
    assert job.instances.notes == ("workers ran out of memory 2 times; take 4Gi",)


def test_ends_after_which_the_next_one_gets_more_memory_never_fail_the_job() -> None:
    job = Job(1, patience=1)
    job.started(0.0)
    for incarnation in range(5):
        job.instances.on_change(starved(incarnation, remedied=True), 0.0)
        assert job.started(0.0) == [("worker-0", incarnation + 1)]
    job.instances.on_change(starved(5), 0.0)
    assert job.leases.state.failed is not None


def test_a_job_that_fails_for_want_of_memory_says_that_and_what_to_do() -> None:
    job = Job(1, patience=1)
    job.started(0.0)
    job.instances.on_change(starved(0), 0.0)
    failed = job.leases.state.failed
    assert failed is not None
    assert failed.message.endswith("the last, worker-0, ran out of memory (limit 2Gi)")
    assert failed.hint == "take 4Gi; its log: worker-0"


def test_preempted_workers_never_fail_the_job() -> None:
    job = Job(1, patience=3)
    job.started(0.0)
    for incarnation in range(50):
        job.on_end("worker-0", incarnation, "preempted")
        assert job.started(0.0) == [("worker-0", incarnation + 1)]


def test_a_task_that_is_done_in_between_gives_new_patience() -> None:
    job = Job(1, patience=3)
    job.started(0.0)
    for incarnation in range(20):
        job.leases.state.done["predict"] = incarnation
        job.on_end("worker-0", incarnation, "killed")
        job.started(100.0)
    assert not job.leases.is_finished


def test_a_change_of_an_earlier_start_is_nothing() -> None:
    job = Job(1)
    job.started(0.0)
    job.on_end("worker-0", 0, "killed")
    job.started(0.0)
    job.on_end("worker-0", 0, "killed")
    assert job.started(0.0) == []


def test_fewer_workers_are_stopped_and_more_are_started() -> None:
    job = Job(3)
    job.started(0.0)
    assert [action.instance.key for action in job.instances.scale(1)] == [("worker-1", 0), ("worker-2", 0)]
    job.on_end("worker-1", 0, "stopped")
    job.on_end("worker-2", 0, "stopped")
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
    job.instances.on_resize(Room(2))
    assert job.started(0.0) == [("worker-0", 0), ("worker-1", 0)]
    assert job.instances.waiting == ["worker-2"]
    assert job.instances.scale(2) == []
    assert (job.instances.waiting, job.instances.starting_count) == ([], 2)
    job.instances.scale(3)
    job.instances.on_resize(Room(3))
    assert job.started(0.0) == [("worker-2", 0)]
    assert job.instances.slots["worker-2"][1] == 0


def test_a_worker_that_is_refused_after_fewer_are_wanted_does_not_wait() -> None:
    job = Job(2)
    job.started(0.0)
    job.instances.scale(1)
    job.instances.on_refusal(Instance("worker-1", "worker"), NoRoomError("all slots are taken"), 0.0)
    assert job.started(0.0) == []
    assert job.instances.waiting == []


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
        assert not stage.leases.is_finished
        stage.leases.state.done["train"] = incarnation
        instances.on_change(Change(Instance("ps-1", "ps", incarnation), "ended", reason="out of memory"), 0.0)
        instances.actions(100.0)
    assert stage.leases.state.failed is not None
    assert stage.leases.state.failed.message == (
        "3 parameter servers in a row ended without lasting progress; the last, ps-1, ran out of memory"
    )


def test_a_server_that_ends_is_replaced_by_the_next_of_its_name() -> None:
    stage, instances = served()
    instances.actions(0.0)
    stage.open()
    instances.on_change(Change(Instance("ps-1", "ps", 0), "ended", reason="killed"), 0.0)
    assert stage.leases.state.servers[1].address == ""
    assert [action.instance for action in instances.actions(0.0)] == [Instance("ps-1", "ps", 1)]


def test_a_cluster_that_refuses_is_asked_again() -> None:
    job = Job(1)
    [action] = job.instances.actions(0.0)
    job.instances.on_refusal(action.instance, ClusterError("there is no room"), 0.0)
    assert job.started(0.0) == [("worker-0", 1)]


def test_a_cluster_without_room_is_asked_for_the_same_start_later_and_later_and_never_fails_the_job() -> None:
    job = Job(1, patience=3)
    now, waits = 0.0, []
    for _ in range(20):
        [action] = job.instances.actions(now)
        assert action.instance.key == ("worker-0", 0)
        job.instances.on_refusal(action.instance, NoRoomError("all slots are taken"), now)
        began = now
        while not job.instances._slots["worker-0"].not_before <= now:
            now += 0.05
        waits.append(round(now - began, 1))
    assert waits == sorted(waits)
    assert waits[-1] < 5.2
    assert not job.leases.is_finished
    assert job.notes == ["worker-0 waits: all slots are taken"]


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
    job.on_end("worker-1", 1, "killed")
    assert job.started(0.0) == [("worker-1", 2)]
    assert job.instances.slots["worker-1"][1] == 2
