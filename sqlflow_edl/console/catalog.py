"""What there is to complete: the tables, columns and models of a data source, as they were when last looked at."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session


class Catalog:
    """Read by the thread that completes while another looks again: each field is replaced as a whole.

    A database that refuses leaves what was known.
    """

    def __init__(self) -> None:
        self.tables: tuple[str, ...] = ()
        self.models: tuple[str, ...] = ()
        self.columns: dict[str, tuple[str, ...]] = {}  # of the tables that were looked into

    def look(self, session: Session) -> None:
        """Find the tables and models; columns are forgotten, and found again when they are asked for."""
        with contextlib.suppress(SQLFlowError):
            self.tables = tuple(session.source.tables())
            self.columns = {}
        with contextlib.suppress(SQLFlowError):
            names = (version.name for version in session.registry.list() if version.state == "ready")
            self.models = tuple(dict.fromkeys(names))

    def look_into(self, table: str, session: Session) -> None:
        """Find the columns of one of the tables."""
        found: tuple[str, ...] = ()
        with contextlib.suppress(SQLFlowError):
            found = tuple(session.source.schema(f"SELECT * FROM {table}").names)
        self.columns = {**self.columns, table: found}
