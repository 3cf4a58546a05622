"""The tasks of groups: members of the test's own, in threads where they wait, and a real master."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from edl.collectives.base import GroupError
from edl.master.tasks.recovery import AllReduceRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.rpc.channel import MasterChannel
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import WorkerGroup
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import CONTROL, Conclusion, Report, Task
from edl.worker import master_client
from edl.worker.ahead import Ahead
from edl.worker.master_client import RefusedError, RemoteTasks
from edl.worker.strategies.allreduce.task_log import GroupProgress
from edl.worker.strategies.allreduce.task_source import GroupTasks
from edl.worker.strategies.base import VoidError
from tests.edl.worker.masters import SECONDS, TOKEN, Master, done, in_thread

SIZE = 512
MANY = 20  # tasks, or epochs
TRAINING = Training(batch_size=SIZE, epochs=2, keep="best")
PLAN = Plan("train", 3 * LEAST_ROWS, 100, TRAINING)


class Store:
    """Store of a group with threads as members. gone: the first member is lost."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._gone = False

    def set(self, key: str, value: bytes) -> None:
        with self._changed:
            self._values[key] = value
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._gone or key in self._values, SECONDS)
            if self._gone:
                raise GroupError
            return self._values[key]

    def break_down(self) -> None:
        with self._changed:
            self._gone = True
            self._changed.notify_all()


class Member:
    """A worker with the test as its reader and trainer. did: what the log had it do with its parameters. unconcluded:
    the epoch that had ended at the cut that it begins with."""

    def __init__(self, channel: MasterChannel, name: str) -> None:
        self.name = name
        self.did: list[str] = []
        self.unconcluded = 0
        self.draining = threading.Event()
        ahead = Ahead("train", MANY) if self.name.startswith("ahead") else None
        self.source = RemoteTasks(channel, name, 0, trainer=True, grouped=True, ahead=ahead)
        self.source.most_postponed = MANY if ahead else 0
        self.source.join()
        self.tasks = GroupTasks(self.source, f"{name}:1", TRAINING, self.draining, ahead=4)
        self.tasks.parameters = self

    def begin(self) -> int:
        self.did.append("begin")
        return self.unconcluded

    def keep(self, epoch: int) -> None:
        self.did.append(f"keep {epoch}")

    def postpone(self, epoch: int) -> None:
        self.keep(epoch)

    def keep_best(self, best: int, epoch: int) -> None:
        self.did.append(f"keep best {epoch}")

    def next(self) -> Task | None:
        return in_thread(lambda: self.tasks.next("train")).result(SECONDS)

    def train(self) -> int:
        """The next task, which is reported; its place in the epoch."""
        task = self.next()
        assert task is not None
        self.tasks.progress(done(task))
        self.tasks.report(done(task))
        return task.id

    def turn(self) -> bool:
        """The loop comes to where there is no training task, past one that it had read before a member was lost."""
        if self.next() is not None:
            assert self.next() is None
        return self.tasks.turn()

    def end(self) -> None:
        self.tasks.close()
        self.source.close()


class Stage:
    """The master, its workers, and the store of their group."""

    def __init__(self, master: Master) -> None:
        self.master = master
        self._channels = contextlib.ExitStack()
        self.members: list[Member] = []
        self.store = Store()

    def enter(self, *names: str) -> list[Member]:
        for name in names:
            channel = self._channels.enter_context(MasterChannel(f"127.0.0.1:{self.master.port}", TOKEN))
            self.members.append(Member(channel, name))
        self.want(len(self.members))
        return self.members[-len(names) :]

    def want(self, workers: int) -> None:
        self.master.with_leases(lambda leases: leases.want(workers))

    def form(self, members: Sequence[Member], done: Report | None = None) -> WorkerGroup:
        """The next group is theirs; they go on from where the first of them is."""
        self.store.break_down()
        waiting = [in_thread(partial(member.tasks.next_group, done)) for member in members]
        groups = [each.result(SECONDS) for each in waiting]
        assert all(group == groups[0] for group in groups)
        by_name = {member.name: member for member in members}
        self.store = Store()
        position = by_name[groups[0].members[0]].tasks.position()
        for rank, name in enumerate(groups[0].members):
            by_name[name].tasks.follow(position, groups[0], self.store, rank)
        return groups[0]

    def lose(self, member: Member) -> None:
        """It is killed."""
        self.members.remove(member)
        self.store.break_down()
        member.end()
        self.master.with_leases(lambda leases: leases.on_loss(member.name, 0, self.master.state_loop.now()))

    def close(self) -> None:
        self.store.break_down()
        for member in self.members:
            member.end()
        self._channels.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    master = Master(tmp_path, PLAN, recovery=AllReduceRecovery)
    made = Stage(master)
    yield made
    made.close()
    master.close()


