"""Who is a parameter server, what is said to it, and what follows when it is lost."""

from __future__ import annotations

import msgspec
import pytest

from edl.cluster import Change, Instance
from edl.errors import SpecError
from edl.master.ps.server_slot import Header
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import Arrange, Revoke, TakeCheckpoint
from edl.rpc.channel import AwayError
from edl.spec import Checkpoints, Training
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Flag
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import Conclusion, Report, Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.stage import LARGE, LEASE, Stage

ASYNC, SYNC, DURABLE = Mode("async"), Mode("sync"), Mode("async", durable_updates="process")
MEMORY = Checkpoints(secs=10.0, copies="neighbours")


def ready(stage: Stage) -> bool:
    return stage.leases.servers is not None and stage.leases.servers.ready


def orders_of(stage: Stage) -> list[Header]:
    return [call.header for call in stage.said(Arrange)]


def test_workers_are_told_where_the_servers_are_when_each_is_arranged_with_all_addresses() -> None:
    stage = Stage(ASYNC)
    stage.register(0)
    stage.talk()
    assert not stage.said(Arrange)
    assert not ready(stage)
    stage.register(1)
    stage.talk()
    last = stage.leases.state.last_lease
    assert orders_of(stage) == [
        Arrange(index, 1, 0, ("ps-0:0", "ps-1:0"), ASYNC, leased=last) for index in (0, 1)
    ]
    box = stage.worker()
    assert box.servers is not None
    assert (box.servers.addresses, box.servers.ready) == (("ps-0:0", "ps-1:0"), True)


def test_a_worker_that_waits_is_told_of_every_change_with_a_greater_number() -> None:
    stage = Stage(ASYNC)
    stage.open()
    stage.complete()
    box = stage.worker()
    numbers = [box.servers.number if box.servers else 0]
    for happens in (lambda: stage.lose(1), lambda: stage.register(1, 1), stage.talk):
        happens()
        box.on_answer(stage.leases.exchange(box.request({}), stage.now))
        assert box.servers is not None
        numbers.append(box.servers.number)
    assert numbers == sorted(set(numbers))
    assert box.servers is not None
    assert (box.servers.addresses, box.servers.ready) == (("ps-0:0", "ps-1:1"), True)


def test_a_server_that_registers_again_keeps_its_place_and_an_earlier_start_of_it_has_none() -> None:
    stage = Stage(ASYNC)
    stage.open()
    stage.register(0)
    assert stage.leases.state.generation == 1
    assert stage.leases.state.servers[0].epoch == 0
    stage.register(0, 1)
    assert stage.leases.state.servers[0].epoch == 1
    assert stage.servers.register("ps-0", 0, "ps-0:0", stage.now) is None
    assert stage.servers.register("ps-7", 0, "ps-7:0", stage.now) is None


def test_a6_a7_in_async_a_lost_server_is_restored_alone_and_no_task_is_touched() -> None:
    stage = Stage(ASYNC)
    stage.open()
    checkpoint = stage.complete()
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 512)
    stage.talk(1.0)
    stage.said(Arrange)
    stage.lose(0)
    assert list(stage.leases.state.leases) == [task.attempt]
    stage.register(0, 1)
    stage.talk()
    addresses, out = ("ps-0:1", "ps-1:0"), (task.attempt,)
    assert orders_of(stage) == [
        Arrange(0, 1, 1, addresses, ASYNC, checkpoint, leased=task.attempt, valid=out),
        Arrange(1, 1, 0, addresses, ASYNC, checkpoint, leased=task.attempt, valid=out),
    ]
    assert stage.notes == [
        f"ps-0 was killed; it resumes from the checkpoint {checkpoint}: 1 updates of it are lost"
    ]
    assert stage.servers.losses == (1, stage.plan.training.batch_size)
    stage.restart()
    assert stage.servers.losses[0] == 1
    stage.leases.go_back()  # to what was before the loss
    assert stage.servers.losses == (0, 0)


def test_servers_that_all_end_behind_their_last_checkpoint_lose_no_update() -> None:
    stage = Stage(ASYNC)
    stage.open()
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 512)
    checkpoint = stage.complete()
    stage.talk(1.0)
    stage.servers.all_end = True
    stage.lose(0)
    stage.lose(1)
    assert stage.notes[:2] == ["ps-0 was killed", "ps-1 was killed"]
    assert stage.servers.losses == (0, 0)
    assert stage.leases.state.checkpoint_name == checkpoint
    assert stage.leases.state.generation == 2


