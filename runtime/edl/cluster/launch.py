"""How instances come to be: forked by the zygote where that is safe, else as fresh processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from edl.cluster import Instance
from edl.cluster.children import Children, kill, spawn
from edl.cluster.endings import Exit
from edl.cluster.environment import environment
from edl.cluster.folder import ClusterFolder, Spec
from edl.cluster.messages import Forked, Ready, Refused, born
from edl.cluster.zygote import LONGEST

TRIES = 3  # zygotes that may die before they are ready, until instances are started without one
FORK_SECONDS = 5.0  # that a zygote has to fork, which takes hundredths of one, until another takes its place
PAUSE = 0.5  # seconds before a zygote is started again that died before it was ready

Key = tuple[str, int]


class Parent(Protocol):
    """Who is told what became of a launch."""

    def born(self, key: Key, pid: int) -> None: ...

    def refused(self, key: Key, why: str) -> None: ...


class Launcher(Protocol):
    """Starts processes; the parent hears of each, possibly within `launch`."""

    def launch(self, instance: Instance) -> None: ...

    def forget(self, key: Key) -> bool:
        """Launch it no more; False: too late, it is born, or may be."""
        ...

    def close(self) -> None:
        """Launch no more."""
        ...


@dataclass(frozen=True, slots=True)
class Setting:
    """What every launch needs. lifeline: the end to read of the supervisor's pipe."""

    job: Path
    spec: Spec
    lifeline: int
    children: Children
    say: Callable[[str], None]

    @property
    def folder(self) -> ClusterFolder:
        return ClusterFolder(self.job)

    def spawn(self, module: str, *arguments: str, log: str, descriptors: tuple[int, ...] = ()) -> int:
        """Start one of our modules; -P: a keras.py or a torch.py in the user's folder is not the framework."""
        return spawn(
            [sys.executable, "-P", "-m", module, str(self.job), *arguments],
            environment=environment(self.spec.threads, self.spec.environment),
            log=self.folder.log(log),
            descriptors=(self.lifeline, *descriptors),
        )


class FreshProcesses:
    """Starts an interpreter for each instance."""

    def __init__(self, setting: Setting, parent: Parent) -> None:
        self._setting = setting
        self._parent = parent

    def launch(self, instance: Instance) -> None:
        text = msgspec.json.encode(instance).decode()
        arguments = (text, str(self._setting.lifeline))
        try:
            pid = self._setting.spawn("edl.cluster.body", *arguments, log=instance.name)
        except OSError as error:
            self._parent.refused(instance.key, f"the system cannot start a process: {error.strerror}")
        else:
            self._parent.born(instance.key, pid)

    def forget(self, key: Key) -> bool:
        return False

    def close(self) -> None:
        """Nothing is under way."""


class Zygote:
    """Has a zygote fork workers, one after another, and starts another zygote when it dies.

    A worker that was asked for is asked for again only when the socket has ended: as long as a forked process could
    still say that it is there, it holds it.
    """

    def __init__(self, setting: Setting, parent: Parent) -> None:
        self._setting = setting
        self._parent = parent
        self._fresh = FreshProcesses(setting, parent)
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Instance] = deque()
        self._asked: Instance | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._ready = False
        self._failures = 0
        self._closed = False
        self._pid = 0  # of a zygote that is not reaped
        setting.children.before_stranger = self._receive
        self._start()

    def launch(self, instance: Instance) -> None:
        if instance.role != "worker" or self._failures >= TRIES:
            self._fresh.launch(instance)
            return
        self._queue.append(instance)
        self._ask()

    def forget(self, key: Key) -> bool:
        waiting = next((instance for instance in self._queue if instance.key == key), None)
        if waiting is not None:
            self._queue.remove(waiting)
        return waiting is not None

    def close(self) -> None:
        """What was asked for is born, or the end of the socket will say that it is not."""
        self._closed = True
        self._refuse_all()
        self._kill()

    def _start(self) -> None:
        if self._closed:
            return
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._receive)
        with theirs:
            arguments = (str(theirs.fileno()), str(self._setting.lifeline), str(os.getpid()))
            try:
                pid = self._setting.spawn(
                    "edl.cluster.zygote", *arguments, log="zygote", descriptors=(theirs.fileno(),)
                )
            except OSError as error:  # the end of the socket follows
                self._setting.say(f"no zygote can be started: {error}")
                return
        self._setting.say(f"zygote: pid {pid}")
        self._pid = pid
        self._setting.children.watch(pid, lambda how: self._died(pid, how))

    def _died(self, pid: int, how: Exit) -> None:
        if self._pid == pid:
            self._pid = 0
        if not self._closed:
            self._setting.say(f"the zygote has ended: {how}")

    def _kill(self) -> None:
        if self._pid:
            kill(self._pid, signal.SIGKILL)

    def _ask(self) -> None:
        if self._ready and self._asked is None and self._queue:
            self._asked = self._queue.popleft()
            with contextlib.suppress(OSError):  # it is dying: the end of the socket follows
                self._socket.send(msgspec.json.encode(self._asked))
            self._alarm = self._loop.call_later(FORK_SECONDS, self._kill)

    def _receive(self) -> None:
        """Take what came from the zygote and from the processes it forked."""
        while self._socket.fileno() >= 0:
            try:
                packet = self._socket.recv(LONGEST)
            except BlockingIOError:
                return
            except ConnectionResetError:
                packet = b""
            if not packet:
                self._lost()
                return
            self._take(born.decode(packet))

    def _take(self, message: Ready | Forked | Refused) -> None:
        if isinstance(message, Ready):
            self._ready = True
            self._failures = 0
            self._setting.say(f"the zygote is ready after {message.seconds:.1f} s")
        else:
            self._asked = None
            self._calm()
            if isinstance(message, Forked):
                self._parent.born(message.key, message.pid)
            else:
                self._parent.refused(message.key, message.why)
        self._ask()

    def _lost(self) -> None:
        """The zygote and all that could still speak for it are gone: start again what did not begin."""
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._calm()
        if self._asked is not None:
            self._queue.appendleft(self._asked)
            self._asked = None
        self._failures += not self._ready
        if self._closed:
            self._refuse_all()
        elif self._failures < TRIES:
            self._loop.call_later(0.0 if self._ready else PAUSE, self._start)
        else:
            self._setting.say("no zygote can be kept alive: every worker is a fresh process")
            while self._queue:
                self._fresh.launch(self._queue.popleft())
        self._ready = False

    def _calm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _refuse_all(self) -> None:
        while self._queue:
            self._parent.refused(self._queue.popleft().key, "the job ended first")


def launcher(setting: Setting, parent: Parent, *, adopting: bool) -> Launcher:
    """adopting: whether orphans become ours; without that, and where forks are not safe, there is no zygote."""
    return Zygote(setting, parent) if adopting else FreshProcesses(setting, parent)
