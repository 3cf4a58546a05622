"""Which tasks follow from who trains together, and what becomes of them when members are lost."""

from __future__ import annotations

import pytest

from edl.jobs.failure import Failed
from edl.master.rendezvous import BOUNDARY_SECS, JOIN_SECS, MEMBER_SECS
from edl.master.state import MasterState
from edl.master.tasks.ownership import GROUP
from edl.tasks import encoding
from edl.tasks.protocol import Flag, WorkerGroup
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import Report, Task
from tests.edl.master.group_stage import LEASE, GroupStage
from tests.edl.master.test_schedules import finished

# Tasks ------------------------------------------------------------------------------------------------------


def test_only_the_leader_gets_training_tasks_and_any_holder_evaluates(trio: GroupStage) -> None:
    assert trio.take("b") is None
    for _ in range(3):
        task = trio.take("a")
        assert task is not None
        assert trio.master.state.leases[task.attempt].instance == GROUP
        trio.held["a"].clear()
        trio.say("a", finished(task))
    assert trio.take("c", "evaluate")
    assert trio.take("a", "evaluate") is None  # there was but one
    trio.say("c", finished(trio.held["c"].pop().task))
    assert trio.take("c", "conclude") is None
    assert trio.take("a", "conclude")


def test_tasks_stay_with_the_group_when_its_leader_dies_and_the_next_one_names_them(trio: GroupStage) -> None:
    first, second = trio.take("a"), trio.take("a")
    assert first is not None
    assert second is not None
    trio.kill("a")
    assert set(trio.master.state.leases) == {first.attempt, second.attempt}
    trio.join("bc")
    trio.held["b"] = [Report(first, 512, 1, 512.0)]
    trio.form("bc")
    assert list(trio.master.state.leases) == [first.attempt]
    again = trio.take("b")
    assert again is not None
    assert again.id == second.id


def test_a_report_counts_once_whichever_leader_tells_it(trio: GroupStage) -> None:
    task = trio.take("a")
    assert task is not None
    trio.held["a"].clear()
    trio.say("a", finished(task))
    trio.kill("a")
    trio.join("bc")
    trio.form("c")
    trio.say("c", finished(task))
    trio.form("b")
    trio.say("b", finished(task))
    assert trio.master.job.state.rows == LEAST_ROWS


def test_what_a_leader_told_counts_though_the_next_group_is_there_before_it_is_heard(
    trio: GroupStage,
) -> None:
    task = trio.take("a")
    assert task is not None
    trio.join("abc")
    trio.held["a"].clear()
    trio.say("a", finished(task))
    assert trio.master.job.state.rows == LEAST_ROWS


def test_what_a_leader_told_that_was_left_behind_counts_for_nothing(trio: GroupStage) -> None:
    task = trio.take("a")
    assert task is not None
    trio.join("bc")
    trio.pass_time(1.0)
    trio.held["b"] = [Report(task)]
    trio.form("bc")
    trio.say("a", finished(task))
    assert trio.master.job.state.rows == 0
    trio.held["b"].clear()
    trio.say("b", finished(task))
    assert trio.master.job.state.rows == LEAST_ROWS


def test_a5_a_lease_that_was_not_written_down_holds_when_the_next_leader_names_it(trio: GroupStage) -> None:
    kept = encoding.encode(trio.master.to_store()[0])
    task = trio.take("a")
    assert task is not None
    trio._start(encoding.decode(kept, MasterState))
    trio.kill("a")
    trio.join("bc")
    trio.held["b"] = [Report(task, 512, 1, 512.0)]
    trio.form("bc")
    assert trio.say("b").revoked == ()
    trio.held["b"].clear()
    trio.say("b", finished(task))
    assert trio.master.job.state.rows == LEAST_ROWS