@pytest.mark.parametrize(
    ("mode", "servers", "killed"),
    [(SYNC, 2, [1]), (ASYNC, 2, [0, 1]), (ASYNC, 1, [0])],
    ids=["sync", "all", "the only one"],
)
def test_a6_parameters_and_tasks_go_back_together(mode: Mode, servers: int, killed: list[int]) -> None:
    stage = Stage(mode, servers)
    stage.open()
    stage.complete()
    box = stage.worker()
    done = stage.take(box)
    assert done is not None
    stage.push(done, done.rows)
    box.report("done", Report(done, done.rows, 16, 1.0, 1.0))
    stage.take(box)
    stage.talk(31.0)
    checkpoint = stage.complete()
    stage.said(Arrange)
    stage.take(box)
    for index in killed:
        stage.lose(index)
        stage.register(index, 1)
    stage.take(box)
    assert box.rejoin
    assert (stage.leases.state.leases, stage.leases.job.state.rows) == ({}, done.rows)
    stage.talk()
    generations = {call.header.generation for call in stage.said(Arrange) if isinstance(call.header, Arrange)}
    assert generations == {2}
    assert stage.leases.servers is not None
    assert (stage.leases.servers.generation, stage.leases.servers.ready) == (2, True)
    wanted = [stage.servers._set.arrangement(index, stage.mode).restore for index in range(servers)]
    assert wanted == [checkpoint] * servers


@pytest.mark.parametrize("servers", [1, 2])
def test_servers_with_update_logs_lose_nothing_and_no_task_is_touched_if_all_are_lost(servers: int) -> None:
    stage = Stage(DURABLE, servers)
    stage.open()
    checkpoint = stage.complete()
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 512)
    stage.talk(1.0)
    stage.said(Arrange)
    for index in range(servers):
        stage.lose(index)
        stage.register(index, 1)
    stage.talk()
    assert [call.header.restore for call in stage.said(Arrange)] == [checkpoint] * servers
    assert list(stage.leases.state.leases) == [task.attempt]
    assert (stage.leases.state.generation, stage.servers.losses) == (1, (0, 0))
    assert (
        f"ps-0 was killed; it resumes from the checkpoint {checkpoint}: the updates since then are in its log"
        in stage.notes
    )


def test_an_update_log_that_is_larger_than_the_parameters_makes_a_checkpoint_due() -> None:
    stage = Stage(DURABLE, when=Checkpoints(secs=600.0))
    stage.open()
    stage.complete()
    stage.said(TakeCheckpoint)
    for size, taken in ((LARGE, 0), (LARGE + 1, 1)):
        stage.step += 1
        stage.logged = size
        stage.talk(2.0)
        assert len(stage.said(TakeCheckpoint)) == taken


def test_without_a_checkpoint_training_begins_anew() -> None:
    stage = Stage(ASYNC)
    stage.open()
    stage.lose(1)
    stage.register(1, 1)
    stage.talk()
    assert [call.header.restore for call in stage.said(Arrange)][-2:] == ["", ""]  # type: ignore[union-attr]
    assert stage.leases.state.generation == 2
    assert stage.notes == ["ps-1 was killed", "training restarts"]


def test_with_neighbours_a_lost_server_is_arranged_with_the_manifest_of_the_checkpoint_in_memory() -> None:
    stage = Stage(ASYNC, 3, MEMORY)
    stage.open()
    [call] = stage.said(TakeCheckpoint)
    assert call.header == TakeCheckpoint(1, "000001-000001", memory=True)
    stage.complete()
    stage.said(Arrange)
    stage.restart()  # the state store has it
    for lost in (1, 2, 0):  # each has its copies again before the next one is lost
        stage.lose(lost)
        stage.register(lost, 1)
        stage.talk()
        order = stage.said(Arrange)[-1].header
        assert isinstance(order, Arrange)
        assert order.restore == "000001-000001"
        assert order.manifest is not None
        assert [shard.index for shard in order.manifest.shards] == [0, 1, 2]
        assert stage.leases.state.generation == 1
    assert ready(stage)


