"""Databases of every kind for statements to be tried on, and the tables that the statements of the tests are over."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
import pytest

from sqlflow_edl.session.session import Session

DIALECTS = ("duckdb", "sqlite", "mysql", "postgres", "maxcompute")  # of all data sources that are databases
WITHOUT_LISTS = ("sqlite", "mysql")
has_lists = pytest.mark.parametrize(
    "session", [dialect for dialect in DIALECTS if dialect not in WITHOUT_LISTS], indirect=True
)
TABLES = Path(__file__).parent / "sqlflow_edl" / "tables.sql"


def on_each(fixture: str, *, always: Collection[str]) -> pytest.MarkDecorator:
    """On each database, by a fixture that takes the dialect; `make test` tries `always` alone of a whole job."""
    dialects = [name if name in always else pytest.param(name, marks=pytest.mark.soak) for name in DIALECTS]
    return pytest.mark.parametrize(fixture, dialects, indirect=True)


class Server(Protocol):
    def url(self) -> str:
        """Of a new database."""
        ...


class Databases:
    """Those of a test process. servers: starts the one of a dialect, when the first of its databases is asked for."""

    def __init__(self, folder: Path, servers: Callable[[str], Server]) -> None:
        self._folder = folder
        self._servers = servers
        self._numbers = itertools.count()
        self._shared: dict[str, Session] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def url(self, dialect: str) -> str:
        """Of a new database."""
        if dialect in ("mysql", "postgres", "maxcompute"):
            return self._servers(dialect).url()
        return f"{dialect}:{self._folder}/{next(self._numbers)}.{dialect}"

    def filled(self, dialect: str) -> Session:
        """The session over a database with the tables of `tables.sql`, which all tests read and none writes to."""
        if dialect not in self._shared:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_STATE_HOME", str(self._folder / "state"))
                opened = self._opened.enter_context(Session(self.url(dialect), create=True))
            for name, rows in tables().items():
                lists = [field.name for field in rows.schema if pa.types.is_nested(field.type)]
                fill(opened, name, rows.drop_columns(lists) if dialect in WITHOUT_LISTS else rows)
            self._shared[dialect] = opened
        return self._shared[dialect]


@cache
def tables() -> dict[str, pa.Table]:
    """The tables of `tables.sql`."""
    with Session("duckdb:") as opened:
        for _ in opened.run(TABLES.read_text(encoding="utf-8")):
            pass
        return {name: opened.source.stream(f"FROM {name}").read_all() for name in opened.source.tables()}


def spelt(name: str, session: Session) -> str:
    """The name of a column as the session's database gives it back: two of them have small letters only."""
    return name.lower() if session.dialect in ("maxcompute", "postgres") else name


def fill(session: Session, name: str, rows: pa.Table) -> None:
    """Make a table of these rows."""
    session.source.stage(name, f"given-{name}", 0, 0, rows.to_reader())
    session.source.commit(name, f"given-{name}", 1)
