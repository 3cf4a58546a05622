"""When cuts of the servers are taken, what the job's course is at one, and which stay."""

from __future__ import annotations

import pytest

from edl.errors import ClusterError
from edl.master.ps.checkpoint_coordinator import AGAIN_SECS
from edl.master.ps.server_slot import ServerCall
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import TakeCheckpoint
from edl.spec import Checkpoints
from edl.tasks.job_state import Job, JobState
from edl.tasks.task import Report
from tests.edl.master.stage import PLAN, Stage

SYNC = Mode("sync")


def opened(when: Checkpoints, *, steps_per_version: int = 1) -> Stage:
    """The first cut is complete."""
    stage = Stage(SYNC, when=when, steps_per_version=steps_per_version)
    stage.open()
    stage.complete()
    stage.said(TakeCheckpoint)
    return stage


def begun(stage: Stage) -> ServerCall:
    """A cut is asked for, and the call is not answered yet."""
    stage.step += 1
    stage.mute = {TakeCheckpoint}
    stage.talk(11.0)
    return next(call for call in reversed(stage.asked) if isinstance(call.header, TakeCheckpoint))


def state(stage: Stage) -> JobState:
    assert stage.leases.state.checkpoint is not None
    return stage.leases.state.checkpoint.job


def test_the_first_is_taken_as_soon_as_the_servers_are_open() -> None:
    stage = Stage(SYNC, when=Checkpoints(secs=0.0))
    for index in (0, 1):
        stage.register(index)
    stage.talk(100.0)
    assert not stage.said(TakeCheckpoint)
    stage.is_open = True
    stage.talk(1.0)
    [call] = stage.said(TakeCheckpoint)
    assert call.header == TakeCheckpoint(1, "000001-000001")


def test_where_a_lost_server_loses_updates_one_follows_each_200th_of_the_job() -> None:
    stage = Stage(Mode("async"), when=Checkpoints(secs=30.0), versions=2000)
    stage.open()
    stage.complete()
    stage.said(TakeCheckpoint)
    for step, taken in ((9, 0), (1, 1), (9, 0), (1, 1)):
        stage.step += step
        stage.talk(2.0)
        assert len(stage.said(TakeCheckpoint)) == taken
        if taken:
            stage.complete()


@pytest.mark.parametrize("when", [Checkpoints(steps=500, secs=30.0), Checkpoints(steps=500, secs=0.0)])
def test_a_setting_in_steps_replaces_the_200th(when: Checkpoints) -> None:
    stage = Stage(Mode("async"), when=when, versions=2000)
    stage.open()
    stage.complete()
    stage.said(TakeCheckpoint)
    stage.step += 100
    stage.talk(5.0)
    assert not stage.said(TakeCheckpoint)


def test_one_with_something_learned_follows_after_ten_seconds() -> None:
    stage = opened(Checkpoints(secs=30.0))
    for seconds, taken in ((8.0, 0), (3.0, 1), (20.0, 0), (11.0, 1)):
        stage.step += 1
        stage.talk(seconds)
        assert len(stage.said(TakeCheckpoint)) == taken
        if taken:
            stage.complete()


def test_others_follow_by_seconds_when_something_was_done() -> None:
    stage = opened(Checkpoints(secs=30.0))
    stage.talk(100.0)
    assert not stage.said(TakeCheckpoint)
    stage.step += 1
    stage.talk(2.0)
    assert len(stage.said(TakeCheckpoint)) == 1


@pytest.mark.parametrize(("steps_per_version", "versions"), [(1, 8), (4, 2)])
def test_others_follow_by_steps(steps_per_version: int, versions: int) -> None:
    stage = opened(Checkpoints(steps=8, secs=0.0), steps_per_version=steps_per_version)
    stage.step += versions - 1
    stage.talk(100.0)
    assert not stage.said(TakeCheckpoint)
    stage.step += 1
    stage.talk(2.0)
    assert len(stage.said(TakeCheckpoint)) == 1


def test_a_checkpoint_has_the_tasks_as_far_as_the_parameters_have_them() -> None:
    stage = opened(Checkpoints(secs=10.0))
    box = stage.worker()
    done, pushed, begun, held = (stage.take(box) for _ in range(4))
    assert done and pushed and begun and held
    for task, rows in ((done, done.rows), (pushed, pushed.rows), (begun, 512)):
        stage.push(task, rows)
    box.report("done", Report(done, done.rows, 16, 1.0, 1.0))
    stage.take(box)
    stage.talk(11.0)
    stage.complete()
    job = Job(PLAN, state(stage))
    assert job.state.rows == done.rows + pushed.rows + 512
    tasks = [job.take("train") for _ in range(4)]
    assert [(task.id, task.skip) for task in tasks if task] == [(begun.id, 512), (held.id, 0), (4, 0), (5, 0)]