def test_a3_a_task_that_raises_on_members_of_groups_fails_the_job_by_name(trio: GroupStage) -> None:
    task = trio.take("a")
    assert task is not None
    error = Failed("JobError", "a bad row")
    for name, others in (("c", "ab"), ("b", "a")):
        trio.say(name, Report(task), kind="failed", error=error)
        assert trio.master.state.members[name].gone
        trio.join(others)
        trio.form(others)
        assert task.attempt in trio.master.state.leases
    trio.say("a", Report(task), kind="failed", error=error)
    assert trio.master.state.failed is not None
    assert "failed 3 times, the last time: a bad row" in trio.master.state.failed.message


# Losses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "moment", ["while idle", "in a task", "in the last task of an epoch", "waiting for the end"]
)
@pytest.mark.parametrize("gone", ["the leader", "another member"])
def test_a1_a_preempted_member_loses_nothing(trio: GroupStage, moment: str, gone: str) -> None:
    if moment == "in a task":
        trio.take("a")
    elif moment == "in the last task of an epoch":
        trio.work("a", until=lambda task: task.settles)
    elif moment == "waiting for the end":
        trio.work("a", until=lambda task: task.type == "export")
    trio.kill("a" if gone == "the leader" else "c")
    trio.join("bc" if gone == "the leader" else "ab")
    leader = trio.present.members[0]
    trio.held[leader] = [held for held in trio.held["a"] if held.task.type == "train"]
    trio.form(trio.present.members)
    trio.work(leader)
    state = trio.master.job.state
    assert (state.finished, state.rows, len(state.curve.rows)) == (True, 2 * trio.plan.rows, 2)
    assert trio.master.state.done["export"] == 1


def test_a2_a_task_keeps_its_budget_if_its_owners_are_preempted() -> None:
    stage = GroupStage("abcdef")
    stage.train_together("abcdef")
    task = stage.take("a")
    assert task is not None
    for gone, left in zip("abcde", ("bcdef", "cdef", "def", "ef", "f"), strict=True):
        stage.kill(gone)
        stage.join(left)
        stage.held[left[0]] = [Report(task)]
        stage.form(left)
    assert not stage.master.state.failures
    stage.work("f")
    assert stage.master.job.is_finished
    assert stage.master.state.generation == 1


def test_a24_a_member_that_dies_or_freezes_costs_no_task(trio: GroupStage) -> None:
    task = trio.take("a")
    trio.kill("b")
    trio.join("ac")
    trio.form("ac")
    trio.pass_time(LEASE + 1.0, speaking="a")
    assert trio.master.state.members["c"].gone
    assert task is not None
    assert list(trio.master.state.leases) == [task.attempt]
    assert trio.master.state.generation == 1


def test_a18_without_any_holder_the_job_goes_back_and_begins_anew_with_those_who_come(
    trio: GroupStage,
) -> None:
    task = trio.take("a")
    assert task is not None
    for name in "abc":
        trio.kill(name)
    assert (trio.master.state.generation, trio.master.state.leases) == (2, {})
    assert trio.notes[-1] == "training restarts"
    assert (trio.rendezvous.present, trio.rendezvous.is_held) == (None, False)
    trio.start("b")
    trio.join("b", after=0)
    trio.pass_time(JOIN_SECS)
    assert trio.present == WorkerGroup(2, ("b",), 0, "b:1", ("b:1",))
    trio.form("b")
    again = trio.take("b")
    assert again is not None
    assert again.id == task.id


def test_a18_the_job_goes_back_to_the_leaders_checkpoint(trio: GroupStage) -> None:
    tasks = [trio.take("a") for _ in range(2)]
    done, half = (task for task in tasks if task is not None)
    trio.held["a"] = [Report(half)]
    trio.say("a", finished(done))
    part = Report(half, 512, 1, 512.0, 512.0)
    trio.say("a", part, kind="checkpoint", folder="cut-1")
    trio.say("a", Report(Task(0, "train")), kind="checkpoint written", folder="cut-1")
    for name in "abc":
        trio.kill(name)
    assert trio.master.job.state.rows == LEAST_ROWS + 512
    trio.start("a")
    assert trio.master.join("a", 1, trio.now).resume == "cut-1"  # type: ignore[union-attr]


