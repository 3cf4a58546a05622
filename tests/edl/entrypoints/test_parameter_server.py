"""The process of a parameter server: it registers, serves, and ends when it is told to."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import msgspec
import numpy as np
import pytest

from edl import exit_codes
from edl.cluster import Instance
from edl.entrypoints import parameter_server
from edl.jobs.cluster_folder import ClusterFolder, RunSpec
from edl.ps import messages as msg
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint.content import Mode
from edl.rpc import control_pb2 as pb
from edl.rpc import transport
from edl.rpc.control_pb2_grpc import MasterServicer, add_MasterServicer_to_server
from tests.edl.ps.servers import ADAM, SECONDS, definition

INSTANCE = Instance("ps-0", "ps", 3)


class Master(MasterServicer):
    """Hears who registers, and answers as the test says."""

    def __init__(self) -> None:
        self.heard: SimpleQueue[pb.RegisterRequest] = SimpleQueue()
        self.answer: Callable[[Any], pb.Registration] = lambda context: pb.Registration()

    def Register(self, request: pb.RegisterRequest, context: Any) -> pb.Registration:  # noqa: N802
        self.heard.put(request)
        return self.answer(context)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    heard = Master()
    server = grpc.server(ThreadPoolExecutor(1))
    add_MasterServicer_to_server(heard, server)
    folder = ClusterFolder(tmp_path)
    folder.write_run_spec(RunSpec("torch"))
    folder.make_token()
    folder.write_master_address(f"127.0.0.1:{transport.listen(server, '127.0.0.1:0')}")
    (tmp_path / "logs").mkdir()
    server.start()
    yield heard
    server.stop(None).wait()


@contextmanager
def running(job: Path) -> Iterator[subprocess.Popen[bytes]]:
    read, write = os.pipe()
    arguments = [str(job), msgspec.json.encode(INSTANCE).decode(), str(read)]
    command = [sys.executable, "-P", "-m", "edl.cluster.local.instance_process", *arguments]
    with subprocess.Popen(command, pass_fds=(read,), start_new_session=True) as process:
        os.close(read)
        try:
            yield process
        finally:
            os.close(write)  # the lifeline
            process.wait(SECONDS)


def test_a_server_is_ready_to_restore_parameters_when_it_registers(
    master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, serving, serve = list[str](), threading.Event(), parameter_server.serve

    def served(*given: Any) -> Any:
        found = serve(*given)
        serving.set()
        return found

    def warm_up() -> None:
        assert serving.wait(SECONDS)
        order.append("warm")

    def register(*given: Any) -> bool:
        order.append("registered")
        return False

    for name, replaced in (("serve", served), ("warm_up", warm_up), ("_register", register)):
        monkeypatch.setattr(parameter_server, name, replaced)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    assert parameter_server.main(tmp_path, INSTANCE) == exit_codes.PREEMPTED
    assert order == ["warm", "registered"]


def test_a_server_registers_though_its_code_is_still_compiled(
    master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered, compiled_after = threading.Event(), queue.SimpleQueue[bool]()

    def register(*given: Any) -> bool:
        registered.set()
        return False

    monkeypatch.setattr(parameter_server, "WARM_SECS", 0.0)
    monkeypatch.setattr(parameter_server, "warm_up", lambda: compiled_after.put(registered.wait(SECONDS)))
    monkeypatch.setattr(parameter_server, "_register", register)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    assert parameter_server.main(tmp_path, INSTANCE) == exit_codes.PREEMPTED
    assert compiled_after.get(timeout=SECONDS)


@pytest.mark.variants(1)
@pytest.mark.usefixtures("calls")
def test_a_server_tells_a_master_that_is_away_later_and_serves_and_ends(
    master: Master, tmp_path: Path
) -> None:
    def away(context: Any) -> pb.Registration:
        master.answer = lambda context: pb.Registration()
        context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        raise AssertionError

    master.answer = away
    with running(tmp_path) as process:
        request, again = (master.heard.get(timeout=SECONDS) for _ in range(2))
        assert request == again
        assert (request.instance, request.incarnation, request.role) == ("ps-0", 3, "ps")
        with ServerChannel(request.address, ClusterFolder(tmp_path).token()) as channel:
            order = msg.Arrange(0, 0, 0, (request.address,), Mode())
            channel.call(order, (), msg.Arranged, SECONDS)
            values = [np.ones(16, np.float32), np.ones(2, np.float32)]
            defined, _ = channel.call(msg.Define(0, definition()), values, msg.Defined, SECONDS)
            assert not defined.open
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == exit_codes.OK


def test_a_server_that_is_killed_is_followed_by_one_that_has_its_cut_and_ends_with_its_lifeline(
    master: Master, tmp_path: Path
) -> None:
    """A6: parameters, slots and what was pushed are back; the version does not go back."""
    model, folder = definition(ADAM), str(tmp_path / "checkpoints" / "one")
    gradients, ids = np.ones(16, np.float32), np.arange(7)
    push = msg.Push(0, "worker-0", 0, 1, 0.1, 10, ("users",))
    rows = [gradients, ids, np.ones((7, 2), np.float32)]
    known = [""]

    def arranged(epoch: int, restore: str) -> ServerChannel:
        while (address := master.heard.get(timeout=SECONDS).address) in known:
            pass  # the one that was killed had told it again, for want of an answer
        known.append(address)
        channel = ServerChannel(address, ClusterFolder(tmp_path).token())
        channel.call(msg.Arrange(0, 0, epoch, (address,), Mode(), restore), (), msg.Arranged, SECONDS)
        return channel

    def pulled(channel: ServerChannel) -> tuple[msg.Pulled, list[np.ndarray]]:
        return channel.call(msg.Pull(0, ("users",), dense=True), [ids], msg.Pulled, SECONDS)

    with running(tmp_path) as process, arranged(0, "") as channel:
        values = [np.ones(16, np.float32), np.ones(2, np.float32)]
        channel.call(msg.Define(0, model), values, msg.Defined, SECONDS)
        channel.call(msg.Open(0), (), msg.Done, SECONDS)
        channel.call(push, rows, msg.Pushed, SECONDS)
        channel.call(msg.TakeCheckpoint(0, folder, wait=True), (), msg.CheckpointTaken, SECONDS)
        before, expected = pulled(channel)
        process.kill()
        process.wait(SECONDS)
    with running(tmp_path) as process, arranged(1, folder) as channel:
        channel.call(push, rows, msg.Pushed, SECONDS)  # its answer was lost
        after, found = pulled(channel)
        assert after.version > before.version
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        channel.call(msgspec.structs.replace(push, sequence=2), rows, msg.Pushed, SECONDS)
        assert pulled(channel)[0].version.step == 2
    assert process.returncode < 0


@pytest.mark.soak
def test_a_server_says_in_its_log_that_it_cannot_reach_the_master(
    master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDL_UNREACHABLE_SECS", "0.1")
    folder = ClusterFolder(tmp_path)
    folder.write_master_address("master.invalid:50001")
    with running(tmp_path):
        until_written(folder.log("ps-0"), "has not reached the master at master.invalid:50001 for ")
    assert "s: the name is not found (" in folder.log("ps-0").read_text()


def until_written(log: Path, text: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not (log.exists() and text in log.read_text()):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def test_a_server_that_the_master_refuses_leaves(
    master: Master, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()

    def on_signal(number: int, handler: Callable[[int, object], object]) -> None:
        """Stop a server that stays nevertheless."""
        watch = threading.Thread(target=lambda: stopped.wait(SECONDS) or handler(number, None), daemon=True)
        watch.start()

    monkeypatch.setattr(signal, "signal", on_signal)
    monkeypatch.setattr(parameter_server, "warm_up", lambda: None)
    master.answer = lambda context: pb.Registration(refused=True)
    assert parameter_server.main(tmp_path, INSTANCE) == exit_codes.PREEMPTED
    stopped.set()
    assert master.heard.get(timeout=SECONDS).incarnation == INSTANCE.incarnation


@pytest.mark.soak
def test_a_server_loads_no_framework_and_nothing_of_programs() -> None:
    code = (
        "import sys; from edl.entrypoints import parameter_server; parameter_server.warm_up();"
        "print(*(name for name in sys.modules if name.split('.')[0] in "
        "('tensorflow', 'keras', 'torch', 'jax', 'pandas', 'duckdb', 'pyarrow', 'sqlflow_edl')"
        " or name.startswith(('edl.program', 'edl.worker', 'edl.master'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.stdout.split() == []