@pytest.mark.parametrize("mode", [ASYNC, SYNC])
def test_when_two_neighbours_are_lost_their_checkpoint_is_none_and_training_begins_anew(mode: Mode) -> None:
    stage = Stage(mode, 3, MEMORY)
    stage.open()
    stage.complete()
    stage.lose(2)
    assert stage.leases.state.checkpoint is not None
    stage.register(2, 1)
    stage.lose(0)  # before 2 got anything back
    assert stage.leases.state.checkpoint is None
    assert stage.notes[-2:] == [
        "ps-0 was killed, and with it the checkpoint in memory",
        "training restarts",
    ]
    stage.register(0, 1)
    stage.talk()
    actions = [call.header for call in stage.said(Arrange)][-3:]
    generation = stage.leases.state.generation
    assert generation == (2 if mode is ASYNC else 3)
    assert {(order.generation, order.restore) for order in actions if isinstance(order, Arrange)} == {
        (generation, "")
    }


def test_what_nobody_has_in_memory_any_more_is_begun_anew_and_fails_no_job() -> None:
    stage = Stage(ASYNC, 2, MEMORY)
    stage.open()
    stage.complete()
    stage.lose(1)
    stage.register(1, 1)
    stage.refuse(SpecError("it is not in memory"))
    assert not stage.leases.is_finished
    assert stage.leases.state.checkpoint is None
    stage.talk(1.0)
    assert ready(stage)
    assert stage.leases.state.generation == 2


def test_one_server_has_no_neighbour_and_says_so() -> None:
    stage = Stage(ASYNC, 1, MEMORY)
    stage.open()
    stage.step += 100
    stage.talk(100.0)
    assert not stage.said(TakeCheckpoint)
    assert stage.notes == [
        "a single parameter server has no peer for copies: there are no checkpoints, and its loss restarts training"
    ]


def test_the_checkpoint_that_the_state_store_has_stays_in_memory_while_the_next_is_taken() -> None:
    stage = Stage(ASYNC, 2, MEMORY)
    stage.open()
    stage.complete()
    stage.step += 1
    stage.talk(11.0)
    call = stage.said(TakeCheckpoint)[-1]
    assert call.header == TakeCheckpoint(1, "000001-000002", memory=True, kept=("000001-000001",))


def test_a_server_that_held_nothing_yet_is_only_replaced() -> None:
    stage = Stage(SYNC)
    stage.register(0)
    stage.lose(0)
    stage.register(0, 1)
    stage.register(1)
    stage.talk()
    assert stage.leases.state.generation == 1
    assert ready(stage)


def test_what_cannot_be_restored_fails_the_job_and_who_is_away_is_asked_again() -> None:
    stage = Stage(ASYNC)
    for index in (0, 1):
        stage.register(index)
    stage.refuse(AwayError("a parameter server does not answer"))
    assert not stage.leases.is_finished
    stage.now += 1.0
    stage.refuse(SpecError("the checkpoint is damaged"))
    assert stage.leases.state.failed is not None
    assert stage.leases.state.failed.message == "the checkpoint is damaged"


def test_a_frozen_server_is_ended_after_a_lease_and_its_silence_is_not_ours() -> None:
    stage = Stage(ASYNC)
    for order in stage.instances.actions(0.0):
        stage.instances.on_change(Change(order.instance, "running"), 0.0)
    stage.open()
    stage.mute = {1}
    stage.talk(LEASE - 1.0)
    assert stage.instances.actions(stage.now) == []
    stage.now += 1000.0  # we slept ourselves
    stage.talk()
    assert stage.instances.actions(stage.now) == []
    stage.talk(2.0)
    [order] = stage.instances.actions(stage.now)
    assert (order.instance.name, order.stop, order.grace) == ("ps-1", True, 0.0)
    assert stage.notes == ["ps-1 has not answered for 11 s and is stopped"]


