"""Readers-writer lock: pushes and pulls share it, checkpoints and commits hold it exclusively."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class RWLock:
    """Readers-writer lock in which a waiting writer precedes later readers, so that a stream of them does not starve
    it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0  # active or waiting

    @contextmanager
    def shared(self) -> Iterator[None]:
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
