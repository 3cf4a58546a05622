"""Launch of instances: forked by the forkserver where that is safe, else as new processes."""

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
from edl.cluster.environment import environment
from edl.cluster.exit_reason import Exit
from edl.cluster.local.children import Children, kill, spawn
from edl.cluster.local.forkserver import LONGEST
from edl.cluster.local.messages import Fork, Forked, Ready, Refused, Warm, forkserver_decoder
from edl.cluster.local.prepared import Prepared
from edl.cluster.local.signals import DUMP_SECS, DUMP_SIGNAL
from edl.jobs.cluster_folder import ClusterFolder, RunSpec
from edl.spec import from_json

TRIES = 3  # forkservers that may die before they are ready; then instances are started without one
FORK_SECONDS = 5.0  # timeout of a fork, which takes hundredths of a second, before the forkserver is replaced
READY_SECONDS = 60.0  # timeout of a forkserver's imports, which take seconds; doubled after each failure
PAUSE = 0.5  # pause in seconds before replacing a forkserver that died before it was ready

Key = tuple[str, int]


class ParentProcess(Protocol):
    """Receiver of the results of launches."""

    def started(self, key: Key, pid: int) -> None: ...

    def on_refusal(self, key: Key, why: str) -> None: ...


class Launcher(Protocol):
    """Launcher of processes; it notifies the parent of each, possibly within `launch`."""

    def launch(self, instance: Instance) -> None: ...

    def forget(self, key: Key) -> bool:
        """Cancel a launch; return False if the process runs, or may run."""
        ...

    def close(self) -> None:
        """Stop launching."""
        ...


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """Common parameters of all launches. `lifeline` is the read end of the supervisor's pipe. `prepared` are
    processes that were started before the job was known.
    """

    job: Path
    spec: RunSpec
    lifeline: int
    children: Children
    say: Callable[[str], None]
    prepared: Prepared | None = None

    @property
    def folder(self) -> ClusterFolder:
        return ClusterFolder(self.job)

    @property
    def collectives(self) -> bool:
        """True if the workers sum gradients among themselves."""
        file = self.job / "program" / "job.json"
        return file.exists() and from_json(file.read_bytes()).cluster.strategy == "allreduce"

    def spawn(self, module: str, *arguments: str, log: str, descriptors: tuple[int, ...] = ()) -> int:
        """Start a module of this package. With -P, a keras.py or torch.py in the user's folder does not shadow the
        framework.
        """
        return spawn(
            [sys.executable, "-P", "-m", module, *arguments],
            environment=environment(self.spec.threads, self.spec.environment),
            log=self.folder.log(log),
            descriptors=(self.lifeline, *descriptors),
        )


class SpawnLauncher:
    """Launcher that starts an interpreter for each instance."""

    def __init__(self, setting: LaunchSettings, parent: ParentProcess) -> None:
        self._setting = setting
        self._parent = parent

    def launch(self, instance: Instance) -> None:
        text = msgspec.json.encode(instance).decode()
        arguments = (str(self._setting.job), text, str(self._setting.lifeline))
        try:
            pid = self._setting.spawn("edl.cluster.local.instance_process", *arguments, log=instance.name)
        except OSError as error:
            self._parent.on_refusal(instance.key, f"the system cannot start a process: {error.strerror}")
        else:
            self._parent.started(instance.key, pid)

    def forget(self, key: Key) -> bool:
        return False

    def close(self) -> None:
        """Return at once: no launch is in progress."""


