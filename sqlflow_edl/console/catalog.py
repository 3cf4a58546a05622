"""Cache of the names to complete: tables, columns and models of a data source."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from edl.errors import SQLFlowError

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session


class SourceCatalog:
    """Names of tables, columns and models, as of the last refresh.

    The completion thread reads it while another thread refreshes it: each field is replaced as a whole. If the
    database refuses, the previous names stay.
    """

    def __init__(self) -> None:
        self.tables: tuple[str, ...] = ()
        self.models: tuple[str, ...] = ()
        self.columns: dict[str, tuple[str, ...]] = {}  # by table, if they were requested

    def look(self, session: Session) -> None:
        """Refresh the tables and models; columns are discarded, and read again on request."""
        with contextlib.suppress(SQLFlowError):
            self.tables = tuple(session.source.tables())
            self.columns = {}
        with contextlib.suppress(SQLFlowError):
            names = (version.name for version in session.registry.list() if version.state == "ready")
            self.models = tuple(dict.fromkeys(names))

    def look_into(self, table: str, session: Session) -> None:
        """Read the columns of a table."""
        columns: tuple[str, ...] = ()
        with contextlib.suppress(SQLFlowError):
            columns = tuple(session.source.schema(f"SELECT * FROM {table}").names)
        self.columns = {**self.columns, table: columns}


class KnownNames(Protocol):
    """Source of the names to complete, such as the connection of a console."""

    @property
    def dialect(self) -> str:
        """SQL dialect of the statements."""

    def get_catalog(self) -> SourceCatalog:
        """Return the names of tables and models."""

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a known table."""


class Unconnected:
    """Names without a data source: none."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def get_catalog(self) -> SourceCatalog:
        return SourceCatalog()

    def columns(self, table: str) -> tuple[str, ...]:
        return ()