def trained(leases: TaskManager) -> tuple[int, int]:
    """Training tasks that are done, and their rows."""
    return leases.state.done.get("train", 0), leases.job.state.rows


@pytest.mark.soak
def test_all_members_take_the_same_tasks_in_the_same_order(stage: Stage) -> None:
    one, other = stage.enter("worker-0", "worker-1")
    assert one.turn()
    group = stage.form([one, other])
    assert (group.holders, one.did + other.did) == (0, ["begin"])
    first = one if group.members[0] == one.name else other
    second = other if first is one else one
    assert [second.train() for _ in range(3)] == [0, 1, 2]
    assert [first.train() for _ in range(3)] == [0, 1, 2]
    assert stage.master.with_leases(trained) == (3, 3 * LEAST_ROWS)


def test_when_the_first_is_lost_the_next_goes_on_in_the_middle_of_its_task(stage: Stage) -> None:
    one, other = stage.enter("worker-0", "worker-1")
    group = stage.form([one, other])
    first, second = (one, other) if group.members[0] == one.name else (other, one)
    for member in (second, first):
        assert member.train() == 0
    task = second.next()
    assert task is not None
    stage.lose(first)
    assert second.turn()
    assert stage.form([second], Report(task, 2 * SIZE, 2, 2.0, 2.0 * SIZE)).holders == 1
    assert not second.tasks.holds_lease(task)
    again = second.next()
    assert again is not None
    assert (again.id, again.skip) == (1, 2 * SIZE)
    assert second.tasks.holds_lease(again)
    second.tasks.progress(done(again))
    second.tasks.report(done(again))
    assert second.train() == 2
    assert stage.master.with_leases(trained) == (3, 3 * LEAST_ROWS)


def test_what_the_first_could_not_tell_any_more_is_told_by_the_next(stage: Stage) -> None:
    one, other = stage.enter("worker-0", "worker-1")
    group = stage.form([one, other])
    first, second = (one, other) if group.members[0] == one.name else (other, one)
    for place in range(2):
        assert second.train() == place
    stage.lose(first)
    assert stage.master.with_leases(trained) == (0, 0)
    assert second.turn()
    stage.form([second])
    assert second.train() == 2
    assert stage.master.with_leases(trained) == (3, 3 * LEAST_ROWS)


def test_after_an_epoch_all_measure_it_and_train_the_next_one_when_it_is_concluded(stage: Stage) -> None:
    one, other = stage.enter("worker-0", "worker-1")
    group = stage.form([one, other])
    first, second = (one, other) if group.members[0] == one.name else (other, one)
    for member in (second, first):
        assert [member.train() for _ in range(3)] == [0, 1, 2]
        assert not member.tasks.is_pending
    for member in (second, first):
        assert not member.turn()
        assert member.tasks.is_pending
        assert member.did[-1] == "keep 1"
    task = second.tasks.next(*CONTROL)
    assert task is not None
    assert task.type == "evaluate"
    following = in_thread(lambda: second.tasks.next("train"))
    concluding = in_thread(lambda: first.tasks.next(*CONTROL))
    assert not following.done()
    second.tasks.report(done(task))
    conclude = concluding.result(SECONDS)
    assert conclude is not None
    assert conclude.type == "conclude"
    first.tasks.report(Report(conclude, conclusion=Conclusion({"loss": 1.0})))
    assert first.tasks.next(*CONTROL) is None
    assert not first.turn()
    assert following.result(SECONDS) is None
    assert second.tasks.next(*CONTROL) is None
    assert not second.tasks.turn()
    for member in (first, second):
        assert member.did[-1] == "keep best 1"
        task = member.next()
        assert task is not None
        assert (task.number, task.id) == (2, 0)


