"""Data of the caller as tables of a session, and sessions on the caller's own connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import Databases, on_each

ROWS = pa.table({"x": [1, 2, 3], "name": ["a", "b", None]})
MODEL = "SELECT x, y FROM pairs TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 3 LABEL y INTO m"
PAIRS = "CREATE TABLE pairs AS SELECT range AS x, range * 2.0 AS y FROM range(100)"


def rows(session: Session, text: str) -> list[dict[str, object]]:
    *_, last = session.run(text)
    return last.to_arrow().to_pylist()


class Exported:
    """Rows of a library that exports an Arrow stream, as polars does."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ROWS.__arrow_c_stream__(requested_schema)


@pytest.fixture
def session(request: pytest.FixtureRequest, databases: Databases) -> Iterator[Session]:
    with sqlflow_edl.connect(databases.url(request.param), create=True) as opened:
        yield opened


@on_each("session", always=("duckdb", "sqlite", "mysql", "postgres"))
def test_a_table_of_arrow_is_a_table_of_the_session_alone(session: Session) -> None:
    if not session.source.temporary_tables_are_private:
        with pytest.raises(SQLFlowError, match="no tables that only one connection sees"):
            session.register("mine", ROWS)
        return
    before = session.source.tables()
    session.register("mine", ROWS)
    assert rows(session, "SELECT x, name FROM mine ORDER BY x") == ROWS.to_pylist()
    session.register("mine", ROWS.slice(1))
    assert rows(session, "SELECT x FROM mine ORDER BY x") == [{"x": 2}, {"x": 3}]
    session.unregister("mine")
    assert session.source.tables() == before
    with pytest.raises(SQLFlowError):
        rows(session, "SELECT x FROM mine")


@pytest.mark.soak
@pytest.mark.parametrize(
    "data",
    [ROWS.to_pandas(), ROWS, ROWS.to_batches()[0], ROWS.to_reader(), Exported()],
    ids=lambda data: type(data).__name__,
)
def test_what_can_become_arrow_can_be_registered(data: object) -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        session.register("mine", data)
        assert rows(session, "SELECT x, name FROM mine ORDER BY x") == ROWS.to_pylist()


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("mine", 3, "a int is not a data frame"),
        ("mine", pd.DataFrame({"x": [1, "a"]}), "the data frame cannot become a table"),
        ("mine", pd.DataFrame({"x": [1j]}), "cannot become a table: Conversion failed for column x"),
        ("mine", pd.DataFrame({"x": [1 << 70]}), "too large"),
        ("mine", pd.DataFrame([[1, 2]], columns=["x", "x"]), "several columns named x, and SQL ignores case"),
        ("mine", pa.table({"x": [1], "X": [2]}), "several columns named x and X, and SQL ignores case"),
        ("mine", pd.DataFrame({"x": pd.period_range("2024", periods=1)}), "column x .*pandas"),
        ("a b", ROWS, "'a b' cannot name a table"),
        ("pairs", ROWS, "there is a table pairs, which the data would hide"),
        ("Pairs", ROWS, "there is a table Pairs, which the data would hide"),
    ],
)
def test_what_cannot_be_registered_is_refused(name: str, data: object, message: str) -> None:
    with sqlflow_edl.connect("duckdb:") as session:
        list(session.run(PAIRS))
        with pytest.raises(SQLFlowError, match=message):
            session.register(name, data)
        with pytest.raises(SQLFlowError, match="mine is not registered"):
            session.unregister("mine")


HOURS = pd.to_timedelta(pd.Series(range(50)) % 9, unit="h")


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("values", "note"),
    [
        (pd.arrays.SparseArray([0.0, 1.0] * 25), ""),
        (pd.Series([0.5, 1.5] * 25, dtype="float16"), ""),
        (HOURS, "x is left out: it is an interval; select its seconds: epoch(x)"),
    ],
    ids=["sparse", "float16", "timedelta"],
)
def test_a_frame_of_unusual_numbers_trains_a_model(values: object, note: str) -> None:
    frame = pd.DataFrame({"x": values, "z": [1, 2, 3, 4, 5] * 10, "y": [float(n) for n in range(50)]})
    with sqlflow_edl.connect("duckdb:") as session:
        session.register("mine", frame)
        [result] = session.run(f"SELECT x, z, y FROM mine {MODEL.partition('pairs')[2]}")
        assert note in (result.notes or ("",))
        if note:
            [seconds] = session.run("SELECT epoch(x) AS x FROM mine LIMIT 2")
            assert seconds.to_arrow().to_pylist() == [{"x": 0.0}, {"x": 3600.0}], "as the note says"


# The caller's own connection ------------------------------------------------------------------------------


def test_a_session_on_a_connection_of_duckdb_leaves_its_settings_and_its_transaction() -> None:
    connection = duckdb.connect()
    connection.execute(PAIRS)
    connection.execute("BEGIN; INSERT INTO pairs VALUES (-1, -1)")
    with sqlflow_edl.connect(connection) as session:
        list(session.run(MODEL))
        session.register("new_pairs", pa.table({"x": [5, 50]}))
        predicted = rows(session, "SELECT x FROM new_pairs TO PREDICT USING m")
        list(session.run("SELECT x FROM new_pairs TO PREDICT guesses.y USING m"))
        assert rows(session, "SELECT count(*) AS n FROM pairs") == [{"n": 100}], "not what is uncommitted"
    connection.execute("ROLLBACK")
    guesses = connection.execute("SELECT x, y FROM guesses ORDER BY x").fetchall()
    assert guesses == [(row["x"], row["y"]) for row in predicted]
    frame = pa.table({"a": [7]})
    assert connection.execute("SELECT a FROM frame").fetchall() == [(7,)], "variables are tables as before"
    assert frame.num_rows == 1


@pytest.mark.soak
def test_a_session_on_a_file_has_the_models_of_its_url(tmp_path: Path) -> None:
    path = tmp_path / "pairs.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(PAIRS)
        with sqlflow_edl.connect(connection) as session:
            list(session.run(MODEL))
            assert session.source.url == f"duckdb:///{path}"
    with sqlflow_edl.connect(f"duckdb:///{path}") as session:
        assert len(rows(session, "SELECT 3 AS x TO PREDICT USING m")) == 1


class Wrapper:
    """Connection of DuckDB in a wrapper, as a Python model of dbt gets it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._cursor = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._cursor, name)


def test_a_session_on_a_wrapped_connection_is_one_on_its_database() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        with sqlflow_edl.connect(Wrapper(connection)) as session:  # type: ignore[arg-type]
            assert rows(session, "SELECT x FROM t") == [{"x": 1}]


def test_a_session_on_a_connection_of_sqlite_is_one_of_its_own(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "t.sqlite")
    connection.execute("CREATE TABLE t (x INTEGER)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    with sqlflow_edl.connect(connection) as session:
        assert rows(session, "SELECT x FROM t") == [{"x": 1}]
    assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert connection.isolation_level is not None
    connection.close()


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (sqlite3.connect(":memory:"), "a SQLite database in memory can be read by its own connection alone"),
        (3, "a builtins.int is not a connection of DuckDB or SQLite"),
    ],
)
def test_other_connections_are_refused(connection: object, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message) as caught:
        sqlflow_edl.connect(connection)  # type: ignore[arg-type]
    assert caught.value.hint
