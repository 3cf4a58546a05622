"""SIGTERM while a process has nothing to give back yet: it ends at once, though it may be importing a framework.

The system drops what the first process of a container is told and does not handle, and its pod would wait out its
grace. So the entry of a container holds the signal back, which an exec does not change, until somebody handles it.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

from edl import exit_codes


def hold_back() -> None:
    """SIGTERM waits until `leave_when_told`, in whatever this process becomes by an exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def leave_when_told() -> None:
    """From now on, and until another handler is set, SIGTERM ends this process at once. For the main thread."""
    signal.signal(signal.SIGTERM, lambda number, frame: leave())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def leave() -> NoReturn:
    """With nothing to give back."""
    os.write(2, b"told to leave before it had begun\n")
    os._exit(exit_codes.PREEMPTED)
