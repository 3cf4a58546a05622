"""Second connection of a source to its server, for questions that must not touch the user's session and transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from edl.errors import SourceError


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)
R = TypeVar("R")


class SecondConnection(Generic[C]):
    """Connection that is opened when it is first asked for. is_open: tells a lost one from a usable one."""

    def __init__(self, connect: Callable[[], C], is_open: Callable[[C], bool]) -> None:
        self._connect = connect
        self._is_open = is_open
        self._opened: C | None = None
        self._is_refused = False

    def get(self) -> C | None:
        """Return the connection, or None if the server does not give another one."""
        if self._opened is not None and self._is_open(self._opened):
            return self._opened
        if self._is_refused:
            return None
        try:
            self._opened = self._connect()
        except SourceError:  # as many as the server or the user may have
            self._is_refused = True
            return None
        return self._opened

    def ask(self, question: Callable[[C], R], unanswered: tuple[type[Exception], ...] = ()) -> R | None:
        """Return the answer to a question, or None without a connection or after one of the errors `unanswered`."""
        connection = self.get()
        if connection is None:
            return None
        with suppress(*unanswered):
            return question(connection)
        return None

    def close(self) -> None:
        if self._opened is not None and self._is_open(self._opened):
            self._opened.close()
        self._opened = None