def test_what_is_handed_out_while_a_checkpoint_is_taken_is_in_it() -> None:
    stage = opened(Checkpoints(secs=10.0))
    checkpoint = begun(stage)
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, 1024)
    stage.servers.on_answer(checkpoint, stage.answer(checkpoint), stage.now)
    stage.complete()
    assert Job(PLAN, state(stage)).state.rows == 1024


def test_a_task_that_is_pushed_and_not_reported_stays_done_in_later_checkpoints() -> None:
    """Servers tell of a finished lease for a while only."""
    stage = opened(Checkpoints(secs=10.0))
    task = stage.take(stage.worker())
    assert task is not None
    stage.push(task, task.rows)
    for _ in range(3):
        stage.step += 1
        stage.talk(11.0)
        stage.complete()
        assert Job(PLAN, state(stage)).state.rows == task.rows
        stage.progress[0].clear()
    stage.leases.on_loss("worker-0", 0, stage.now)
    stage.talk()
    assert stage.leases.job.state.rows == task.rows


def test_the_part_of_a_lease_that_was_revoked_counts_once() -> None:
    stage = opened(Checkpoints(secs=10.0))
    first = stage.take(stage.worker())
    assert first is not None
    stage.push(first, 1024)
    stage.leases.on_loss("worker-0", 0, stage.now)
    stage.talk()
    second = stage.take(stage.worker("worker-1"))
    assert second is not None
    assert second.skip == 1024
    stage.push(second, 512)
    stage.talk(11.0)
    stage.complete()
    assert Job(PLAN, state(stage)).state.rows == 1536


@pytest.mark.parametrize("why", ["the call", "a shard", "a server"])
def test_a15_a_checkpoint_that_comes_to_nothing_is_forgotten_and_taken_again(why: str) -> None:
    stage = opened(Checkpoints(secs=10.0))
    before = state(stage)
    stage.full = why == "a shard"
    checkpoint = begun(stage)
    if why == "the call":
        stage.servers.on_unanswered(
            checkpoint, ClusterError("it was started at different versions"), stage.now
        )
    else:
        stage.servers.on_answer(checkpoint, stage.answer(checkpoint), stage.now)
    if why == "a server":
        stage.lose(1)
        stage.register(1, 1)
    stage.mute = set()
    stage.talk(1.0)
    assert not stage.checkpoints.under_way
    assert state(stage) is before
    stage.full = False
    stage.step += 1
    stage.talk(AGAIN_SECS + 11.0)
    assert stage.complete() > "000001-000002"


def test_the_last_ones_are_kept_and_the_one_under_way() -> None:
    stage = opened(Checkpoints(secs=10.0, keep=2))
    for _ in range(3):
        stage.step += 1
        stage.talk(11.0)
        stage.complete()
    names = [f"000001-00000{number}" for number in range(1, 6)]
    complete = {name: name for name in names}
    assert stage.checkpoints.list_kept_folders(complete) == set(names[2:4])  # no state store knows the fifth
    begun(stage)
    assert stage.checkpoints.list_kept_folders(complete) == set(names[2:])


def test_beside_the_last_ones_one_is_kept_that_shares_no_file_with_them() -> None:
    stage = opened(Checkpoints(secs=10.0, keep=2))
    for _ in range(3):
        stage.step += 1
        stage.talk(11.0)
        stage.complete()
    names = [f"000001-00000{number}" for number in range(1, 5)]
    assert stage.checkpoints.list_kept_folders(dict(zip(names, "aabb", strict=True))) == set(names[1:])
    assert stage.checkpoints.list_kept_folders(dict(zip(names, "aaaa", strict=True))) == set(names[2:])


def test_all_are_kept_where_none_is_too_many() -> None:
    stage = opened(Checkpoints(secs=10.0, keep=0))
    stage.step += 1
    stage.talk(11.0)
    stage.complete()
    names = ["000001-000001", "000001-000002"]
    assert stage.checkpoints.list_kept_folders(dict.fromkeys(names)) == set(names)
