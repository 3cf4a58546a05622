"""Handling of SIGTERM before a process has anything to return: it ends at once, even while it imports a framework.

The kernel drops unhandled signals to the first process of a container, and its pod would wait for its whole grace
period. So the container's entry point blocks the signal, which survives an exec, until a handler is set.

DUMP_SIGNAL makes a process write the stacks of all its threads to its log, whatever they do: also if one of them
holds the interpreter's lock. Before a process is killed because it hangs, it gets that signal.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import NoReturn

from edl import exit_codes

DUMP_SIGNAL = signal.SIGUSR1
STDERR = 2  # its descriptor
DUMP_SECS = 0.5  # for the dump, before the process is killed


def dump_stacks_on_signal() -> None:
    """Write the stacks of all threads to standard error at every DUMP_SIGNAL."""
    faulthandler.register(DUMP_SIGNAL, file=STDERR, all_threads=True)


def end_hung() -> NoReturn:
    """Write the stacks of all threads to standard error and exit, whatever the other threads do."""
    os.write(STDERR, b"ending: no progress for too long; the stacks of all threads:\n")
    faulthandler.dump_traceback(file=STDERR, all_threads=True)
    os._exit(exit_codes.HUNG)


def block_sigterm() -> None:
    """Block SIGTERM until `end_on_sigterm`, across any exec."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def end_on_sigterm() -> None:
    """Unblock SIGTERM. It then ends this process at once until another handler is set. Call from the main thread."""
    signal.signal(signal.SIGTERM, lambda number, frame: leave())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def leave() -> NoReturn:
    """Exit: there is nothing to return."""
    os.write(2, b"terminated before it started\n")
    os._exit(exit_codes.PREEMPTED)
