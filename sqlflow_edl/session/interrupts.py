"""Ctrl-C or SIGTERM while a database works.

Python raises KeyboardInterrupt between two of its own steps, so a query of an hour would have to end first. The signal
itself is noticed at once: a thread of ours waits for it, and has the database stop.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupting(stop: Callable[[], None]) -> Iterator[None]:
    """While this lasts, Ctrl-C and SIGTERM also call `stop`, from another thread. KeyboardInterrupt is raised as ever.

    It must be entered in the main thread; anywhere else it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hear, tell = socket.socketpair()
    tell.setblocking(False)
    before = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(hear, stop), name="sqlflow-interrupts", daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        tell.close()
        listener.join()
        hear.close()


def _listen(hear: socket.socket, stop: Callable[[], None]) -> None:
    """Each byte is the number of a signal; none means that nobody tells any more."""
    while numbers := hear.recv(64):
        if signal.SIGINT in numbers or signal.SIGTERM in numbers:
            stop()
