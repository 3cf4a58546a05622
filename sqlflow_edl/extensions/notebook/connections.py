"""Sessions of a notebook, by alias or URL. Cells that name none use the current one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edl.errors import SemanticError, did_you_mean

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Parameters of a session.

    workers: number for every job, or None to leave it to the statements. on: where jobs run.
    """

    url: str
    dialect: str | None = None
    create: bool = False
    workers: int | None = None
    model_store: str = ""
    on: str = ""


@dataclass(frozen=True, slots=True)
class NotebookConnection:
    settings: ConnectionSettings
    session: Session


class Connections:
    """Open sessions of a notebook; close them at the end."""

    def __init__(self) -> None:
        self._open: dict[str, NotebookConnection] = {}
        self._current = ""

    def connect(self, settings: ConnectionSettings, alias: str = "") -> Session:
        """Open a session and make it the current one; a previous one of that name is closed.

        A session that is open with the same settings is kept, with its tables and its training process.
        """
        name = alias or settings.url
        session = self._find_session(name, settings) or self._opened(name, settings)
        self._current = name
        return session

    def session(self, name: str = "") -> Session:
        """Return the session of an alias or a URL, or the current one.

        A URL that is not open is opened. Without a current session the variable SQLFLOW_SOURCE names the URL.
        """
        name = name or self._current
        if name in self._open:
            return self._open[name].session
        if not name and not (name := os.environ.get("SQLFLOW_SOURCE", "")):
            raise SemanticError("no data source is connected", hint="%sqlflow_connect duckdb:///demo.duckdb")
        if name.isidentifier():
            hint = did_you_mean(name, self.names) or f"%sqlflow_connect URL --alias {name}"
            raise SemanticError(f"no connection has the alias {name}", hint=hint)
        session = self._opened(
            name, ConnectionSettings(name, model_store=os.environ.get("SQLFLOW_MODEL_STORE", ""))
        )
        self._current = self._current or name
        return session

    @property
    def current(self) -> Session | None:
        """The open session that cells use by default; None if there is none yet."""
        connection = self._open.get(self._current)
        return connection.session if connection is not None else None

    def use(self, name: str) -> None:
        """Make the session of an alias or URL the current one."""
        self.session(name)
        self._current = name

    @property
    def names(self) -> list[str]:
        """Aliases of the open sessions."""
        return [name for name in self._open if name.isidentifier()]

    def close(self, name: str = "") -> None:
        """Close a session, by default the current one. Raises SemanticError if it is not open."""
        name = name or self._current
        connection = self._open.pop(name, None)
        if connection is None:
            raise SemanticError("no such connection is open", hint=did_you_mean(name, self.names))
        if name == self._current:
            self._current = ""
        connection.session.close()

    def close_all(self) -> None:
        while self._open:
            self.close(next(iter(self._open)))

    def _find_session(self, name: str, settings: ConnectionSettings) -> Session | None:
        connection = self._open.get(name)
        return connection.session if connection is not None and connection.settings == settings else None

    def _opened(self, name: str, settings: ConnectionSettings) -> Session:
        from sqlflow_edl.backends.kubernetes.settings import place
        from sqlflow_edl.session.session import Session

        if name in self._open:  # before opening, because an embedded database can be open only once
            self.close(name)
        session = Session(
            settings.url,
            dialect=settings.dialect,
            create=settings.create,
            workers=settings.workers,
            model_store=settings.model_store,
            place=place(settings.on, {}),
        )
        session.maintain()
        self._open[name] = NotebookConnection(settings, session)
        return session
