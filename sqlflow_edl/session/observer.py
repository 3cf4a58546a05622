"""Who is told what happens while statements run: the terminal, a notebook, a test."""

from __future__ import annotations

from typing import Protocol

from edl.jobs.events import EpochEnd, Progress, Tally
from sqlflow_edl.syntax import Statement


class Observer(Protocol):
    """Every call returns quickly; none may raise."""

    def started(self, statement: Statement) -> None:
        """The statement begins."""

    def doing(self, what: str) -> None:
        """A step of the statement begins, named in a few words: `fixing the rows`."""

    def note(self, text: str) -> None:
        """Something the user should know: a derived feature, an attribute without effect."""

    def warn(self, text: str) -> None:
        """Something in the data that the user should act on."""

    def progress(self, event: Progress | EpochEnd | Tally) -> None:
        """An event of the job: rows, epoch, loss, metrics; of one in several processes, its tasks and instances."""


class Silent:
    """Tells nobody."""

    def started(self, statement: Statement) -> None: ...

    def doing(self, what: str) -> None: ...

    def note(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def progress(self, event: Progress | EpochEnd | Tally) -> None: ...
