"""Places of tables: databases, files and data frames, opened once for a process and kept warm."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow.parquet as parquet
import pytest

from edl.models.archive import read_archive
from sqlflow_edl.session.session import Session
from tests import mariadb, postgresql, warm_processes
from tests.databases import Databases, Server
from tests.relations.comparing import Fitted
from tests.relations.kinds import quoted
from tests.relations.statements import Train
from tests.relations.tables import POSITION, Table
from tests.trained import Models, models

EMBEDDED = ("duckdb", "sqlite")
SERVERS = ("mysql", "postgres")
DATABASES = (*EMBEDDED, *SERVERS)
FILES = ("parquet", "csv")


class Place:
    """Resources that the relations of a process share. folder: of its own. servers: folder that all processes share."""

    def __init__(self, folder: Path, servers: Path) -> None:
        self.folder = folder
        self._servers = servers
        self._numbers = itertools.count()
        self._opened = contextlib.ExitStack()
        self._sessions: dict[str, Session] = {}
        self._hosts: dict[str, Server] = {}
        self._models: Models | None = None
        self._databases = Databases(folder, self.host)
        self.urls: dict[str, str] = {}

    def __enter__(self) -> Self:
        patch = self._opened.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("XDG_STATE_HOME", str(self.folder / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(self.folder / "config"))
        self._opened.enter_context(warm_processes.shared(self.folder))
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def name(self) -> str:
        """A name that nothing else here has."""
        return f"n{next(self._numbers)}"

    def host(self, dialect: str) -> Any:
        """The server of a dialect, which starts when it is first asked for."""
        if dialect not in self._hosts:
            module = {"mysql": mariadb, "postgres": postgresql}[dialect]
            shared = module.shared(self._servers / dialect)
            self._hosts[dialect] = self._opened.enter_context(shared)
        return self._hosts[dialect]

    def session(self, source: str) -> Session:
        """The session of a database, or of the DuckDB that data frames are registered with."""
        if source not in self._sessions:
            dialect = "duckdb" if source == "frame" else source
            self.urls[source] = self._databases.url(dialect)
            self._sessions[source] = self._opened.enter_context(Session(self.urls[source], create=True))
        return self._sessions[source]

    def reader(self, source: str) -> Session:
        """A session of a database that has the models of `models`."""
        if source == "duckdb":
            return self.models.session
        if (key := f"{source} with models") not in self._sessions:
            self.session(source)
            store = str(self._servers / "store")
            self._sessions[key] = self._opened.enter_context(Session(self.urls[source], model_store=store))
        return self._sessions[key]

    def warm(self) -> None:
        """Open what takes a while, and what changes the environment of training processes, before time is measured."""
        for source in DATABASES:
            self.session(source)

    @property
    def models(self) -> Models:
        """The small models of `tests.trained`, each trained when it is asked for."""
        if self._models is None:
            folder = self.folder / "trained"
            folder.mkdir()
            self._models = self._opened.enter_context(models(folder, self._servers / "store"))
        return self._models

    # Tables ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def stored(
        self, table: Table, source: str, session: Session | None = None
    ) -> Iterator[tuple[Session, str]]:
        """The table in a source, for a while: its session, and the name by which a query reads it.

        session: of a database, by default the one that most relations use.
        """
        name = self.name()
        if source in FILES:
            with self._file(table, source, name) as opened:
                yield opened
            return
        session = session or self.session(source)
        if source == "frame":
            session.register(name, table.arrow())
            try:
                yield session, name
            finally:
                session.unregister(name)
            return
        try:
            for statement in table.statements(name, source):
                session.source.execute(statement)
            yield session, name
        finally:
            session.source.execute(f"DROP TABLE IF EXISTS {name}")

    @contextlib.contextmanager
    def _file(self, table: Table, source: str, name: str) -> Iterator[tuple[Session, str]]:
        path = self.folder / f"{name}.{source}"
        rows = table.arrow().append_column(POSITION, [np.arange(table.rows)])
        if source == "parquet":
            parquet.write_table(rows, path)
        else:
            with duckdb.connect() as connection:
                connection.register("given", rows)
                connection.execute(f"COPY given TO '{path}' (HEADER)")
        try:
            with Session(f"{source}:///{path}") as session:
                yield session, name
        finally:
            path.unlink()
            path.with_suffix(".sqlflow.duckdb").unlink(missing_ok=True)

    def own_rows(self, source: str, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query by the client of the database itself."""
        if source == "duckdb":
            with duckdb.connect(self.urls[source].partition(":")[2]) as connection:
                return connection.execute(query).fetchall()
        if source == "sqlite":
            with contextlib.closing(sqlite3.connect(self.urls[source].partition(":")[2])) as connection:
                return connection.execute(query).fetchall()
        database = self.urls[source].rpartition("/")[2]
        if source == "mysql":
            connecting = contextlib.closing(self.host(source).connect(database=database))
            with connecting as connection, connection.cursor() as cursor:
                cursor.execute(query)
                return list(cursor.fetchall())
        return self.host(source).run(query, database=database)

    # Trainings -------------------------------------------------------------------------------------------------

    def fit(
        self,
        table: Table,
        train: Train,
        source: str,
        *,
        select: str = "",
        position: bool = False,
        keep: bool = False,
    ) -> Fitted:
        """Train on the table in a source, and take the model out of it.

        select: what stands between SELECT and FROM, by default all columns of the table. position: order the rows.
        """
        with self.stored(table, source) as (session, name):
            columns = select or ", ".join(quoted(each, session.dialect) for each in table.names)
            order = f" ORDER BY {POSITION}" if position else ""
            text = train.text(f"SELECT {columns} FROM {name}{order}", f"m_{name}", session.dialect)
            return self.run_training(session, text, f"m_{name}", keep=keep)

    def run_training(self, session: Session, text: str, model: str, *, keep: bool = False) -> Fitted:
        """Run a TRAIN statement. keep: leave the model in the registry of the session."""
        *_, result = session.run(text)
        file = self.folder / f"{model}.zip"
        try:
            session.registry.load(model, file)
            archive = read_archive(file)
            weights = archive.weights()
        finally:
            file.unlink(missing_ok=True)
            if not keep:
                for _ in session.run(f"DROP MODEL IF EXISTS {model}"):
                    pass
        figures = dict(result.figures or {})
        return Fitted(weights, figures, archive, (*result.notes, *result.warnings))


@contextlib.contextmanager
def opened(servers: Path | None = None) -> Iterator[Place]:
    """A place in a folder of its own. servers: folder of the servers that several processes share."""
    os.environ.setdefault("EDL_DEVICE", "cpu")
    with (
        tempfile.TemporaryDirectory(prefix="relations-", ignore_cleanup_errors=True) as made,
        Place(Path(made), servers or Path(made)) as place,
    ):
        yield place
