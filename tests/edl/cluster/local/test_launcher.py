"""Launching where the system starts no process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edl.cluster import Instance
from edl.cluster.local import launcher as launch
from edl.cluster.local.children import Children
from edl.cluster.local.launcher import TRIES, ForkserverLauncher, Key, LaunchSettings, SpawnLauncher, launcher
from edl.jobs.run_folder import Spec


class Parent:
    """Notes what it is told; `done` is set when that many were refused."""

    def __init__(self, wanted: int) -> None:
        self.told: list[tuple[Key, str]] = []
        self.done = asyncio.Event()
        self._wanted = wanted

    def born(self, key: Key, pid: int) -> None:
        raise AssertionError("no process can be started here")

    def refused(self, key: Key, why: str) -> None:
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
    return LaunchSettings(job, Spec("torch"), 0, Children(), said.append)


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