@pytest.mark.parametrize("order", ["the server first", "the master first"])
@pytest.mark.parametrize("mode", [SYNC, ASYNC], ids=["sync", "async"])
def test_a_lone_server_that_is_lost_with_the_masters_disk_begins_anew(mode: Mode, order: str) -> None:
    stage = Stage(mode, servers=1)
    stage.open()
    checkpoint = stage.complete()
    if order == "the server first":
        stage.lose(0)
        stage.lost_cuts.add(checkpoint)
        stage.restart()
        stage.register(0, 1)
        stage.refuse(SpecError("the checkpoint is gone"))
        stage.now += 1.0
    else:
        stage.lost_cuts.add(checkpoint)
        stage.restart()
        stage.talk(1.0)
        assert stage.leases.state.generation == 1  # the server has what was trained
        [*_, call] = stage.said(TakeCheckpoint)  # and writes it down again, without delay
        assert isinstance(call.header, TakeCheckpoint)
        assert call.header.folder > checkpoint
        stage.lose(0)
        stage.register(0, 1)
    stage.said(Arrange)
    stage.talk()
    assert "training restarts" in stage.notes
    assert stage.leases.state.failed is None
    [call] = stage.said(Arrange)
    assert isinstance(call.header, Arrange)
    assert call.header.restore == ""


@pytest.mark.parametrize("copies", ["files", "neighbours"])
def test_a14_a_job_that_is_resumed_with_another_number_of_servers_goes_back_to_its_checkpoint(
    copies: str,
) -> None:
    stage = Stage(SYNC, when=Checkpoints(secs=30.0, copies=copies))  # type: ignore[arg-type]
    stage.open()
    checkpoint = stage.complete()
    stage.said(Arrange)
    stage.restart(servers=3)
    for index in range(3):
        stage.register(index)
    stage.talk()
    restore = checkpoint if copies == "files" else ""  # what was in memory is gone
    addresses = ("ps-0:0", "ps-1:0", "ps-2:0")
    found = [msgspec.structs.replace(order, leased=0) for order in orders_of(stage)]
    assert found == [Arrange(index, 2, 0, addresses, SYNC, restore) for index in range(3)]
    assert "the job continues with 3 parameter servers" in stage.notes


# The lease of a lost worker ----------------------------------------------------------------------------------


def test_a9_the_tasks_of_a_lost_worker_wait_until_all_servers_say_how_far_they_are() -> None:
    stage = Stage(SYNC)
    stage.open()
    box = stage.worker()
    begun, untouched, whole = (stage.take(box) for _ in range(3))
    assert begun and untouched and whole
    stage.push(begun, 1024)
    stage.push(whole, whole.rows)
    stage.leases.on_loss("worker-0", 0, stage.now, "was killed")
    other = stage.worker("worker-1")
    stage.mute = {1}
    stage.talk()
    assert stage.leases.job.pools[0].todo == 3
    stage.unmute()
    stage.talk(1.0)
    order = Revoke(1, (whole.attempt, untouched.attempt, begun.attempt))
    assert {call.index: call.header for call in stage.said(Revoke)} == {0: order, 1: order}
    assert stage.leases.job.state.rows == whole.rows + 1024
    tasks = [stage.take(other) for _ in range(2)]
    assert [(task.id, task.skip) for task in tasks if task] == [(begun.id, 1024), (untouched.id, 0)]


def test_what_is_on_any_server_of_a_lost_workers_lease_is_not_given_out_again() -> None:
    stage = Stage(ASYNC, servers=3)
    stage.open()
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 512)
    stage.push(task, 1024, on=[1])  # it died between its pushes
    stage.leases.on_loss("worker-0", 0, stage.now)
    stage.talk()
    again = stage.take(stage.worker("worker-1"))
    assert again is not None
    assert (again.id, again.skip) == (task.id, 1024)


def test_a_server_that_is_replaced_meanwhile_is_asked_too() -> None:
    stage = Stage(ASYNC)
    stage.open()
    stage.complete()
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 512)
    stage.mute = {1}
    stage.leases.on_loss("worker-0", 0, stage.now)
    stage.talk()
    stage.lose(0)  # it had answered
    stage.unmute()
    stage.register(0, 1)
    stage.progress[0].clear()
    stage.said(Revoke)
    stage.talk(1.0)
    assert {call.index for call in stage.said(Revoke)} == {0, 1}
    assert stage.leases.job.state.rows == 512


def test_a_revocation_that_is_not_answered_is_asked_for_again_by_the_next_master_too() -> None:
    stage = Stage(ASYNC)
    stage.open()
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 512)
    stage.leases.on_loss("worker-0", 0, stage.now)
    stage.refuse(AwayError("lost"))
    stage.restart()
    stage.talk(1.0)
    assert not stage.leases.state.revoking
    again = stage.take(stage.worker("worker-1"))
    assert again is not None
    assert (again.id, again.skip) == (task.id, 512)


