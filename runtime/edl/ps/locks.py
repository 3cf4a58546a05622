"""Locks of a server's calls.

RWLock   pushes and pulls share it, checkpoints and commits hold it exclusively
Waits    bound on the calls that wait for other calls, such as a pull for the next version
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = 256  # of a server


class RWLock:
    """Readers-writer lock in which a waiting writer precedes later readers, so that a stream of them does not starve
    it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0  # active or waiting

    @contextmanager
    def share(self) -> Iterator[None]:
        with self._changed:
            while self._writers:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock alone; writers enter one after another. Must not be entered from within `shared`."""
        with self._changed:
            self._writers += 1
            while self._readers:
                self._changed.wait()
            self._readers = 1  # this writer; others wait for it
        try:
            yield
        finally:
            with self._changed:
                self._readers = 0
                self._writers -= 1
                self._changed.notify_all()


class LockWaits:
    """Places to wait in a server with so many threads, a quarter of which never wait.

    A waiting call holds a thread. If all threads waited, the pushes that they wait for would be queued behind them. A
    call for which there is no place is answered at once with what there is, and its client asks again.
    """

    def __init__(self, threads: int) -> None:
        self._places = threading.BoundedSemaphore(threads - max(1, threads // 4))

    @contextmanager
    def place(self, seconds: float) -> Iterator[float]:
        """Provide a context in which a call may wait for so many seconds, or 0 if there is no place."""
        taken = seconds > 0 and self._places.acquire(blocking=False)
        try:
            yield seconds if taken else 0.0
        finally:
            if taken:
                self._places.release()
