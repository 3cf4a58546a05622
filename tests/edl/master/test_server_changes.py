"""Changes of the set of parameter servers, as the master's state machines carry them out."""

from __future__ import annotations

import pytest

from edl.cluster import Change
from edl.errors import JobError
from edl.master.instances.instance_manager import InstanceManager
from edl.master.ps.ps_manager import STATUS_SECS
from edl.ps.checkpoint.content import Mode, Version
from edl.ps.checkpoint.manifests import manifest_of
from edl.ps.messages import Arrange, CheckpointTaken, Figures, Reopen, Status, TakeCheckpoint
from edl.spec import Checkpoints
from tests.edl.master.stage import Stage

ASYNC = Mode("async")
MEMORY = Checkpoints(secs=10.0, copies="neighbours")


def opened(mode: Mode = ASYNC, when: Checkpoints | None = None) -> Stage:
    stage = Stage(mode, when=when)
    stage.open()
    stage.complete()
    stage.said(TakeCheckpoint)
    return stage


def addresses(stage: Stage) -> tuple[str, ...]:
    assert stage.leases.servers is not None
    return stage.leases.servers.addresses


def complete(stage: Stage) -> bool:
    """The checkpoint under way is written; whether it is the one to go back to."""
    stage.talk(0.5)
    return finish(stage)


def finish(stage: Stage) -> bool:
    taking = stage.checkpoints.to_complete()
    assert taking is not None
    manifest = manifest_of(taking.name, taking.version, stage.mode, [*taking.shards.values()])
    return stage.servers.complete(taking, manifest)


def started(instances: InstanceManager) -> list[tuple[str, bool]]:
    """Return the names that are started (True) and stopped; an instance that is started runs."""
    found = []
    for action in instances.actions(0.0):
        found.append((action.instance.name, not action.stop))
        if not action.stop:
            instances.on_change(Change(action.instance, "running"), 0.0)
    return found


def test_the_others_are_started_first_and_those_too_many_stopped_last() -> None:
    stage = opened()
    started(stage.instances)
    stage.servers.scale(3)
    assert started(stage.instances) == [("ps-2", True)]
    assert stage.servers.change_under_way == "2 → 3: waits for ps-2"
    stage.talk(1.0)
    assert not stage.said(TakeCheckpoint)
    stage.register(2)
    stage.talk(1.0)
    [call] = stage.said(TakeCheckpoint)
    assert call.header == TakeCheckpoint(1, "000001-000002", last=True)
    assert stage.servers.change_under_way == "2 → 3: the last checkpoint is written"
    assert complete(stage)
    stage.talk(1.0)
    arranged = [call.header for call in stage.said(Arrange)]
    where = ("ps-0:0", "ps-1:0", "ps-2:0")
    assert [(each.index, each.generation, each.addresses, each.restore) for each in arranged] == [
        (index, 2, where, "000001-000002") for index in range(3)
    ]  # fmt: skip
    assert addresses(stage) == where
    stage.servers.scale(1)
    stage.talk(1.0)
    assert complete(stage)
    assert started(stage.instances) == [("ps-1", False), ("ps-2", False)]
    assert (addresses(stage), stage.servers.change_under_way) == (("ps-0:0",), "")
    assert stage.servers.register("ps-2", 1, "ps-2:1", stage.now) is None


def test_a_new_master_goes_on_with_the_change_and_keeps_the_number() -> None:
    stage = opened()
    stage.servers.scale(3)
    stage.restart()
    stage.register(2)
    stage.talk(1.0)
    assert complete(stage)
    stage.restart()
    assert addresses(stage) == ("ps-0:0", "ps-1:0", "ps-2:0")
    assert stage.servers.target_count == 3


def test_one_change_at_a_time_and_the_present_number_withdraws_it() -> None:
    stage = opened()
    stage.servers.scale(4)
    with pytest.raises(JobError, match="is changing from 2 to 4") as refused:
        stage.servers.scale(3)
    assert "withdraw the change by the number 2" in str(refused.value.hint)
    stage.servers.scale(4)
    stage.servers.scale(2)
    assert (stage.servers.target_count, stage.servers.change_under_way) == (2, "")
    assert stage.servers.register("ps-2", 0, "ps-2:0", stage.now) is None


def test_a_server_is_asked_again_if_its_index_changes_while_it_is_asked_for_its_status() -> None:
    stage = opened()
    stage.servers.scale(2, ["ps-0"])
    stage.register(2)
    stage.talk(1.0)
    stage.now += STATUS_SECS
    [asked] = [call for call in stage.servers.calls(stage.now) if call.home == "ps-1"]
    assert finish(stage)
    assert addresses(stage) == ("ps-1:0", "ps-2:0")
    stage.servers.on_answer(asked, stage.answer(asked), stage.now)
    stage.now += STATUS_SECS
    calls = stage.servers.calls(stage.now)
    assert ("ps-1", 0, "Status") in [(call.home, call.index, call.name) for call in calls]


def test_servers_are_reopened_when_one_of_them_dies_before_the_others_follow() -> None:
    stage = opened()
    stage.servers.scale(1)
    stage.mute = {TakeCheckpoint}
    stage.talk(1.0)
    [call] = stage.said(TakeCheckpoint)
    stage.lose(1)
    stage.register(1, 1)
    stage.unmute()
    stage.talk(1.0)  # another last checkpoint is under way
    figures = Figures(0, 1, Version(1), open=True, sealed=call.header.folder)  # type: ignore[union-attr]
    asked = [each for each in stage.asked if isinstance(each.header, Status) and each.index == 0]
    stage.servers.on_answer(asked[-1], figures, stage.now)
    reopened = [each.header for each in stage.servers.calls(stage.now) if isinstance(each.header, Reopen)]
    assert reopened == [Reopen(1, "000001-000002")]
    assert stage.checkpoints.closing == "000001-000003"


