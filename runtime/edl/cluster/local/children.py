"""Child processes of a supervisor: started or adopted, with notification of every exit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from edl.cluster.exit_reason import Exit, MemoryCounter
from edl.cluster.logs import open_log

OnEnd = Callable[[Exit], None]


class Children:
    """Registry of exit callbacks by process.

    `before_unwatched` is called when an unwatched process has ended; it may start to watch it.
    """

    def __init__(self, memory: MemoryCounter | None = None) -> None:
        self._memory = memory or MemoryCounter()
        self._watched: dict[int, OnEnd] = {}
        self.before_unwatched: Callable[[], None] = lambda: None

    def watch(self, pid: int, on_end: OnEnd) -> None:
        self._watched[pid] = on_end

    def reap(self) -> None:
        """Reap all ended processes and kill the remains of their groups."""
        if not hasattr(os, "waitid"):
            self._reap_each()
            return
        for pid in _find_ended_processes():
            if pid not in self._watched:
                self.before_unwatched()
            # Its pid and process group can't be reused before it is reaped.
            if pid in self._watched:
                kill_group(pid)
            self._on_end(*os.waitpid(pid, 0))

    def _reap_each(self) -> None:
        """Reap watched children one by one, on systems (macOS) that can't show an exit before reaping; there are no
        adopted ones.
        """
        for pid in [*self._watched]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                kill_group(pid)
                self._on_end(pid, status)

    def _on_end(self, pid: int, status: int) -> None:
        how = self._memory.exit(os.waitstatus_to_exitcode(status))
        if on_end := self._watched.pop(pid, None):
            on_end(how)


def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    log: Path | None,
    descriptors: Sequence[int] = (),
) -> int:
    """Start a process in its own session, append its output to `log`, and return its pid. The caller reaps it.

    Without a log its output is the output of this process.
    """
    output = os.dup(1) if log is None else open_log(log)
    try:
        process = subprocess.Popen(  # noqa: S603 (our own modules, in a list)
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=descriptors,
            start_new_session=True,
            env=environment,
        )
    finally:
        os.close(output)
    process.returncode = 0  # keeps subprocess from waiting for it too
    return process.pid


def kill_group(pid: int) -> None:
    """Kill the process and its group; do nothing if it does not exist."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_orphans() -> None:
    """Kill and reap every remaining child: processes that instances started in sessions of their own and left
    behind.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while children.exists() and (pids := children.read_text().split()):
        for pid in map(int, pids):
            kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _find_ended_processes() -> Iterator[int]:
    """Yield ended processes that wait to be reaped by the caller."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            yield ended.si_pid