def live(member: Member, last: str) -> None:
    """Do what the loop of a worker does until this was done last, or the job is over."""
    while last not in member.did[-1:] and not member.tasks.is_over("export"):
        if member.tasks.is_pending:
            if task := member.tasks.next(*CONTROL):
                member.tasks.report(done(task))
        elif task := member.tasks.next("train"):
            member.tasks.report(done(task))
        else:
            member.tasks.turn()


def go_on(members: Sequence[Member], last: str = "") -> None:
    """The members go on at the same time."""
    for living in [in_thread(partial(live, member, last)) for member in members]:
        living.result(SECONDS)


def test_without_a_master_the_next_epoch_begins_and_the_last_one_is_measured_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(master_client, "AWAY_SECS", 0.1)
    training = msgspec.structs.replace(TRAINING, epochs=5)
    master = Master(tmp_path, msgspec.structs.replace(PLAN, training=training), recovery=AllReduceRecovery)
    with contextlib.closing(master), contextlib.closing(Stage(master)) as stage:
        one, other = stage.enter("ahead-0", "ahead-1")
        group = stage.form([one, other])
        first, second = (one, other) if group.members[0] == one.name else (other, one)
        go_on((first, second), "keep best 1")
        assert (first.train(), second.train()) == (0, 0)
        master.stop()
        for member in (second, first):
            assert [member.train() for _ in range(2)] == [1, 2]
        for member in (first, second):
            while member.did[-1] != "keep 2":
                assert not member.turn()
            assert member.tasks.has_postponed
            assert member.train() == 0
        assert encoding.decode(second.tasks.position(), GroupProgress).postponed == (2,)
        master.start()
        go_on((first, second))
        state = master.with_leases(lambda leases: leases.job.state)
    assert [row.epoch for row in state.curve.rows] == [1, 2, 3, 4, 5]
    assert state.rows == 5 * PLAN.rows


@pytest.mark.soak
def test_an_epoch_is_kept_once_more_if_nobody_alive_knows_that_its_end_is_concluded(stage: Stage) -> None:
    one, other = stage.enter("worker-0", "worker-1")
    group = stage.form([one, other])
    first, second = (one, other) if group.members[0] == one.name else (other, one)
    for member in (second, first):
        assert [member.train() for _ in range(3)] == [0, 1, 2]
    for member in (second, first):
        assert not member.turn()
    while task := first.tasks.next(*CONTROL):
        first.tasks.report(done(task))
    stage.lose(first)
    assert second.tasks.next(*CONTROL) is None
    assert second.turn()
    stage.form([second])
    assert not second.turn()
    assert second.tasks.next(*CONTROL) is None
    assert not second.turn()
    assert second.did == ["keep 1", "keep 1"]
    task = second.next()
    assert task is not None
    assert task.number == 2


def test_nothing_follows_the_last_task_of_an_epoch_that_a_group_begins_with(stage: Stage) -> None:
    [one] = stage.enter("worker-0")
    stage.form([one])
    assert [one.train() for _ in range(2)] == [0, 1]
    task = one.next()
    assert task is not None
    assert task.settles
    stage.form([one], Report(task, SIZE, 1, 1.0, float(SIZE)))
    assert one.train() == 2
    assert not one.turn()
    assert one.tasks.is_pending