def test_a_push_that_a_living_worker_has_not_finished_puts_the_change_off() -> None:
    stage = opened()
    stage.worker("worker-0")
    stage.servers.scale(1)
    stage.mute = {TakeCheckpoint}
    stage.talk(1.0)
    [call] = stage.unheard
    for who, closing in (({"worker-9": 0, "worker-0": 7}, True), ({"worker-0": 0}, False)):
        stage.servers.on_answer(call, CheckpointTaken(Version(1), unfinished=who), stage.now)
        assert bool(stage.checkpoints.closing) is closing
    assert "worker-0 is pushing to some of them" in stage.notes[-1]


def test_a_checkpoint_in_memory_is_followed_by_one_in_files() -> None:
    stage = opened(Mode("sync"), MEMORY)
    stage.servers.scale(3)
    stage.register(2)
    stage.talk(1.0)
    [call] = stage.said(TakeCheckpoint)
    assert call.header == TakeCheckpoint(1, "000001-000002", last=True)
    assert complete(stage)
    checkpoint = stage.leases.state.checkpoint
    assert checkpoint is not None and checkpoint.manifest is None
    stage.talk(1.0)
    assert all(call.header.manifest is None for call in stage.said(Arrange))  # type: ignore[union-attr]
    stage.step += 1
    stage.talk(11.0)
    assert [call.header.memory for call in stage.said(TakeCheckpoint)] == [True]  # type: ignore[union-attr]


def test_a_checkpoint_that_was_begun_in_memory_stays_there_and_one_in_files_follows_when_all_servers_end() -> (
    None
):
    stage = opened(Mode("async"), MEMORY)
    for memory in (True, False):
        stage.step += memory
        stage.talk(11.0)
        assert [call.header.memory for call in stage.said(TakeCheckpoint)] == [memory]  # type: ignore[union-attr]
        if memory:
            stage.checkpoints.leave_memory()
            stage.checkpoints.request()
        assert complete(stage)
        checkpoint = stage.leases.state.checkpoint
        assert checkpoint is not None and (checkpoint.manifest is not None) is memory
        assert stage.checkpoints.requested is memory


def test_a_server_is_moved_by_another_one_that_follows_it() -> None:
    stage = opened()
    started(stage.instances)
    stage.servers.scale(2, ["ps-0"])
    assert started(stage.instances) == [("ps-2", True)]
    stage.register(2)
    stage.talk(1.0)
    assert complete(stage)
    assert started(stage.instances) == [("ps-0", False)]
    assert addresses(stage) == ("ps-1:0", "ps-2:0")
    stage.restart()
    assert addresses(stage) == ("ps-1:0", "ps-2:0")


def leaves(stage: Stage, index: int) -> None:
    """The process of the server is asked to end, and says so."""
    stage.talk()
    version = Version(stage.leases.state.generation, 0, stage.step)
    figures = Figures(index, version.generation, version, open=True, leaving=True)
    asked = [each for each in stage.asked if isinstance(each.header, Status) and each.index == index]
    stage.servers.on_answer(asked[-1], figures, stage.now)


def test_a_server_that_is_to_end_is_replaced_before() -> None:
    stage = opened()
    stage.talk(1.0)
    leaves(stage, 1)
    assert "ps-1 is to end: another server follows" in stage.notes
    assert stage.servers.change_under_way == "2, without ps-1: waits for ps-2"
    leaves(stage, 0)  # it waits for its turn
    stage.servers.scale(2)  # as there are
    stage.register(2)
    stage.talk(0.25)
    assert complete(stage)
    assert addresses(stage) == ("ps-0:0", "ps-2:0")


def test_a_server_that_waits_to_be_replaced_leaves_with_another_number_of_servers() -> None:
    stage = opened()
    stage.servers.replace({"ps-1"}, "runs on a node that the job avoids")
    stage.register(2)
    stage.servers.scale(3)
    assert stage.servers.change_under_way == "2 → 3: waits for ps-3, ps-4"
    assert stage.servers.register("ps-2", 0, "ps-2:0", stage.now) is None
    for number in (3, 4):
        stage.register(number)
    stage.talk(1.0)
    assert complete(stage)
    assert addresses(stage) == ("ps-0:0", "ps-3:0", "ps-4:0")


def test_a_server_that_ends_too_early_is_followed_by_its_own_replacement() -> None:
    stage = opened()
    stage.servers.replace({"ps-1", "worker-0"}, "runs on a node that the job avoids")
    assert stage.servers.change_under_way.startswith("2, without ps-1")
    stage.lose(1)
    assert stage.servers.change_under_way == ""
    stage.register(1, 1)
    stage.talk(0.5)
    assert addresses(stage) == ("ps-0:0", "ps-1:1")


def test_totals_of_the_job_stay_when_servers_are_replaced_or_their_number_changes() -> None:
    stage = opened()
    stage.evicted = {"ps-0:0": 3, "ps-1:0": 4}
    stage.talk(1.0)
    assert stage.servers.counts.evicted == 7
    stage.lose(1)
    stage.register(1, incarnation=1)
    stage.talk(1.0)
    assert stage.servers.counts.evicted == 7
    stage.evicted["ps-1:1"] = 2
    stage.talk(1.0)
    assert stage.servers.counts.evicted == 9
    stage.servers.scale(1)
    stage.talk(1.0)
    assert complete(stage)
    stage.evicted = {}  # the server that stays begins anew
    stage.talk(1.0)
    assert stage.servers.counts.evicted == 9
    stage.evicted["ps-0:0"] = 1
    stage.restart()
    stage.talk(1.0)
    assert stage.servers.counts.evicted == 10
