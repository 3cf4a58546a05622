"""Ctrl-C and SIGTERM during a database call.

Python raises KeyboardInterrupt only between two bytecodes, so an hour-long query would have to finish first.
The signal itself arrives at once: a thread waits for it on a wakeup descriptor and interrupts the database.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` from another thread on Ctrl-C and SIGTERM, beside the usual KeyboardInterrupt.

    Has an effect in the main thread only, because signals are delivered there.
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
    """Call `stop` for each interrupting signal.

    Every byte is a signal number; end of stream means that the block ended.
    """
    while numbers := hear.recv(64):
        if signal.SIGINT in numbers or signal.SIGTERM in numbers:
            stop()
