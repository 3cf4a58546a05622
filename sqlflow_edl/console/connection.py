"""Session of a console: opened in a thread while the user types, and used by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edl.data.source import ReleasableSource
from edl.errors import SQLFlowError
from sqlflow_edl.console.catalog import SourceCatalog
from sqlflow_edl.session.observer import Observer, Silent
from sqlflow_edl.syntax.dialects import dialect_named

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session

Opener = Callable[[str, Observer], "Session"]  # takes the URL of a data source

# Loads both parsers while the user types: sqlglot's decides whether a statement is ordinary SQL.
_WARM = "SELECT 1 AS x LABEL x INTO m"

PATIENCE = 5.0  # seconds: leaving the prompt waits for a pending completion

BEFORE = "duckdb"  # dialect until the session is open


class UnopenedError(Exception):
    """Failure to open the session. error: its cause."""

    def __init__(self, error: SQLFlowError) -> None:
        super().__init__(error.message)
        self.error = error


class Noted(Silent):
    """Observer that collects notes while the session opens, when the terminal must not be written to."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class ConsoleConnection:
    """Connection to a data source. opener: function that opens the session. source: URL.

    opened: future of the session, or UnopenedError. notes: notes from the opening.
    """

    def __init__(self, opener: Opener, source: str) -> None:
        self.source = source
        self._noted = Noted()
        self.notes = self._noted.notes
        self.catalog = SourceCatalog()
        self.opened: Future[Session] = Future()
        self.opened.set_running_or_notify_cancel()  # cancelling a wait must not cancel the opening
        self._dialect = BEFORE
        self._opener = opener
        self._in_use = threading.Lock()
        self._is_begun = False
        self._refreshes: list[threading.Thread] = []

    def open(self) -> None:
        """Start to open the session in a thread, once; returns at once."""
        if self._is_begun:
            return
        self._is_begun = True
        threading.Thread(target=self._open, name="sqlflow-open", daemon=True).start()

    @property
    def dialect(self) -> str:
        """SQL dialect; a guess until the session is open."""
        return self._dialect

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Yield the session, for this thread alone. Raises UnopenedError if it could not be opened."""
        self.open()
        session = self.opened.result()
        with self._in_use:
            try:
                yield session
            finally:
                _release(session)

    def refresh(self) -> None:
        """Refresh the tables and models in a thread; returns at once."""
        thread = threading.Thread(target=self._refresh, name="sqlflow-refresh", daemon=True)
        self._refreshes = [running for running in self._refreshes if running.is_alive()] + [thread]
        thread.start()

    def get_catalog(self, patience: float | None = PATIENCE) -> SourceCatalog:
        """Return the catalog when no refresh is running.

        patience: seconds to wait at most, or None to wait without limit.
        """
        self.open()
        wait([self.opened], patience)
        for thread in self._refreshes:
            thread.join(patience)
        return self.catalog

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a known table; the first call queries the database."""
        if table not in self.get_catalog().columns:
            with self.session() as session:
                self.catalog.look_into(table, session)
        return self.catalog.columns.get(table, ())

    def close(self) -> None:
        if not self._is_begun:
            return
        self.get_catalog(None)
        try:
            with self.session() as session:
                session.close()
        except UnopenedError:  # there is nothing to close
            pass

    def _open(self) -> None:
        try:
            session = self._opener(self.source, self._noted)
            self._dialect = dialect_named(session.dialect).name
            self.catalog.look(session)
            _release(session)
        except SQLFlowError as error:
            self.opened.set_exception(UnopenedError(error))
        except BaseException as error:  # an error of ours, which the prompt raises
            self.opened.set_exception(error)
        else:
            self.opened.set_result(session)
            session.parse(_WARM)

    def _refresh(self) -> None:
        try:
            with self.session() as session:
                self.catalog.look(session)
        except UnopenedError:  # the prompt reports it
            pass


def _release(session: Session) -> None:
    """Let other processes open a file that one alone can have open, until the next statement."""
    if isinstance(session.source, ReleasableSource):
        session.source.release()
