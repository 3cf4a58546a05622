"""Who is in the next group, and when it begins."""

from __future__ import annotations

import pytest

from edl.master.rendezvous import BOUNDARY_SECS, JOIN_SECS, LONGEST_PAUSE, MEMBER_SECS, PAUSE_SECS
from edl.master.tasks.ownership import GROUP
from edl.master.tasks.recovery import TreeRecovery
from edl.tasks.protocol import Flag, JoinRequest, WorkerGroup
from edl.tasks.ranges import LEAST_ROWS
from tests.edl.master.group_stage import LEASE, GroupStage
from tests.edl.master.test_schedules import finished

# Who is in it, and when it begins ---------------------------------------------------------------------------


def test_the_first_group_begins_when_all_wanted_workers_seek_and_none_holds_anything() -> None:
    stage = GroupStage("abc")
    stage.join("ab")
    assert stage.rendezvous.present is None
    stage.join("c")
    assert stage.present == WorkerGroup(1, ("a", "b", "c"), 0, "a:1", ("a:1", "b:1", "c:1"))


def test_the_first_group_does_not_wait_for_long_for_workers_that_are_not_there() -> None:
    stage = GroupStage("abc")
    stage.join("b")
    stage.pass_time(JOIN_SECS - 0.2)
    assert stage.rendezvous.present is None
    stage.pass_time(0.2)
    assert stage.present.members == ("b",)


def test_a_group_is_told_when_it_is_written_down_and_as_often_as_it_is_asked_for() -> None:
    stage = GroupStage("a")
    join = JoinRequest("a:1")
    assert stage.say("a", join=join).group is None
    assert stage.master.is_awaited
    stage.write()
    assert not stage.master.is_awaited
    assert stage.say("a", join=join).group == stage.say("a", join=join).group == stage.present
    assert stage.say("a", join=JoinRequest("a:1", after=1)).group is None


def test_survivors_begin_the_next_group_at_once_with_the_oldest_first(trio: GroupStage) -> None:
    trio.kill("a")
    trio.join("c")
    assert trio.rendezvous.number == 1
    trio.join("b")
    assert trio.present == WorkerGroup(2, ("b", "c"), 2, "b:1", ("b:1", "c:1"))


def test_a_member_that_does_not_come_is_left_behind_and_joins_later_without_holding_anything(
    trio: GroupStage,
) -> None:
    trio.join("bc")
    trio.pass_time(MEMBER_SECS - 0.1)
    assert trio.rendezvous.number == 1
    trio.pass_time(0.2)
    assert trio.present.members == ("b", "c")
    assert trio.notes[-1] == "a did not join: the next group forms without it"
    trio.form("bc")
    trio.join("abc", after=2)
    assert trio.present == WorkerGroup(3, ("b", "c", "a"), 2, "b:1", ("b:1", "c:1", "a:1"))


def test_who_was_left_behind_holds_what_was_trained_until_a_group_without_it_has_formed(
    trio: GroupStage,
) -> None:
    trio.kill("c")
    trio.join("b")
    trio.pass_time(BOUNDARY_SECS)
    assert trio.present.members == ("b",)
    trio.kill("b")
    trio.join("a", after=1)
    assert (trio.present.members, trio.present.holders) == (("a",), 1)
    assert trio.master.state.generation == 1


def test_who_is_in_the_middle_of_a_step_is_waited_for(trio: GroupStage) -> None:
    trio.rendezvous.step_secs = 1.0
    trio.join("ab")
    trio.pass_time(1.9)
    assert trio.rendezvous.number == 1
    trio.join("c")
    assert trio.present.members == ("a", "b", "c")


def test_no_group_begins_without_a_holder_while_one_may_live() -> None:
    stage = GroupStage("ab")
    stage.kill("b")
    stage.train_together("a")
    stage.start("b")
    stage.join("b", after=0)
    for _ in range(5):
        stage.pass_time(1.0)
        stage.join("b", after=0)
    assert stage.rendezvous.number == 1


def test_a_joiner_does_not_begin_the_next_group_without_the_holder_if_its_own_comes_to_nothing() -> None:
    stage = GroupStage("ab")
    stage.kill("b")
    stage.train_together("a")
    stage.start("b")
    stage.join("ba")
    assert stage.present.members == ("a", "b")
    stage.join("b")
    stage.pass_time(BOUNDARY_SECS + 1.0)
    assert stage.rendezvous.number == 2


