"""Observer of running statements: a terminal, a notebook or a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from edl.jobs.events import StatementEvent
from sqlflow_edl.syntax import Statement


class Observer(Protocol):
    """Receiver of events. Every call returns quickly; none may raise."""

    def started(self, statement: Statement) -> None:
        """Report that the statement begins."""

    def doing(self, what: str) -> None:
        """Report that a step of the statement begins, named in a few words: `pinning the rows`."""

    def note(self, text: str) -> None:
        """Report a fact that the user should know: a derived feature, an attribute without effect."""

    def warn(self, text: str) -> None:
        """Report a problem in the data that the user should act on."""

    def progress(self, event: StatementEvent) -> None:
        """Report an event: rows, epoch, loss and metrics; the counts of a job's tasks and instances; printed lines."""


class Silent:
    """Observer that ignores all events."""

    def started(self, statement: Statement) -> None: ...

    def doing(self, what: str) -> None: ...

    def note(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def progress(self, event: StatementEvent) -> None: ...


class WithoutNotes(Silent):
    """Observer that passes on steps and progress alone: the notes on these rows are told already."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def doing(self, what: str) -> None:
        self._observer.doing(what)

    def progress(self, event: StatementEvent) -> None:
        self._observer.progress(event)


def report(observer: Observer, notes: Iterable[str], warnings: Iterable[str] = ()) -> None:
    """Report notes and warnings to the observer."""
    for note in notes:
        observer.note(note)
    for warning in warnings:
        observer.warn(warning)
