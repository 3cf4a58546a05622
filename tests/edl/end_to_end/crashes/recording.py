"""Records of a run: made by processes that have `recorder/sitecustomize.py`, and read again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from edl.checkpoints import STATE
from tests.edl.end_to_end.crashes.kinds import RESUMED

RECORDER = Path(__file__).parent / "recorder"
REPOSITORY = Path(__file__).parents[4]
CLIENT = "tests.edl.end_to_end.crashes.client"
JOBS, MODEL = Path("sqlflow-edl", "jobs"), Path("out", "model.zip")  # in the folder that is recorded
SECONDS = 240.0  # until a run has failed
POLL = 0.02


class Operation(NamedTuple):
    """Operation on a path, relative to the recorded folder. `more` is as in `recorder/sitecustomize.py`."""

    pid: int
    what: str
    path: str
    more: tuple[bytes | int | str, ...]


class Recording:
    """Run of a job of a kind in processes of its own, with the state folder `folder`, which is made."""

    def __init__(self, kind: str, folder: Path) -> None:
        for each in (folder / JOBS, (folder / MODEL).parent):
            each.mkdir(parents=True)
        self.folder = folder
        self._log = folder.with_name(f"{folder.name}.record")
        self._client = self._start(kind)

    def _start(self, what: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "EDL_TESTING_RECORDED": str(self.folder),
            "EDL_TESTING_RECORD": str(self._log),
            "PYTHONPATH": f"{RECORDER}:{REPOSITORY}",
            "XDG_STATE_HOME": str(self.folder),
        }
        command = [sys.executable, "-m", CLIENT, what, str(self.folder / MODEL)]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    def resume(self) -> None:
        """Resume the job after all its processes were killed."""
        self._client = self._start("--resume")

    def wait(self) -> None:
        _, errors = self._client.communicate(timeout=SECONDS)
        assert self._client.returncode == 0, errors

    def kill(self, when: Callable[[Sequence[Operation]], bool]) -> bool:
        """Kill all processes at once when this is true of the operations. Return False if they end before."""
        while self._client.poll() is None:
            if self._log.exists() and when(self.operations()):
                self._kill()
                self._client.communicate()
                return True
            time.sleep(POLL)
        return False

    def _kill(self) -> None:
        """Kill all processes of the run, none of them between an operation and its record."""
        with self._log.open("a") as log:
            fcntl.lockf(log, fcntl.LOCK_EX)
            stopped: set[int] = set()
            while found := {*self._processes()} - stopped:
                for pid in found:
                    _signal(pid, signal.SIGSTOP)
                stopped |= found
            for pid in stopped:
                _signal(pid, signal.SIGKILL)
        for pid in stopped:
            _wait_for_end(pid)

    def _processes(self) -> Iterator[int]:
        mark = f"EDL_TESTING_RECORD={self._log}\0".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes():
                    yield int(path.parent.name)

    def operations(self) -> list[Operation]:
        return list(_operations(self._log.read_bytes(), self.folder))


def _wait_for_end(pid: int) -> None:
    """Wait until a killed process, which may have much memory to give back, counts as ended."""
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            select.select([process], [], [])
        finally:
            os.close(process)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def record(kind: str, folder: Path) -> list[Operation]:
    """Run the job of a kind to its end; return what was done to its state folder."""
    run = Recording(kind, folder)
    if kind == RESUMED:
        assert run.kill(lambda operations: sum(map(_completes, operations)) >= 3)
        run.resume()
    run.wait()
    return run.operations()


def _completes(operation: Operation) -> bool:
    """Return True if a checkpoint gets the state of the master."""
    return operation.what == "rename" and Path(str(operation.more[0])).match(f"checkpoints/*/{STATE}")


def _operations(log: bytes, folder: Path) -> Iterator[Operation]:
    data, at = memoryview(log), 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        if at + 4 + size > len(data):  # it is being written
            return
        pid, what, path, *more = msgspec.msgpack.decode(data[at + 4 : at + 4 + size])
        at += 4 + size
        inside = [
            each.removeprefix(f"{folder}/") if isinstance(each, str) else each for each in (path, *more)
        ]
        yield Operation(pid, what, inside[0], (*inside[1:],))
