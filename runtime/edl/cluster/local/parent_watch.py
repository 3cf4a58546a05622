"""Parent watch: no process outlives its supervisor.

The supervisor holds the only write end of a pipe, and every instance its read end: when that reaches its end, the
supervisor is gone, however it died. A process that forks must have no threads, so the forkserver uses the system's
parent-death signal instead.

In a container there is no supervisor, and a dead master is replaced. If the cluster no longer replaces it, instances
would wait for it with all their resources, as long as the cluster keeps the remains of the job; so they give up
after LONGEST_ABSENCE.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from typing import NoReturn

from edl import exit_codes
from edl.logs import log

LONGEST_ABSENCE = 3600.0  # seconds: the loss of a node, and waits for room, take minutes
LOOK_SECS = 30.0  # interval of checks for the master
ADOPTION_SECS = 1.0  # limit for a supervisor to become the parent of a forked process
_CONNECT_SECS = 10.0
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # constants of prctl(2)


def follow(descriptor: int) -> None:
    """Start a thread that ends this process when the pipe does, regardless of other threads."""
    threading.Thread(target=_wait, args=(descriptor,), name="edl-lifeline", daemon=True).start()


def _wait(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    abandon()


def follow_masters(address: str, longest: float = LONGEST_ABSENCE, look_secs: float = LOOK_SECS) -> None:
    """End this process when no process has listened at the address, host:port, for `longest` seconds."""
    threading.Thread(
        target=_look, args=(address, longest, look_secs), name="edl-lifeline", daemon=True
    ).start()


def _look(address: str, longest: float, look_secs: float) -> None:
    received = time.monotonic()
    while True:
        time.sleep(look_secs)
        if _listens(address):
            received = time.monotonic()
        elif time.monotonic() - received >= longest:
            log(f"exiting: the job has had no master for {longest:g} s")
            abandon()


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECS).close()
    except OSError:
        return False
    return True


def abandon() -> NoReturn:
    """End this process at once, with the processes in its own group."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(exit_codes.ABANDONED)


def die_with_parent(parent: int) -> None:
    """Have the system kill this process at the end of `parent`, the process that started it. Linux only."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(exit_codes.ABANDONED)


def continue_at_end_of(supervisor: int, patience: float = ADOPTION_SECS) -> None:
    """Have the system continue this process when the supervisor ends: a stopped one would not notice that.

    It then ends with its group, see `follow`. A forked process becomes a child of the supervisor when the process
    between them has ended, in a moment. No effect where it never does.
    """
    if not sys.platform.startswith("linux"):
        return
    deadline = time.monotonic() + patience
    while os.getppid() != supervisor:
        if time.monotonic() > deadline:
            return
        time.sleep(0.001)
    _prctl(_DEATH_SIGNAL, signal.SIGCONT)


def adopt_orphans() -> bool:
    """Become the parent of all orphaned descendants; return True if the system supports that."""
    return sys.platform.startswith("linux") and _prctl(_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    return bool(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)
