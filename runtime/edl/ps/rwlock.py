"""Many at once, or one alone: pulls and pushes go through together, a cut or a round needs all to stand still."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class RWLock:
    """Who wants to be alone goes before those who come later, so it is not kept waiting by a stream of others."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writers = 0  # in or waiting

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
        """One after another, where several want it. Not to be entered from within `together`."""
        with self._changed:
            self._writers += 1
            while self._readers:
                self._changed.wait()
            self._readers = 1  # ourselves; others who want to be alone wait for it
        try:
            yield
        finally:
            with self._changed:
                self._readers = 0
                self._writers -= 1
                self._changed.notify_all()
