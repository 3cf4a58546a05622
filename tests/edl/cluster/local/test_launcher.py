"""Launching where the system starts no process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from edl.cluster import Instance
from edl.cluster.local import launcher as launch
from edl.cluster.local.children import Children
from edl.cluster.local.launcher import TRIES, ForkserverLauncher, Key, LaunchSettings, SpawnLauncher, launcher
from edl.cluster.local.signals import DUMP_SIGNAL
from edl.jobs.cluster_folder import RunSpec


class Parent:
    """Notes what it is told; `done` is set when that many were refused."""

    def __init__(self, wanted: int) -> None:
        self.told: list[tuple[Key, str]] = []
        self.done = asyncio.Event()
        self._wanted = wanted

    def started(self, key: Key, pid: int) -> None:
        raise AssertionError("no process can be started here")

    def on_refusal(self, key: Key, why: str) -> None:
        self.told.append((key, why))
        if len(self.told) == self._wanted:
            self.done.set()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    def spawn(*_: object, **__: object) -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(launch, "spawn", spawn)
    monkeypatch.setattr(launch, "PAUSE", 0.0)
    return []


def setting(job: Path, said: list[str]) -> LaunchSettings:
    return LaunchSettings(job, RunSpec("torch"), 0, Children(), said.append)


def test_what_cannot_be_started_is_refused_with_the_reason(tmp_path: Path, said: list[str]) -> None:
    async def run() -> list[tuple[Key, str]]:
        parent = Parent(2)
        forkserver = launcher(setting(tmp_path, said), parent, adopting=True)
        forkserver.launch(Instance("worker-0", "worker"))
        forkserver.launch(Instance("worker-1", "worker"))
        await asyncio.wait_for(parent.done.wait(), 60)
        forkserver.close()
        return parent.told

    told = asyncio.run(run())
    assert [key for key, _ in told] == [("worker-0", 0), ("worker-1", 0)]
    assert "Resource temporarily unavailable" in told[0][1]
    assert [line for line in said if "no forkserver can be started" in line] == said[:TRIES]


def test_a_forkserver_that_is_closed_refuses_what_waits(tmp_path: Path, said: list[str]) -> None:
    async def run() -> list[tuple[Key, str]]:
        parent = Parent(1)
        forkserver = ForkserverLauncher(setting(tmp_path, said), parent)
        forkserver.launch(Instance("worker-0", "worker"))
        forkserver.launch(Instance("worker-1", "worker"))
        assert forkserver.forget(("worker-1", 0))
        assert not forkserver.forget(("worker-1", 0))
        forkserver.close()
        return parent.told

    assert asyncio.run(run()) == [(("worker-0", 0), "the job has ended")]


def test_where_orphans_cannot_be_adopted_there_is_no_forkserver(tmp_path: Path, said: list[str]) -> None:
    async def run() -> None:
        parent = Parent(1)
        fresh = launcher(setting(tmp_path, said), parent, adopting=False)
        assert isinstance(fresh, SpawnLauncher)
        fresh.launch(Instance("worker-0", "worker"))
        assert not fresh.forget(("worker-0", 0))
        fresh.close()
        assert parent.done.is_set()

    asyncio.run(run())


def test_a_forkserver_that_is_frozen_before_it_is_ready_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, the worker is refused: here it cannot be started."""
    frozen: list[int] = []
    notes: list[str] = []

    def spawn(command: Sequence[str], *, descriptors: Sequence[int], **_: object) -> int:
        if "edl.cluster.local.forkserver" not in command:
            raise OSError(11, "Resource temporarily unavailable")
        process = subprocess.Popen(
            [sys.executable, "-c", "import signal; signal.pause()"], pass_fds=descriptors
        )
        process.send_signal(signal.SIGSTOP)
        process.returncode = 0
        frozen.append(process.pid)
        return process.pid

    monkeypatch.setattr(launch, "spawn", spawn)
    monkeypatch.setattr(launch, "PAUSE", 0.0)
    monkeypatch.setattr(launch, "READY_SECONDS", 0.01)
    monkeypatch.setattr(launch, "DUMP_SECS", 0.01)

    async def run() -> list[tuple[Key, str]]:
        parent = Parent(1)
        forkserver = launcher(setting(tmp_path, notes), parent, adopting=True)
        forkserver.launch(Instance("worker-0", "worker"))
        await asyncio.wait_for(parent.done.wait(), 60)
        forkserver.close()
        return parent.told

    assert [key for key, _ in asyncio.run(run())] == [("worker-0", 0)]
    assert len(frozen) == TRIES
    assert f"the forkserver (pid {frozen[0]}) does not become ready and is killed" in notes
    ended = {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in frozen}
    assert ended <= {
        -signal.SIGKILL,
        -DUMP_SIGNAL,
    }  # the latter if it came before the process was scheduled to stop
