"""Processes that a supervisor starts before it has a job: a forkserver that imports the framework, and a master."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from edl.cluster.environment import environment
from edl.cluster.local.children import spawn
from edl.cluster.local.messages import Begin, Warm


class Child(NamedTuple):
    """Started process. socket: our end of its connection; descriptor: number of the other end in the process."""

    pid: int
    socket: socket.socket
    descriptor: int


@dataclass(slots=True)
class Prepared:
    """Started processes, each to be taken once; None where the system could not start one.

    lifeline: ends of the pipe that forked workers watch. All of them end with this process.
    """

    lifeline: tuple[int, int]
    forkserver: Child | None = None
    master: Child | None = None

    @classmethod
    def start(cls, warm: Warm, *, forks: bool) -> Prepared:
        """Start them. forks: this process adopts orphans, so a forkserver is of use."""
        prepared = cls(os.pipe())
        if forks:
            prepared.forkserver = _start(
                warm,
                "edl.cluster.local.forkserver",
                (str(prepared.lifeline[0]), str(os.getpid())),
                socket.SOCK_SEQPACKET,
                prepared.lifeline[0],
            )
            if prepared.forkserver:
                prepared.forkserver.socket.send(msgspec.json.encode(warm))
        prepared.master = _start(
            warm, "edl.cluster.local.waiting_master", (warm.spec.master,), socket.SOCK_STREAM
        )
        return prepared

    def take_forkserver(self) -> Child | None:
        child, self.forkserver = self.forkserver, None
        return child

    def begin_master(self, arguments: Callable[[int], tuple[str, ...]]) -> Child | None:
        """Give the master its arguments, by the descriptor of its socket; return None if it has ended."""
        child, self.master = self.master, None
        if child is None:
            return None
        try:
            child.socket.sendall(msgspec.json.encode(Begin(arguments(child.descriptor))) + b"\n")
        except OSError:
            child.socket.close()
            return None
        return child


def _start(
    warm: Warm, module: str, arguments: tuple[str, ...], kind: socket.SocketKind, *descriptors: int
) -> Child | None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with theirs:
        descriptor = theirs.fileno()
        try:
            pid = spawn(
                [sys.executable, "-P", "-m", module, str(descriptor), *arguments],
                environment=environment(warm.spec.threads, warm.spec.environment),
                log=None,
                descriptors=(descriptor, *descriptors),
            )
        except OSError:
            ours.close()
            return None
    return Child(pid, ours, descriptor)
