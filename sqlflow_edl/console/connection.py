"""The session of a console: opened in a thread while the user types, and used by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from sqlflow_edl.console.catalog import Catalog
from sqlflow_edl.session.observer import Observer, Silent
from sqlflow_edl.syntax.dialects import dialect_named

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session

Opener = Callable[[str, Observer], "Session"]  # of a data source's URL

# Loads both parsers, while the user types: whether it is ordinary SQL is asked of the one for SQL.
_WARM = "SELECT 1 AS x LABEL x INTO m"

PATIENCE = 5.0  # seconds: the prompt cannot be left while somebody waits to complete a word

BEFORE = "duckdb"  # the dialect in which statements are read until the session is open


class UnopenedError(Exception):
    """The session could not be opened. error: why."""

    def __init__(self, error: SQLFlowError) -> None:
        super().__init__(error.message)
        self.error = error


class Noted(Silent):
    """Keeps what is noted while the session opens, which is no time to write to the terminal."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Connection:
    """opener: opens the session of the data source. source: its URL.

    opened: done when the session is there, or cannot be had (`UnopenedError`). notes: of its opening.
    """

    def __init__(self, opener: Opener, source: str) -> None:
        self.source = source
        self._noted = Noted()
        self.notes = self._noted.notes
        self.catalog = Catalog()
        self.opened: Future[Session] = Future()
        self.opened.set_running_or_notify_cancel()  # whoever stops waiting for it does not end it
        self._dialect = BEFORE
        self._opener = opener
        self._in_use = threading.Lock()
        self._is_begun = False
        self._refreshes: list[threading.Thread] = []

    def open(self) -> None:
        """Open it in a thread, if nobody has yet; returns at once."""
        if self._is_begun:
            return
        self._is_begun = True
        threading.Thread(target=self._open, name="sqlflow-open", daemon=True).start()

    @property
    def dialect(self) -> str:
        """Of the SQL; until the session is open, a guess."""
        return self._dialect

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The session, for this thread alone. UnopenedError: it cannot be had."""
        self.open()
        session = self.opened.result()
        with self._in_use:
            yield session

    def refresh(self) -> None:
        """Look in a thread which tables and models there are; returns at once."""
        thread = threading.Thread(target=self._refresh, name="sqlflow-refresh", daemon=True)
        self._refreshes = [each for each in self._refreshes if each.is_alive()] + [thread]
        thread.start()

    def known(self, patience: float | None = PATIENCE) -> Catalog:
        """What there is to complete, once nobody looks any more.

        patience: seconds after which what is known has to do; None: as long as it takes.
        """
        self.open()
        wait([self.opened], patience)
        for thread in self._refreshes:
            thread.join(patience)
        return self.catalog

    def columns(self, table: str) -> tuple[str, ...]:
        """Those of a known table; asks the database the first time."""
        if table not in self.known().columns:
            with self.session() as session:
                self.catalog.look_into(table, session)
        return self.catalog.columns.get(table, ())

    def close(self) -> None:
        if not self._is_begun:
            return
        self.known(None)
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
        except SQLFlowError as error:
            self.opened.set_exception(UnopenedError(error))
        except BaseException as error:  # ours, which the prompt raises
            self.opened.set_exception(error)
        else:
            self.opened.set_result(session)
            session.parse(_WARM)

    def _refresh(self) -> None:
        try:
            with self.session() as session:
                self.catalog.look(session)
        except UnopenedError:  # the prompt tells of it
            pass
