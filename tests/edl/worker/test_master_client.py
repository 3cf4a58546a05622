"""A worker's task source, over gRPC to a master of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from edl.errors import ClusterError
from edl.master.tasks.recovery import ServerRecovery, TrainerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.reachability import Peer
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import AwayError, MasterChannel
from edl.spec import Training
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Answer, Request, Servers
from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from edl.tasks.task import CONTROL, Report
from edl.worker import master_client
from edl.worker.ahead import Ahead
from edl.worker.loop import DivergedError
from edl.worker.master_client import RefusedError, RemoteTasks
from tests.edl.worker.masters import SECONDS, TOKEN, Master, done, in_thread


@pytest.fixture
def master(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Master]:
    made = Master(tmp_path, **request.param)
    yield made
    made.close()


@pytest.fixture
def tasks(master: Master) -> Iterator[RemoteTasks]:
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-0", 0, ahead=Ahead("train", 3)) as source,
    ):
        source.join()
        yield source


PREDICT = {"plan": Plan("predict", 3 * STREAMED_ROWS)}
TRAIN = {"plan": Plan("train", 3 * LEAST_ROWS, 100, Training(batch_size=512))}


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_tasks_come_until_there_are_none(tasks: RemoteTasks) -> None:
    found = []
    while not tasks.is_over("predict"):
        if task := tasks.next("predict"):
            found.append(task.id)
            tasks.progress(Report(task, 1000))
            tasks.report(done(task))
    assert found == [0, 1, 2]
    assert tasks.next("predict") is None


@pytest.mark.parametrize("master", [TRAIN], indirect=True)
def test_what_follows_from_the_last_task_of_an_epoch_is_known_when_it_is_reported(tasks: RemoteTasks) -> None:
    for _ in range(3):
        task = tasks.next("train")
        assert task is not None
        assert not tasks.is_pending
        tasks.report(done(task))
    assert tasks.is_pending
    kinds = []
    while not tasks.is_over("export"):
        if task := tasks.next(*CONTROL):
            kinds.append(task.type)
            tasks.report(done(task))
    assert kinds == ["evaluate", "conclude", "export"]


@pytest.mark.parametrize("master", [{**TRAIN, "lease_secs": 10 * SECONDS}], indirect=True)
def test_reports_from_which_nothing_follows_are_told_together(master: Master) -> None:
    told: list[int] = []

    def count(leases: TaskManager) -> None:
        exchange = leases.exchange

        def counted(request: Request, now: float) -> Answer:
            told.append(len(request.updates))
            return exchange(request, now)

        leases.exchange = counted  # type: ignore[method-assign]

    master.with_leases(count)
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-0", 0, ahead=Ahead("train", 3), gather_secs=SECONDS) as tasks,
    ):
        tasks.join()
        for _ in range(3):
            task = tasks.next("train")
            assert task is not None
            tasks.report(done(task))
        assert tasks.is_pending
        assert [number for number in told if number] == [3]


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_who_waits_gets_what_another_gives_back(master: Master, tasks: RemoteTasks) -> None:
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-1", 0) as other,
    ):
        other.join()
        held = [tasks.next("predict") for _ in range(3)]
        waiting = in_thread(lambda: other.next("predict"))
        assert held[1] is not None
        tasks.give_back(Report(held[1]))
        found = waiting.result(SECONDS)
        assert found is not None
        assert found.id == held[1].id


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_a_master_that_was_away_is_told_again(master: Master, tasks: RemoteTasks) -> None:
    task = tasks.next("predict")
    assert task is not None
    master.stop()
    tasks.report(done(task))
    master.start()
    found = [task.id]
    while not tasks.is_over("predict"):
        if task := tasks.next("predict"):
            found.append(task.id)
            tasks.report(done(task))
    assert sorted(set(found)) == [0, 1, 2]
    assert master.with_leases(lambda leases: leases.state.done) == {"predict": 3}


@pytest.mark.soak
@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_who_has_to_go_does_not_wait_long_for_a_master_that_is_away(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(master_client, "LEAVING_SECS", 0.0)
    draining = threading.Event()
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-0", 0, draining=draining) as tasks,
    ):
        tasks.join()
        task = tasks.next("predict")
        assert task is not None
        master.stop()
        draining.set()
        with pytest.raises(RefusedError, match="the master is away"):
            while True:
                tasks.progress(Report(task))
        with pytest.raises(RefusedError, match="the master is away"):
            RemoteTasks(channel, "worker-0", 1, draining=draining).join()
    master.start()


@pytest.mark.soak
@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_who_has_to_go_waits_for_no_task(master: Master) -> None:
    draining = threading.Event()
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-0", 0, draining=draining) as tasks,
    ):
        tasks.join()
        for _ in range(3):
            assert tasks.next("predict")
        waiting = in_thread(lambda: tasks.next("predict"))
        draining.set()
        assert waiting.result(SECONDS) is None


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_a_worker_that_was_given_up_registers_again(master: Master, tasks: RemoteTasks) -> None:
    task = tasks.next("predict")
    assert task is not None
    master.with_leases(lambda leases: leases.on_loss("worker-0", 0, master.state_loop.now()))
    tasks.report(done(task))
    found = []
    while not tasks.is_over("predict"):
        if task := tasks.next("predict"):
            found.append(task.id)
            tasks.report(done(task))
    assert found == [0, 1, 2]


@pytest.mark.parametrize("master", [TRAIN | {"recovery": TrainerRecovery}], indirect=True)
def test_a_trainer_that_was_given_up_leaves(master: Master) -> None:
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-0", 0, trainer=True) as tasks,
    ):
        tasks.join()
        task = tasks.next("train")
        assert task is not None
        master.with_leases(lambda leases: leases.on_loss("worker-0", 0, master.state_loop.now()))
        with pytest.raises(RefusedError, match="has given this worker up"):
            while True:
                tasks.report(done(task))
                tasks.next("train")


@pytest.mark.parametrize("master", [TRAIN], indirect=True)
def test_who_asks_for_servers_waits_until_all_are_ready(master: Master, tasks: RemoteTasks) -> None:
    def move(servers: Servers) -> Callable[[TaskManager], None]:
        return lambda leases: setattr(leases, "servers", servers)

    assert tasks.servers is None
    assert tasks.wait_for_servers(0, 0.01) is None
    waiting = in_thread(lambda: tasks.wait_for_servers(1, SECONDS))
    master.with_leases(move(Servers(1, 1, ("a:1",), ready=True)))
    master.with_leases(move(Servers(2, 1, ("",))))
    third = Servers(3, 1, ("a:2",), ready=True)
    master.with_leases(move(third))
    assert waiting.result(SECONDS) == third
    assert tasks.servers == third


@pytest.mark.parametrize("master", [TRAIN | {"recovery": ServerRecovery}], indirect=True)
def test_who_holds_tasks_turns_to_their_gradients_when_there_are_no_others(
    master: Master, tasks: RemoteTasks
) -> None:
    held = [tasks.next("train") for _ in range(3)]
    assert all(task is not None and tasks.holds_lease(task) for task in held)
    assert tasks.next("train") is None  # and it does not wait
    assert not tasks.is_over("train")


@pytest.mark.parametrize("master", [TRAIN], indirect=True)
def test_what_was_in_hands_is_void_when_the_job_goes_back(master: Master, tasks: RemoteTasks) -> None:
    task = tasks.next("train")
    assert task is not None

    def go_back(leases: TaskManager) -> None:
        leases.go_back()
        leases.servers = Servers(2, 2, ("a:1",), ready=True)

    assert tasks.holds_lease(task)
    master.with_leases(go_back)
    assert tasks.wait_for_servers(1, SECONDS)
    assert not tasks.holds_lease(task)


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_what_raises_is_done_again_and_what_is_fatal_ends_the_job(master: Master, tasks: RemoteTasks) -> None:
    task = tasks.next("predict")
    assert task is not None
    assert tasks.report_failure(task, OSError("the cable is out"))
    again = tasks.next("predict")
    assert again is not None
    assert again.id == task.id
    error = DivergedError("the loss became nan")
    assert not tasks.report_failure(again, error)
    assert tasks.is_reported(error)
    failed = master.with_leases(lambda leases: leases.state.failed)
    assert failed is not None
    assert failed.message == "the loss became nan"


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_whoever_waits_is_let_go(tasks: RemoteTasks) -> None:
    for _ in range(3):
        assert tasks.next("predict")
    waiting = in_thread(lambda: tasks.next("predict"))
    with tasks.awake():
        assert waiting.result(SECONDS) is None


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_who_leaves_gives_back_what_was_not_begun(master: Master) -> None:
    with (
        MasterChannel(f"127.0.0.1:{master.port}", TOKEN) as channel,
        RemoteTasks(channel, "worker-0", 0, ahead=Ahead("predict", 3)) as tasks,
    ):
        tasks.join()
        task = tasks.next("predict")
        assert task is not None
        tasks.report(done(task))
        tasks.leave()
    leases, done_tasks = master.with_leases(
        lambda leases: (dict(leases.state.leases), dict(leases.state.done))
    )
    assert (leases, done_tasks) == ({}, {"predict": 1})


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_the_master_hears_what_a_worker_cannot_reach(master: Master, tasks: RemoteTasks) -> None:
    peer = Peer("ps-1", "10.0.0.1:4000", tell=lambda text: None, seconds=0.0)
    heard = SimpleQueue[str]()
    master.state_loop.obstacles.on_heard = lambda name, incarnation, text: heard.put(text)  # type: ignore[method-assign]

    def next_report() -> str:
        with tasks.changed:
            tasks.wake()
        return heard.get(timeout=SECONDS)

    peer.on_failure(lambda: "it is away")
    while not (text := next_report()):
        pass
    assert text == "does not reach ps-1 at 10.0.0.1:4000: it is away"
    peer.on_answer()
    while next_report():
        pass


def test_a_worker_without_a_master_says_why() -> None:
    told = SimpleQueue[str]()
    peer = Peer("the master", "127.0.0.1:1", tell=told.put, seconds=0.05)
    with (
        MasterChannel("127.0.0.1:1", TOKEN, peer=peer) as channel,
        RemoteTasks(channel, "worker-0", 0) as tasks,
    ):
        joining = in_thread(tasks.join)
        assert told.get(timeout=SECONDS).endswith("s: the connection is refused: nothing listens there")
        tasks.close()
        with pytest.raises(AwayError):
            joining.result(SECONDS)
    peer.on_gone()


@pytest.mark.parametrize("master", [PREDICT], indirect=True)
def test_a_wrong_token_is_refused_and_nobody_there_is_away(master: Master) -> None:
    with (
        MasterChannel(f"127.0.0.1:{master.port}", "guess") as channel,
        RemoteTasks(channel, "worker-0", 0) as tasks,
        pytest.raises(ClusterError, match="lacks the token"),
    ):
        tasks.join()
    with MasterChannel("127.0.0.1:1", TOKEN) as channel, pytest.raises(AwayError):
        channel.call(channel.stub.JobStatus, pb.JobStatusRequest(), 2.0)