def test_a_group_that_loses_a_member_before_it_forms_is_followed_by_the_next(trio: GroupStage) -> None:
    trio.join("abc")
    trio.kill("c")
    trio.join("ab", after=1)  # b was not told of the group, a was
    assert (trio.rendezvous.number, trio.present.members) == (3, ("a", "b"))


def test_a_group_is_sought_after_a_restart_of_the_master_by_those_who_hold_it(trio: GroupStage) -> None:
    trio.restart()
    trio.kill("a")
    trio.join("bc")
    assert trio.present == WorkerGroup(2, ("b", "c"), 2, "b:1", ("b:1", "c:1"))


# Joiners ----------------------------------------------------------------------------------------------------


def test_a_joiner_has_the_group_end_and_takes_part_in_the_next() -> None:
    stage = GroupStage("ab")
    stage.kill("b")
    stage.train_together("a")
    assert not stage.say("a").flags & Flag.REGROUP
    stage.start("b")
    stage.join("b", after=0)
    assert stage.say("a").flags & Flag.REGROUP
    assert not stage.say("b", join=JoinRequest("b:1")).flags & Flag.REGROUP
    stage.join("a")
    assert stage.present == WorkerGroup(2, ("a", "b"), 1, "a:1", ("a:1", "b:1"))
    stage.form("a")
    assert not stage.say("a").flags & Flag.REGROUP


def test_a_joiner_waits_a_moment_for_others() -> None:
    stage = GroupStage("abc")
    stage.train_together("a")
    stage.join("b", after=0)
    assert not stage.say("a").flags & Flag.REGROUP
    stage.pass_time(JOIN_SECS)
    assert stage.say("a").flags & Flag.REGROUP


def test_the_loss_of_a_member_ends_the_group_for_the_others(trio: GroupStage) -> None:
    assert not trio.say("a").flags & Flag.REGROUP
    trio.kill("c")
    assert trio.say("a").flags & Flag.REGROUP


def test_a_joiner_holds_the_state_when_it_says_so() -> None:
    stage = GroupStage("ab")
    stage.train_together("a")
    stage.join("ba")
    stage.form("a")
    stage.kill("b")
    stage.form("a")
    stage.start("b")
    stage.join("ba")
    assert stage.present.holders == 1
    stage.form("ab")
    stage.kill("a")
    stage.join("b")
    assert (stage.present.members, stage.present.holders) == (("b",), 1)


# Pauses -----------------------------------------------------------------------------------------------------


def test_a_slow_member_pauses_longer_each_time(trio: GroupStage) -> None:
    for times, seconds in enumerate((PAUSE_SECS, 2 * PAUSE_SECS, 3 * PAUSE_SECS), 1):
        trio.join("ab", without=("c",))
        assert trio.present.members == ("a", "b")
        trio.form("ab")
        trio.join("c", after=2 * times - 1)
        assert trio.rendezvous.remaining_pause("c", trio.now) == pytest.approx(seconds)
        assert not trio.say("a").flags & Flag.REGROUP
        for _ in range(int(seconds)):
            trio.pass_time(1.0, speaking="ab")
            trio.join("c", after=2 * times - 1)
        assert trio.say("a").flags & Flag.REGROUP
        trio.join("ab")
        assert trio.present.members == ("a", "b", "c")
        trio.form("abc")


def test_no_pause_is_longer_than_some_minutes(trio: GroupStage) -> None:
    for number in range(1, 80, 2):
        trio.join("ab", without=("c",))
        trio.form("ab")
        trio.rendezvous._state.pauses["c"].until = 0.0
        trio.join("cab", after=number + 1)
        trio.form("abc")
    trio.join("ab", without=("c",))
    assert trio.rendezvous.remaining_pause("c", trio.now) == LONGEST_PAUSE


def test_the_last_one_does_not_pause(trio: GroupStage) -> None:
    trio.join("ab", without=("c",))
    trio.form("ab")
    trio.kill("a")
    trio.kill("b")
    assert trio.master.state.generation == 2
    trio.join("c", after=1)
    trio.pass_time(JOIN_SECS)
    assert trio.present.members == ("c",)


