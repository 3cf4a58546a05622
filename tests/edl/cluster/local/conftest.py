"""A stage: a job with a real supervisor, and a master and workers that do what the test says."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edl.cluster.local.client import SupervisedJob
from edl.cluster.local.supervisor import COMMIT
from edl.jobs import job_folder
from edl.jobs.cluster_folder import TESTING, ClusterFolder, RunSpec

SECONDS = 60.0  # until a wait of these tests has failed
MOMENT = 5.0  # from a kill to the end
CAST = Path(__file__).parent / "stage"


class Player:
    """The test's end of the connection to a master or a worker."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(SECONDS)
        self._connection = connection
        self._lines = connection.makefile()
        self.who = json.loads(self._lines.readline())
        self.name: str = self.who["name"]
        self.pid: int = self.who["pid"]
        self._end = os.pidfd_open(self.pid)

    def send(self, do: str, **order: Any) -> None:
        self._connection.sendall(json.dumps({"do": do, **order}).encode() + b"\n")

    def receive(self) -> Any:
        return json.loads(self._lines.readline())

    def do(self, do: str, **order: Any) -> Any:
        self.send(do, **order)
        return self.receive()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        signal.pidfd_send_signal(self._end, number)

    def wait(self) -> None:
        """Until it has ended."""
        wait_for_end(self._end)

    def close(self) -> None:
        self._lines.close()
        self._connection.close()
        os.close(self._end)


class Stage:
    """A job, its supervisor, and who has come on."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self.job = job_folder.create("predict")
        self.folder = ClusterFolder(self.job.path)
        self.spec = spec
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / "door"))
        self._door.listen()
        self._door.settimeout(SECONDS)
        self._players: list[Player] = []

    def start(self) -> SupervisedJob:
        self.running = SupervisedJob.start(self.job, self.spec)
        return self.running

    def enter(self) -> Player:
        """The next one that comes on."""
        player = Player(self._door.accept()[0])
        self._players.append(player)
        return player

    def opening(self) -> Player:
        """The master of a new supervisor."""
        self.start()
        return self.enter()

    def worker(self, master: Player, name: str = "worker-0", incarnation: int = 0) -> Player:
        """A worker that runs; its first two changes are read."""
        assert master.do("start", name=name, incarnation=incarnation) == ""
        assert [change["state"] for change in master.do("changed", count=2)] == ["pending", "running"]
        return self.enter()

    def close(self) -> None:
        self._door.close()
        for player in self._players:
            player.close()


@pytest.fixture
def theatre(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What every process of the test has in its environment; none is left, however the test ended."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("THEATRE", mark)
    monkeypatch.setenv(TESTING, "cast,cast:work,mortal:work")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(CAST), os.environ.get("PYTHONPATH", "")]))
    yield mark
    for pid in survivors(
        mark
    ):  # a detached job's commit ends by itself; on a busy machine a killed one ends later
        with contextlib.suppress(AssertionError):
            ends(pid, SECONDS if COMMIT.encode() in _command_line(pid) else MOMENT)
    left = survivors(mark)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left


@pytest.fixture
def stage(theatre: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, RunSpec("torch", threads=2, master="cast", worker="cast:work"))
    monkeypatch.setenv("STAGE", str(tmp_path / "door"))
    try:
        yield made
    finally:
        if hasattr(made, "running"):
            made.running.close()
        made.close()


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def survivors(mark: str) -> list[int]:
    """The processes of a theatre, without those that have ended and wait for their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"THEATRE={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def wait_for_end(pidfd: int, seconds: float = SECONDS) -> None:
    ready, _, _ = select.select([pidfd], [], [], seconds)
    assert ready, "the process has not ended"


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.01)


def ends(pid: int, seconds: float = SECONDS) -> None:
    """Wait until the process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        wait_for_end(descriptor, seconds)
    finally:
        os.close(descriptor)
