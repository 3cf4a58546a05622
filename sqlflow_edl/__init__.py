"""SQL to training programs: `connect(url)` opens a session, `parse(text)` returns a program's statements.

    with sqlflow_edl.connect("duckdb:///demo.duckdb") as session:
        for result in session.run("SELECT * FROM iris TO TRAIN DNNClassifier LABEL species INTO irises"):
            print(result.message)

Importing this module loads no database driver and no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement

__all__ = ["connect", "parse"]


def connect(
    url: str,
    *,
    dialect: str | None = None,
    create: bool = False,
    model_store: str = "",
    on: str = "",
    settings: Mapping[str, str] | None = None,
) -> Session:
    """Open the data source. Raises SourceError if it cannot be reached.

    create: create a missing database file. model_store: folder or URL of an object store that keeps models
    instead of the source. on: where jobs run, `kubernetes` or `kubernetes:PROFILE`, with `settings`; by
    default on this machine.
    """
    from sqlflow_edl.backends.kubernetes.settings import place
    from sqlflow_edl.session.session import Session

    where = place(on, settings or {})
    return Session(url, dialect=dialect, create=create, model_store=model_store, place=where)


def parse(text: str, dialect: str = "duckdb") -> list[Statement]:
    """Parse the statements of a program: kind, the SELECT as written, and its place.

    Raises StatementSyntaxError.
    """
    from sqlflow_edl.syntax import parse as parse_program

    return parse_program(text, dialect)