def test_a_group_that_comes_to_nothing_twice_does_without_its_youngest(trio: GroupStage) -> None:
    trio.join("abc")
    trio.join("abc")
    assert (trio.rendezvous.number, trio.present.members) == (3, ("a", "b", "c"))
    trio.join("abc")
    assert (trio.rendezvous.number, trio.present.members) == (4, ("a", "b"))
    trio.join("ab")
    assert (trio.rendezvous.number, trio.present.members) == (5, ("a",))


# Complete groups, of trees --------------------------------------------------------------------------------------


@pytest.fixture
def trees() -> GroupStage:
    """Three workers that grow trees together."""
    stage = GroupStage("abc", recovery=TreeRecovery)
    stage.train_together("abc")
    return stage


def test_no_complete_group_begins_before_all_wanted_workers_are_there() -> None:
    stage = GroupStage("abc", recovery=TreeRecovery)
    stage.join("ab")
    stage.pass_time(10 * JOIN_SECS, speaking="c")
    assert stage.rendezvous.present is None
    stage.join("c")
    assert stage.present.members == ("a", "b", "c")


def test_a_complete_group_waits_for_the_replacement_of_a_lost_member(trees: GroupStage) -> None:
    trees.kill("b")
    trees.join("ac")
    for _ in range(4):
        trees.pass_time(LEASE / 2)
        trees.join("ac", after=1)
    assert trees.rendezvous.number == 1
    trees.start("b")
    trees.join("b", after=0)
    assert trees.present == WorkerGroup(2, ("a", "c", "b"), 2, "a:1", ("a:1", "c:1", "b:1"))


def test_the_wait_for_a_replacement_outlives_the_master(trees: GroupStage) -> None:
    trees.kill("b")
    trees.restart()
    trees.join("ac", after=1)
    trees.pass_time(BOUNDARY_SECS)
    assert trees.rendezvous.number == 1
    trees.start("b")
    trees.join("b", after=0)
    assert trees.present.members == ("a", "c", "b")


def test_a_complete_group_ends_for_a_joiner_when_all_are_there(trees: GroupStage) -> None:
    trees.master.want(5)
    trees.start("d")
    trees.join("d", after=0)
    trees.pass_time(2 * JOIN_SECS, speaking="abc")
    assert not trees.say("a").flags & Flag.REGROUP
    trees.start("e")
    trees.join("de", after=0)
    assert trees.say("a").flags & Flag.REGROUP
    trees.join("abc")
    assert trees.present.members == ("a", "b", "c", "d", "e")


def test_a_complete_group_shrinks_with_the_number_of_wanted_workers(trees: GroupStage) -> None:
    trees.master.want(2)
    trees.kill("c")
    trees.join("ab")
    assert trees.present.members == ("a", "b")


def test_nobody_is_left_out_of_complete_groups_that_come_to_nothing(trees: GroupStage) -> None:
    for number in (2, 3, 4, 5):
        trees.join("abc")
        assert (trees.rendezvous.number, trees.present.members) == (number, ("a", "b", "c"))


# What is told of it -----------------------------------------------------------------------------------------


def test_who_is_not_in_the_group_is_told_of_with_the_reason(trio: GroupStage) -> None:
    rendezvous, owners = trio.master.rendezvous, trio.master.owners
    trio.join("ab", without=("c",))
    trio.form("ab")
    trio.join("c", after=1)
    assert rendezvous.standing("c", trio.now + 2.0) == "left out, 8 s: slower than the others"
    assert rendezvous.standing("a", trio.now) == ""
    trio.start("d")
    assert rendezvous.standing("d", trio.now) == "not in the group"
    trio.join("d", after=0)
    assert rendezvous.standing("d", trio.now) == "joins"
    task = trio.take("a")
    assert task is not None
    assert [owners.of_worker(name) for name in "bd"] == [["b", GROUP], ["d"]]


def test_what_a_group_did_is_the_work_of_all_its_members(trio: GroupStage) -> None:
    task = trio.take("a")
    assert task is not None
    trio.held["a"].clear()
    trio.say("a", finished(task))
    assert [trio.master.rows_of(name) for name in "abc"] == [LEAST_ROWS // 3] * 3
