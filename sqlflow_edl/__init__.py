"""SQL to training programs: `connect(url)` opens a session, `parse(text)` returns a program's statements.

    with sqlflow_edl.connect("duckdb:///demo.duckdb") as session:
        [result] = session.run("SELECT * FROM iris TO TRAIN DNNClassifier LABEL species INTO irises")
        print(result.message)

Importing this module loads no database driver and no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edl.data.url import Connection
    from edl.models.registry.base import Registry
    from sqlflow_edl.reports.features import Transform
    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement

__all__ = ["connect", "load_transform", "parse", "register"]

REGISTER_MODEL = ("sqlflow_edl.extensions.serving.functions", "register_model")


def connect(
    url: str | Connection,
    *,
    dialect: str | None = None,
    create: bool = False,
    model_store: str = "",
    on: str = "",
    settings: Mapping[str, str] | None = None,
) -> Session:
    """Open the data source. Raises SourceError if it cannot be reached.

    url: URL of the data source, or a connection of DuckDB or SQLite. The session is then a connection of its own to the
    same database, and sees what is committed there. create: create a missing database file. model_store: folder or URL
    of an object store that keeps models instead of the source. on: where jobs run, `kubernetes` or
    `kubernetes:PROFILE`, with `settings`; by default on this machine.
    """
    from sqlflow_edl.backends.kubernetes.settings import place
    from sqlflow_edl.session.session import Session

    where = place(on, settings or {})
    session = Session(url, dialect=dialect, create=create, model_store=model_store, place=where)
    session.maintain()
    return session


def parse(text: str, dialect: str = "duckdb") -> list[Statement]:
    """Parse the statements of a program: kind, the SELECT as written, and its place.

    Raises StatementSyntaxError.
    """
    from sqlflow_edl.syntax import parse as parse_program

    return parse_program(text, dialect)


def register(
    connection: Connection, model: str | Path, *, name: str = "", source: Session | Registry | None = None
) -> tuple[str, ...]:
    """Add functions that predict to a DuckDB or SQLite connection, and return their names.

    `predict_m(a, b)` gives the predicted value of a row, `predict_m_all(a, b)` all predicted columns: a struct in
    DuckDB, a JSON text in SQLite. The arguments are the model's columns in the order of its features. model: a name,
    name@version, or the path of an archive file. name: of the first function, instead of predict_ and the model's name.
    source: session or registry that has the model; by default the connection's own database. Raises SQLFlowError.
    """
    from edl.extension_loader import load
    from sqlflow_edl.session.session import Session

    registry = source.registry if isinstance(source, Session) else source
    added: tuple[str, ...] = load(*REGISTER_MODEL)(connection, model, name, registry)
    return added


def load_transform(model: str | Path, *, source: Session | Registry | None = None) -> Transform:
    """Load the fitted features of a model, without its weights: `load_transform("m", source=session).transform(rows)`.

    The rows are an Arrow table or a data frame; the result is an Arrow table with a column of each feature, as SHOW
    FEATURES gives them. model: a name or name@version of the source, a session or registry; without one, the path of an
    archive file. Raises SQLFlowError.
    """
    from sqlflow_edl.reports import features
    from sqlflow_edl.session.session import Session

    registry = source.registry if isinstance(source, Session) else source
    return features.load_transform(model, registry)
