"""Schema file of `sqlflow lint` and `sqlflow compile`: tables in memory, in place of a database's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl.data import url as urls
from edl.errors import SemanticError, SourceError
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlflow_edl.session.observer import Observer
    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement

EMBEDDED = ("duckdb", "sqlite")  # dialects with a database that can be opened in memory


def open_session(
    dialect: str | None, model_store: str = "", url: str = "", observer: Observer | None = None
) -> Session:
    """Open a session over an empty database in memory.

    url: of the data source that programs name, which is not opened. Raises SourceError for the dialect of a server.
    """
    parsed = urls.parse(url) if url else None
    scheme = parsed.scheme if parsed else ""
    dialect = dialect or (scheme if scheme == "sqlite" or scheme in urls.SERVERS else "duckdb")
    if dialect not in EMBEDDED:
        raise SourceError(
            f"a schema file is read by an embedded database, which does not speak {dialect}",
            hint=f"use the database itself by --source, or write the programs in {' or '.join(EMBEDDED)}",
        )
    from sqlflow_edl.session.session import Session

    session = Session(f"{dialect}:", create=True, model_store=model_store, observer=observer)
    session.only_schema = True
    if parsed is not None:
        session.source.url = str(parsed)
    return session


def create_tables(session: Session, text: str) -> None:
    """Create the tables and views of a schema file, and the rows that it gives.

    Raises SQLFlowError, with its place in the text, also for a statement that does anything else.
    """
    for statement in session.parse(text):
        if not _belongs(statement, session.dialect):
            raise SemanticError(
                "a schema file has only CREATE TABLE, CREATE VIEW and INSERT",
                span=statement.span,
                hint="leave this statement out",
            )
        session.execute(statement)


def _belongs(statement: Statement, dialect: str) -> bool:
    from sqlglot import exp

    if statement.kind != "sql":
        return False
    try:
        parsed = trees(statement.text, dialect_named(dialect))
    except ValueError:
        return False
    return all(
        isinstance(tree, exp.Insert) or (isinstance(tree, exp.Create) and tree.kind in ("TABLE", "VIEW"))
        for tree in parsed
    )
