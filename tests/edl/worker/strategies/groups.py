"""Groups of processes: the test tells each member what to do, and is the master that forms the groups."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edl.models.weights import loads
from edl.tasks.protocol import WorkerGroup

SECONDS = 60.0
PATIENCE = 30.0  # least timeout of a group: with 2 s, a step on a busy machine may end it

Answer = dict[str, Any]


class MemberProcess:
    """A member, as the test sees it."""

    def __init__(self, name: str, process: int, connection: socket.socket) -> None:
        self.name = name
        self._process = process
        self._connection = connection
        self._answers = connection.makefile("r")
        self.address = ""

    def say(self, do: str, **given: Any) -> None:
        self.send(json.dumps({"do": do, **given}).encode())

    def send(self, line: bytes) -> None:
        self._connection.sendall(line + b"\n")

    def answer(self) -> Answer:
        line = self._answers.readline()
        assert line, f"{self.name} has ended"
        found: Answer = json.loads(line)
        return found

    def ask(self, do: str, **given: Any) -> Answer:
        self.say(do, **given)
        return self.answer()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        self._answers.close()
        self._connection.close()


class Groups:
    """Members of one framework, forked from a process that has imported it."""

    def __init__(self, framework: str) -> None:
        self._control, theirs = socket.socketpair()
        command = [
            sys.executable,
            "-m",
            "tests.edl.worker.strategies.group_member",
            framework,
            str(theirs.fileno()),
        ]
        self._nursery = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=Path(__file__).parents[4])
        theirs.close()
        self._number = 0
        self._members: list[MemberProcess] = []

    def close(self) -> None:
        self._control.close()
        self._nursery.kill()  # it has nothing to lose, and takes its time to end
        self._nursery.wait()

    @contextlib.contextmanager
    def members(
        self, program: Path, count: int, least_timeout: float = PATIENCE
    ) -> Iterator[list[MemberProcess]]:
        """So many members with the program's model; those that are forked meanwhile end with them."""
        try:
            names = [f"worker-{number}" for number in range(count)]
            yield [self.fork(program, name, least_timeout=least_timeout) for name in names]
        finally:
            while self._members:
                self._members.pop().end()

    def fork(self, program: Path, name: str, seed: int = 1, least_timeout: float = PATIENCE) -> MemberProcess:
        """A member that builds the model; `formed` waits for it."""
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control, [name.encode()], [theirs.fileno()])
        theirs.close()
        ours.settimeout(SECONDS)
        member = MemberProcess(name, int.from_bytes(self._control.recv(4), "little"), ours)
        self._members.append(member)
        member.say("build", program=str(program), seed=seed, least_timeout=least_timeout)
        return member

    def begin(self, members: list[MemberProcess]) -> list[Answer]:
        """The first group of new members."""
        self._number = 0
        for member in members:
            member.address = member.answer()["address"]
            member.say("join")
        return self.formed(members, holders=0)

    def formed(self, members: list[MemberProcess], holders: int) -> list[Answer]:
        """A group of these, who seek one; what each says once it has formed."""
        for member in members:
            found = member.answer()
            assert "seeks" in found, found
        group = self.told(members, holders)
        for member in members:
            member.send(group)
        return [member.answer() for member in members]

    def told(self, members: list[MemberProcess], holders: int) -> bytes:
        """The next group, as its members are told of it."""
        self._number += 1
        names = tuple(member.name for member in members)
        addresses = tuple(member.address for member in members)
        return msgspec.json.encode(WorkerGroup(self._number, names, holders, addresses[0], addresses))


def all_do(members: list[MemberProcess], do: str, **given: Any) -> list[Answer]:
    for member in members:
        member.say(do, **given)
    return [member.answer() for member in members]


def saved(member: MemberProcess, folder: Path, epoch: int = 0) -> dict[str, np.ndarray]:
    """Its weights, and its optimizer's state where they are the present weights."""
    file = folder / f"{member.name}.weights"
    member.ask("save", path=str(file), epoch=epoch)
    return loads(file.read_bytes())