def test_a_drained_worker_and_a_task_that_raised_go_the_same_way() -> None:
    stage = Stage(ASYNC)
    stage.open()
    box = stage.worker()
    task = stage.take(box)
    assert task is not None
    stage.push(task, 512)
    box.report("given back", Report(task))  # server 0 knows better
    assert stage.take(box) is not None
    stage.talk()
    assert stage.leases.job.state.rows == 512


def test_a_worker_learns_that_no_training_task_is_left_to_hand_out() -> None:
    stage = Stage(ASYNC)
    box = stage.worker()
    for _ in range(6):
        assert not box.flags & Flag.DRY
        assert stage.take(box)
    assert box.flags & Flag.DRY


def test_nothing_is_exported_while_what_is_trained_beyond_the_end_may_be_pushed() -> None:
    plan = Plan("train", LEAST_ROWS, 0, Training(epochs=2, batch_size=512))
    stage = Stage(ASYNC, plan=plan)
    stage.open()
    box, other = stage.worker(), stage.worker("worker-1")
    first, second = stage.take(box), stage.take(other)
    assert first is not None
    assert second is not None
    stage.push(first, first.rows)
    stage.push(second, 512)
    box.report("done", Report(first, first.rows, 16, 1.0, 1.0))
    conclude = ask(stage, box, "conclude")
    box.report("done", Report(conclude, conclusion=Conclusion({}, "it is enough")))
    measure = ask(stage, box, "evaluate")
    box.report("done", Report(measure, measure.rows, 1, 1.0, 1.0))
    box.report("done", Report(ask(stage, box, "conclude"), conclusion=Conclusion({})))
    box.on_answer(stage.leases.exchange(box.request({"export": 1}), stage.now))
    assert box.take("export") is None
    other.on_answer(stage.leases.exchange(other.request({}), stage.now))
    assert not other.holds_lease(second)
    before = stage.leases.signal
    stage.talk()
    assert [call.header for call in stage.said(Revoke)] == 2 * [Revoke(1, (second.attempt,))]
    assert stage.leases.signal != before
    assert ask(stage, box, "export")
    assert stage.leases.job.state.rows == first.rows


def ask(stage: Stage, box: Outbox, kind: TaskType) -> Task:
    box.on_answer(stage.leases.exchange(box.request({kind: 1}), stage.now))
    task = box.take(kind)
    assert task is not None
    return task


# Masters that die --------------------------------------------------------------------------------------------


def test_a_new_master_finds_the_servers_and_arranges_them_as_they_are() -> None:
    stage = Stage(SYNC)
    stage.open()
    before = stage.leases.servers
    stage.said(Arrange)
    stage.restart()
    running = [Change(Instance(f"ps-{index}", "ps", 0), "running") for index in (0, 1)]
    stage.instances.found(running, stage.now)
    stage.talk()
    assert {(call.header.generation, call.epoch) for call in stage.said(Arrange)} == {(1, 0)}  # type: ignore[union-attr]
    after = stage.leases.servers
    assert before is not None
    assert after is not None
    assert (after.addresses, after.ready, after.number > before.number) == (before.addresses, True, True)


def test_a_new_master_misses_a_server_that_is_gone() -> None:
    stage = Stage(ASYNC)
    stage.open()
    stage.complete()
    stage.restart()
    stage.instances.found([Change(Instance("ps-0", "ps", 0), "running")], stage.now)
    assert [place.address for place in stage.leases.state.servers] == ["ps-0:0", ""]
    assert "ps-1" in [order.instance.name for order in stage.instances.actions(stage.now)]
    assert stage.leases.state.generation == 1


def test_a15_a_checkpoint_that_an_earlier_master_began_is_forgotten() -> None:
    stage = Stage(SYNC)
    stage.open()
    complete = stage.complete()
    stage.push(stage.take(stage.worker()), 512)  # type: ignore[arg-type]
    stage.talk(31.0)
    assert len(stage.said(TakeCheckpoint)) == 2
    assert stage.checkpoints.under_way
    stage.restart()
    assert not stage.checkpoints.under_way
    assert stage.checkpoints.list_kept_folders(dict.fromkeys([complete, "000001-000002"])) == {complete}