class ForkserverLauncher:
    """Launcher that lets a forkserver fork workers one after another, and replaces a forkserver that died.

    A requested worker is requested again only after the end of the socket: as long as a forked process may still
    report, it holds the socket open.
    """

    def __init__(self, setting: LaunchSettings, parent: ParentProcess) -> None:
        self._setting = setting
        self._parent = parent
        self._fresh = SpawnLauncher(setting, parent)
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Instance] = deque()
        self._asked: Instance | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._ready = False
        self._failures = 0
        self._closed = False
        self._pid = 0  # pid of a forkserver that is not reaped
        self._warm = Warm(setting.spec, setting.collectives)
        setting.children.before_unwatched = self._receive
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
        """Stop launching. Requested workers are either running, or reported lost by the end of the socket."""
        self._closed = True
        self._refuse_all()
        self._kill()

    def _start(self) -> None:
        if self._closed:
            return
        prepared = self._setting.prepared and self._setting.prepared.take_forkserver()
        if prepared:
            self._socket = prepared.socket
            self._listen()
            self._expect(prepared.pid)
            return
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.send(msgspec.json.encode(self._warm))
        self._listen()
        with theirs:
            arguments = (str(theirs.fileno()), str(self._setting.lifeline), str(os.getpid()))
            try:
                pid = self._setting.spawn(
                    "edl.cluster.local.forkserver",
                    *arguments,
                    log="forkserver",
                    descriptors=(theirs.fileno(),),
                )
            except OSError as error:  # the end of the socket follows
                self._setting.say(f"no forkserver can be started: {error}")
                return
        self._expect(pid)

    def _listen(self) -> None:
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._receive)

    def _expect(self, pid: int) -> None:
        """Watch a started forkserver, which has a limited time to become ready."""
        self._setting.say(f"forkserver: pid {pid}")
        self._pid = pid
        self._setting.children.watch(pid, lambda how: self._died(pid, how))
        self._alarm = self._loop.call_later(READY_SECONDS * 2**self._failures, self._kill_unready)

    def _died(self, pid: int, how: Exit) -> None:
        if self._pid == pid:
            self._pid = 0
        if not self._closed:
            self._setting.say(f"the forkserver has ended: {how}")

    def _kill_unready(self) -> None:
        self._setting.say(f"the forkserver (pid {self._pid}) does not become ready and is killed")
        if self._pid:
            kill(self._pid, DUMP_SIGNAL)
            self._loop.call_later(DUMP_SECS, self._kill_if, self._pid)

    def _kill_if(self, pid: int) -> None:
        """Kill the forkserver unless it has ended."""
        if self._pid == pid:
            self._kill()

    def _kill(self) -> None:
        if self._pid:
            kill(self._pid, signal.SIGKILL)

    def _ask(self) -> None:
        if self._ready and self._asked is None and self._queue:
            self._asked = self._queue.popleft()
            with contextlib.suppress(OSError):  # it is dying: the end of the socket follows
                self._socket.send(msgspec.json.encode(Fork(str(self._setting.job), self._asked)))
            self._alarm = self._loop.call_later(FORK_SECONDS, self._kill)

    def _receive(self) -> None:
        """Process messages of the forkserver and of the processes that it forked."""
        while self._socket.fileno() >= 0:
            try:
                packet = self._socket.recv(LONGEST)
            except BlockingIOError:
                return
            except ConnectionResetError:
                packet = b""
            if not packet:
                self._on_loss()
                return
            self._take(forkserver_decoder.decode(packet))

    def _take(self, message: Ready | Forked | Refused) -> None:
        if isinstance(message, Ready):
            self._ready = True
            self._failures = 0
            self._calm()
            self._setting.say(f"the forkserver is ready after {message.seconds:.1f} s")
        else:
            self._asked = None
            self._calm()
            if isinstance(message, Forked):
                self._parent.started(message.key, message.pid)
            else:
                self._parent.on_refusal(message.key, message.why)
        self._ask()

    def _on_loss(self) -> None:
        """Restart pending launches after the forkserver and all processes that held its socket are gone."""
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
            self._setting.say("no forkserver stays alive: workers are started as new processes")
            while self._queue:
                self._fresh.launch(self._queue.popleft())
        self._ready = False

    def _calm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _refuse_all(self) -> None:
        while self._queue:
            self._parent.on_refusal(self._queue.popleft().key, "the job has ended")


def launcher(setting: LaunchSettings, parent: ParentProcess, *, adopting: bool) -> Launcher:
    """Return a launcher. Without `adopting`, the adoption of orphans, or where forks are unsafe, there is no
    forkserver.
    """
    return ForkserverLauncher(setting, parent) if adopting else SpawnLauncher(setting, parent)
