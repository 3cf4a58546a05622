"""Schema file of `sqlflow lint --schema`: tables in memory, against which programs are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl.errors import SemanticError, SourceError
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement

EMBEDDED = ("duckdb", "sqlite")  # dialects whose database can be opened in memory


def opened(dialect: str, model_store: str = "") -> Session:
    """Open a session over an empty database in memory. Raises SourceError for the dialect of a server."""
    if dialect not in EMBEDDED:
        raise SourceError(
            f"a schema file is checked by an embedded database, which does not speak {dialect}",
            hint=f"check against the database itself by --source, or write the programs in {' or '.join(EMBEDDED)}",
        )
    from sqlflow_edl.session.session import Session

    return Session(f"{dialect}:", create=True, model_store=model_store)


def create_tables(session: Session, text: str) -> None:
    """Create the tables and views of a schema file.

    Raises SQLFlowError, with its place in the text, also for a statement that creates anything else.
    """
    for statement in session.parse(text):
        if not _creates(statement, session.dialect):
            raise SemanticError(
                "a schema file has only CREATE TABLE and CREATE VIEW",
                span=statement.span,
                hint="leave this statement out",
            )
        session.execute(statement)


def _creates(statement: Statement, dialect: str) -> bool:
    from sqlglot import exp

    if statement.kind != "sql":
        return False
    try:
        found = trees(statement.text, dialect_named(dialect))
    except ValueError:
        return False
    return all(isinstance(tree, exp.Create) and tree.kind in ("TABLE", "VIEW") for tree in found)
