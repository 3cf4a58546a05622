"""Cuts in memory of servers in processes of their own, one of which is killed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.jobs.cluster_folder import ClusterFolder
from edl.ps import messages as msg
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Manifest, Mode
from edl.ps.partitioning import Placement
from edl.rpc.channel import AwayError
from tests.edl.entrypoints.test_parameter_server import Master, master, running
from tests.edl.ps.servers import ADAM, SECONDS, definition, first_values

__all__ = ["master"]  # a fixture
TRIES = 5
MODEL = definition(ADAM, state=())
IDS = np.arange(7)
ROWS = [IDS, np.ones((7, 2), np.float32)]


class Processes:
    """Three servers. generation, lives: as they are arranged next."""

    def __init__(self, master: Master, job: Path, mode: Mode) -> None:
        self._master = master
        self._job = job
        self.mode = mode
        self.generation = 0
        self.lives = [0, 0, 0]
        self._stack = ExitStack()
        started = [self._start() for _ in range(3)]
        self.processes = [process for process, _ in started]
        self.addresses = [address for _, address in started]

    def _start(self) -> tuple[subprocess.Popen[bytes], str]:
        process = self._stack.enter_context(running(self._job))
        return process, self._master.heard.get(timeout=SECONDS).address

    def close(self) -> None:
        self._stack.close()

    def call(self, index: int, header: Any, kind: Any, arrays: Sequence[np.ndarray] = ()) -> tuple[Any, Any]:
        with ServerChannel(self.addresses[index], ClusterFolder(self._job).token()) as channel:
            return channel.call(header, arrays, kind, SECONDS)

    def arrange(self, restore: str = "", manifest: Manifest | None = None) -> None:
        for index, epoch in enumerate(self.lives):
            header = msg.Arrange(
                index, self.generation, epoch, tuple(self.addresses), self.mode, restore, manifest
            )
            for left in reversed(range(TRIES)):  # as a master does: a server may not reach another in time
                try:
                    self.call(index, header, msg.Arranged)
                    break
                except AwayError:
                    if not left:
                        raise

    def open(self) -> None:
        placement = Placement(MODEL.dense, 3)
        for index in range(3):
            values = [placement.flat(first_values(), index)]
            self.call(index, msg.Define(0, MODEL), msg.Defined, values)
            self.call(index, msg.Open(0), msg.Done)

    def kill(self, index: int) -> None:
        self.processes[index].kill()
        self.processes[index].wait(SECONDS)
        self.processes[index], self.addresses[index] = self._start()
        self.lives[index] += 1

    def step(self, sequence: int) -> None:
        ticket = 0
        version = self.call(0, msg.Status(), msg.Figures)[0].version
        if self.mode.kind == "sync":
            ask = msg.Ticket(self.generation, "worker-0", 0, 1, version, SECONDS)
            ticket = self.call(0, ask, msg.Ticketed)[0].ticket
        placement = Placement(MODEL.dense, 3)
        for index in range(3):
            push = msg.Push(self.generation, "worker-0", 0, sequence, 0.1, 10, ("users",), ticket=ticket)
            flat = np.ones_like(placement.flat(first_values(), index))
            self.call(index, push, msg.Pushed, [flat, *ROWS])
        if ticket:
            self.call(0, msg.Confirm(self.generation, ticket), msg.Confirmed)
            wait = msg.Pull(self.generation, at_least=version.step + 1, wait_secs=SECONDS)
            self.call(0, wait, msg.Pulled)

    def checkpoint(self) -> Manifest:
        taken, _ = self.call(0, msg.TakeCheckpoint(self.generation, "1", memory=True), msg.CheckpointTaken)
        found = []
        for index in range(3):
            while "1" not in (figures := self.call(index, msg.Status(), msg.Figures)[0]).written:
                pass
            found.append(figures.written["1"])
        return manifests.manifest_of("1", taken.version, self.mode, found)

    def pulled(self) -> list[np.ndarray]:
        pull = msg.Pull(self.generation, ("users",), dense=True)
        return [array for index in range(3) for array in self.call(index, pull, msg.Pulled, [IDS])[1]]


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_killed_servers_successor_has_its_rows_slots_and_memory_of_pushes(
    kind: str, master: Master, tmp_path: Path
) -> None:
    servers = Processes(master, tmp_path, Mode(kind, 1))  # type: ignore[arg-type]
    try:
        servers.arrange()
        servers.open()
        servers.step(1)
        manifest = servers.checkpoint()
        before = servers.pulled()
        servers.step(2)
        after = servers.pulled()
        servers.kill(1)
        servers.generation += kind == "sync"
        servers.arrange("1", manifest)
        back = servers.pulled()
        if kind == "async":  # it alone has gone back
            servers.step(2)
        else:
            for one, other in zip(back, before, strict=True):
                np.testing.assert_array_equal(one, other)
            servers.step(2)
        again = servers.pulled()
    finally:
        servers.close()
    for index, (one, other) in enumerate(zip(back, before, strict=True)):
        if index in (2, 3):  # of server 1: parameters and rows
            np.testing.assert_array_equal(one, other)
    for one, other in zip(again, after, strict=True):  # the others know the push, and its slots are back
        np.testing.assert_array_equal(one, other)