@pytest.mark.soak
def test_who_joins_ends_the_group_at_the_next_minibatch_and_goes_on_where_it_was(stage: Stage) -> None:
    [one] = stage.enter("worker-0")
    stage.form([one])
    task = one.next()
    assert task is not None
    assert not one.tasks.regroup
    [other] = stage.enter("worker-1")
    joining = in_thread(other.tasks.next_group)
    while one.next() is not None:
        """Until the loop is called back."""
    assert one.tasks.regroup
    done = Report(task, SIZE, 1, 1.0, float(SIZE))
    group = in_thread(lambda: one.tasks.next_group(done)).result(SECONDS)
    assert group == joining.result(SECONDS)
    assert (group.members, group.holders) == (("worker-0", "worker-1"), 1)
    store = Store()
    position = one.tasks.position()
    for rank, member in enumerate((one, other)):
        member.tasks.follow(position, group, store, rank)
        again = member.next()
        assert again is not None
        assert (again.id, again.skip) == (0, SIZE)
        assert member.tasks.leads == (rank == 0)
    store.break_down()


def test_a_worker_that_has_to_go_seeks_no_group(stage: Stage) -> None:
    [one] = stage.enter("worker-0")
    stage.form([one])
    one.draining.set()
    assert one.tasks.regroup
    with pytest.raises(VoidError):
        one.tasks.next_group()


def test_the_first_that_has_to_go_checkpoints_where_it_is_for_the_case_that_nobody_goes_on(
    stage: Stage,
) -> None:
    one, other = stage.enter("worker-0", "worker-1")
    group = stage.form([one, other])
    first, second = (one, other) if group.members[0] == one.name else (other, one)
    assert first.train() == 0
    task = first.next()
    assert task is not None
    for member in (first, second):
        member.draining.set()
        with pytest.raises(VoidError):
            member.tasks.next_group(Report(task, 2 * SIZE, 2, 2.0, 2.0 * SIZE))
    assert (first.tasks.leads, second.tasks.leads) == (True, False)
    first.tasks.begin_checkpoint("now", Report(Task(0, "train")))
    first.source.end_checkpoint("now")
    first.source.leave()
    for member in (first, second):
        stage.master.with_leases(lambda leases, name=member.name: leases.on_loss(name, 0, 1.0))
    assert stage.master.with_leases(trained) == (1, LEAST_ROWS + 2 * SIZE)
    assert stage.master.with_leases(lambda leases: leases.state.generation) == 2


def test_an_epoch_that_is_measured_when_all_have_to_go_is_measured_by_those_who_come(stage: Stage) -> None:
    [one] = stage.enter("worker-0")
    stage.form([one])
    assert [one.train() for _ in range(3)] == [0, 1, 2]
    assert not one.turn()
    assert one.tasks.next(*CONTROL) is not None
    one.draining.set()
    with pytest.raises(VoidError):
        one.tasks.next_group()
    assert (one.tasks.leads, one.tasks.unconcluded_epoch) == (True, 1)
    one.tasks.begin_checkpoint("now", Report(Task(0, "train")))
    one.source.end_checkpoint("now")
    one.source.leave()
    stage.lose(one)
    assert stage.master.with_leases(trained) == (3, 3 * LEAST_ROWS)
    [other] = stage.enter("worker-1")
    other.unconcluded = 1
    assert stage.form([other]).holders == 0
    assert not other.turn()
    assert other.did == ["begin", "keep 1"]
    while task := other.tasks.next(*CONTROL):
        other.tasks.report(done(task))
    assert not other.turn()
    assert other.did == ["begin", "keep 1", "keep best 1"]
    assert other.tasks.unconcluded_epoch == 0
    task = other.next()
    assert task is not None
    assert (task.number, task.id) == (2, 0)


def test_a_worker_ends_when_training_goes_back_to_before_what_it_holds(stage: Stage) -> None:
    [one] = stage.enter("worker-0")
    stage.form([one])
    assert one.train() == 0
    stage.master.with_leases(lambda leases: leases.go_back())
    for _ in ("it hears of it while it waits", "it has heard of it"):
        with pytest.raises(RefusedError, match="went back"):
            one.tasks.next_group()
