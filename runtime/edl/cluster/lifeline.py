"""Nothing outlives who started it.

The supervisor holds the only write end of a pipe, and every instance its read end: when that ends, the supervisor is
gone, however it died. A process that forks must have no threads, so the zygote asks the system instead.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from typing import NoReturn

from edl import exit_codes

_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl(2)


def follow(descriptor: int) -> None:
    """End this process when the pipe ends, from a thread of its own, whatever the others do."""
    threading.Thread(target=_wait, args=(descriptor,), name="edl-lifeline", daemon=True).start()


def _wait(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    abandon()


def abandon() -> NoReturn:
    """End this process at once, and what it started in its own group."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(exit_codes.ABANDONED)


def die_with_parent(parent: int) -> None:
    """Have the system kill this process when `parent`, which started it, ends. Linux only."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(exit_codes.ABANDONED)


def adopt_orphans() -> bool:
    """Become the parent of all descendants whose parent ends; whether the system can do that."""
    return sys.platform.startswith("linux") and _prctl(_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    return bool(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)
