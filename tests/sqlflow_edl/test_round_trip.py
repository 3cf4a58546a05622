"""Extreme and odd values of each type of each database: shown in every format, and carried through PREDICT.

`tests/fixtures/round_trip` says of each value how it is shown, and what a result table has of it: the same value as the
database's own client reads it, another one, or the error that PREDICT reports.
"""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as parquet
import pytest

import sqlflow_edl
from edl.data.server_url import parse_server
from edl.errors import SQLFlowError
from sqlflow_edl.display import views
from sqlflow_edl.display.output import FORMATS
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import Databases

VALUES = Path(__file__).parents[1] / "fixtures" / "round_trip"
TRAIN = (
    "SELECT range % 10 AS x, range % 10 * 2.0 AS y FROM range(60)"
    " TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 1 COLUMN x LABEL y INTO m"
)
CONTROLS = {"¶": "\n", "␀": "\0"}
ERROR = "error: "


@dataclass(frozen=True)
class Value:
    """One value: the column of its type, its SQL, its cell, and what a result table has of it."""

    column: int
    type: str
    sql: str
    cell: str
    stored: str

    @property
    def is_refused(self) -> bool:
        return self.stored.startswith(ERROR)


@dataclass(frozen=True)
class Given:
    """Statements of the set-up, and values."""

    setup: list[str]
    values: list[Value]

    @classmethod
    def read(cls, name: str) -> Given:
        setup, values = [], []
        column, declared = -1, ""
        for line in (VALUES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith("! "):
                setup.append(line.removeprefix("! "))
            elif not line.startswith("#"):
                kind, sql, shown, stored = line.split(" | ")
                column, declared = (column + 1, kind) if kind else (column, declared)
                cell = "".join(CONTROLS.get(letter, letter) for letter in shown)
                values.append(
                    Value(column, declared, sql.replace("\\|", "|"), cell.strip('"') and cell, stored)
                )
        return cls(setup, values)

    def columns(self, values: list[Value]) -> dict[int, list[Value]]:
        """Return the values by column."""
        return {each.column: [other for other in values if other.column == each.column] for each in values}


def create(session: Session, table: str, values: list[Value]) -> None:
    """Make a table with a column for each type, and the values of a column one below the other, the last repeatedly."""
    columns = Given([], values).columns(values)
    declared = ", ".join(f"c{number} {column[0].type}" for number, column in columns.items())
    run(session, f"CREATE TABLE {table} (id INT, x INT, {declared})")
    for row in range(max(map(len, columns.values()))):
        cells = [column[min(row, len(column) - 1)].sql for column in columns.values()]
        run(session, f"INSERT INTO {table} VALUES ({row}, {row % 10}, {', '.join(cells)})")


def run(session: Session, text: str) -> Result:
    [result] = session.run(text)
    return result


@pytest.fixture(scope="module")
def model_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        with sqlflow_edl.connect("duckdb:", model_store=str(folder / "store")) as session:
            run(session, TRAIN)
    return str(folder / "store")


@dataclass(frozen=True)
class Database:
    """A session over a database with the table `given`, and the rows of a query as its own client reads them."""

    model_store: str
    session: Session
    given: Given
    client: Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module", params=["duckdb", "sqlite", "mysql", "postgres", "maxcompute"])
def database(
    request: pytest.FixtureRequest,
    databases: Databases,
    model_store: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Database]:
    name = request.param
    url = databases.url(name)
    given = Given.read(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with sqlflow_edl.connect(url, create=True, model_store=model_store) as session:
            for statement in given.setup:
                run(session, statement)
            create(session, "given", given.values)
            yield Database(model_store, session, given, CLIENTS[name](url, session))


def with_duckdb(url: str, session: Session) -> Callable[[str], list[tuple[Any, ...]]]:
    def rows(query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(url.removeprefix("duckdb:")) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({query})").fetchall()

    return rows


def with_sqlite(url: str, session: Session) -> Callable[[str], list[tuple[Any, ...]]]:
    def rows(query: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(url.removeprefix("sqlite:"))
        connection.text_factory = bytes
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    return rows


def with_pymysql(url: str, session: Session) -> Callable[[str], list[tuple[Any, ...]]]:
    import pymysql

    server = parse_server(url).with_password()

    def rows(query: str) -> list[tuple[Any, ...]]:
        connection = pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, database=server.path,
            init_command="SET time_zone = '+00:00'", ssl_disabled=True,
        )  # fmt: skip
        with connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    return rows


def with_psql(url: str, session: Session) -> Callable[[str], list[tuple[Any, ...]]]:
    """Read texts, as psql does."""
    import psycopg

    def rows(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(url, options="-c TimeZone=UTC") as connection:
            names = [each.name for each in connection.execute(f"{query} LIMIT 0").description or ()]
            texts = ", ".join(f"{name}::text" for name in names)
            return connection.execute(f"SELECT {texts} FROM ({query}) AS q").fetchall()

    return rows


def with_the_session(url: str, session: Session) -> Callable[[str], list[tuple[Any, ...]]]:
    def rows(query: str) -> list[tuple[Any, ...]]:
        with sqlflow_edl.connect(url) as other:
            return [tuple(row.values()) for row in run(other, query).to_arrow().to_pylist()]

    return rows


CLIENTS = {
    "duckdb": with_duckdb,
    "sqlite": with_sqlite,
    "mysql": with_pymysql,
    "postgres": with_psql,
    "maxcompute": with_the_session,  # its client is the double's
}


def test_every_value_is_shown_as_the_database_writes_it(database: Database) -> None:
    text = io.StringIO()
    views.write(run(database.session, "SELECT * FROM given ORDER BY id"), text, "csv")
    _, *rows = csv.reader(io.StringIO(text.getvalue()))
    found = {
        value: rows[row][2 + place]
        for place, column in enumerate(database.given.columns(database.given.values).values())
        for row, value in enumerate(column)
    }
    assert {(each.type, each.sql): cell for each, cell in found.items()} == {
        (each.type, each.sql): each.cell for each in database.given.values
    }


def test_every_format_and_a_data_frame_have_every_value(database: Database, tmp_path: Path) -> None:
    columns = 2 + len(database.given.columns(database.given.values))
    for format_ in FORMATS:
        with (tmp_path / format_).open("w", encoding="utf-8") as out:
            views.write(run(database.session, "SELECT * FROM given ORDER BY id"), out, format_)
        assert (tmp_path / format_).stat().st_size, format_
    assert parquet.read_table(tmp_path / "parquet").num_columns == columns
    assert run(database.session, "SELECT * FROM given ORDER BY id").to_pandas().shape[1] == columns


def test_a_result_table_has_the_values_that_predict_carries_along(database: Database) -> None:
    session = database.session
    values = [each for each in database.given.values if not each.is_refused]
    create(session, "carried", values)
    run(session, "SELECT * FROM carried TO PREDICT scored.y USING m")
    columns = database.given.columns(values)
    names = ", ".join(f"c{number}" for number in columns)
    session.source.close()  # for a client that must be alone
    before = database.client(f"SELECT {names} FROM carried ORDER BY id")
    after = database.client(f"SELECT {names} FROM scored ORDER BY id")
    wanted, found = {}, {}
    for place, column in enumerate(columns.values()):
        for row, value in enumerate(column):
            own, stored = before[row][place], after[row][place]
            wanted[value.type, value.sql] = "=" if value.stored == "=" else value.stored
            found[value.type, value.sql] = "=" if is_equal(own, stored) else shown(stored)
    assert found == wanted


def is_equal(own: object, stored: object) -> bool:
    both_floats = isinstance(own, float) and isinstance(stored, float)
    return repr(own) == repr(stored) if both_floats else own == stored


def shown(stored: object) -> str:
    return stored.decode(errors="replace") if isinstance(stored, bytes) else str(stored)


def test_a_value_that_cannot_be_carried_along_is_a_named_error(database: Database) -> None:
    refused = [each for each in database.given.values if each.is_refused]
    with sqlflow_edl.connect(database.session.source.url, model_store=database.model_store) as session:
        for statement in database.given.setup:
            if statement.startswith("SET"):
                run(session, statement)
        for number, value in enumerate(refused):
            create(session, f"refused{number}", [replace(value, column=0)])
            with pytest.raises(SQLFlowError) as caught:
                run(session, f"SELECT * FROM refused{number} TO PREDICT never.y USING m")
            assert value.stored.removeprefix(ERROR) in caught.value.message, value