@pytest.mark.parametrize("order", ["the members first", "the master first"])
def test_a_group_that_is_lost_with_all_checkpoints_begins_anew(trio: GroupStage, order: str) -> None:
    task = trio.take("a")
    assert task is not None
    trio.say("a", finished(task))
    for kind in ("checkpoint", "checkpoint written"):
        trio.say("a", Report(Task(0, "train")), kind=kind, folder="cut-1")  # type: ignore[arg-type]
    if order == "the master first":
        trio.lost_cuts.add("cut-1")
        trio.restart()
        assert trio.master.job.state.rows == LEAST_ROWS  # they have it
    for name in "abc":
        trio.kill(name)
    if order == "the members first":
        assert trio.master.job.state.rows == LEAST_ROWS
        trio.lost_cuts.add("cut-1")
        trio.restart()
    assert trio.master.job.state.rows == 0
    assert trio.notes[-1] == "training restarts"
    trio.start("a")
    assert trio.master.join("a", 1, trio.now).resume == ""  # type: ignore[union-attr]


def test_workers_that_leave_before_anything_was_trained_cost_nothing() -> None:
    stage = GroupStage("ab")
    stage.join("a")
    stage.kill("a")
    stage.kill("b")
    assert stage.master.state.generation == 1


def test_a_frozen_member_that_wakes_up_registers_and_joins(trio: GroupStage) -> None:
    trio.join("bc")
    trio.pass_time(1.0)
    trio.form("bc")
    trio.pass_time(LEASE + 1.0, speaking="bc")
    assert trio.say("a").flags & Flag.REJOIN
    assert trio.master.join("a", 0, trio.now)
    trio.join("a", after=1)
    assert trio.say("b").flags & Flag.REGROUP


def test_how_long_steps_take_is_seen_from_what_the_leader_holds(trio: GroupStage) -> None:
    task = trio.take("a")
    assert task is not None
    for steps in (2, 4, 4, 8):
        trio.pass_time(1.0)
        trio.held["a"] = [Report(task, 512 * steps, steps)]
        trio.say("a")
    assert trio.rendezvous.step_secs == pytest.approx(0.5)


# Groups that the master heard nothing of --------------------------------------------------------------------


def unheard(trio: GroupStage) -> None:
    """b trains in a group of its own, and nobody told that it had formed; meanwhile the next group has begun."""
    trio.join("b")
    trio.pass_time(MEMBER_SECS + 0.1)
    assert trio.present.members == ("b",)
    trio.holds["b"] = 2
    trio.join("ac")
    trio.pass_time(BOUNDARY_SECS)
    assert (trio.rendezvous.number, trio.present.members) == (3, ("a", "c"))


@pytest.mark.parametrize("group", [1, 2])
def test_who_is_in_a_group_that_is_over_is_told_so(trio: GroupStage, group: int) -> None:
    unheard(trio)
    trio.holds["b"] = group
    assert trio.say("b").flags & Flag.REGROUP
    assert trio.take("b") is None


def test_what_was_settled_in_a_group_that_nobody_knew_of_is_told_again_in_the_next(trio: GroupStage) -> None:
    task = trio.take("a")
    assert task is not None
    trio.held["a"].clear()
    unheard(trio)
    assert trio.say("b", finished(task)).seen_upto == 0
    assert trio.master.job.state.rows == 0
    trio.kill("c")
    trio.kill("a")
    trio.join("b")
    assert trio.present.members == ("b",)
    trio.holds["b"] = trio.rendezvous.number
    assert trio.say("b", finished(task)).seen_upto == 1
    assert trio.master.job.state.rows == LEAST_ROWS


def test_a_checkpoint_of_a_group_that_nobody_knew_of_is_none(trio: GroupStage) -> None:
    unheard(trio)
    for kind in ("checkpoint", "checkpoint written"):
        trio.say("b", Report(Task(0, "train")), kind=kind, folder="cut-1")  # type: ignore[arg-type]
    assert trio.master.state.checkpoint is None
