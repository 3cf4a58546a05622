"""Many at once, or one alone: pulls and pushes go through together, a cut or a round needs all to stand still."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Who wants to be alone goes before those who come later, so it is not kept waiting by a stream of others."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._together = 0
        self._alone = 0  # in or waiting

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._changed:
            while self._alone:
                self._changed.wait()
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                if not self._together:
                    self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One after another, where several want it. Not to be entered from within `together`."""
        with self._changed:
            self._alone += 1
            while self._together:
                self._changed.wait()
            self._together = 1  # ourselves; others who want to be alone wait for it
        try:
            yield
        finally:
            with self._changed:
                self._together = 0
                self._alone -= 1
                self._changed.notify_all()
