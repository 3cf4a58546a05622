"""Functions of a caller's own connection: what they are called, take and give."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SemanticError, SQLFlowError
from edl.models.registry.model_store import ModelStore
from sqlflow_edl.extensions.serving.model import ServedModel
from tests.sales import new_sales

COLUMNS = "amount, city, day, is_new"


@pytest.fixture
def expected(kinds: ServedModel) -> pa.RecordBatch:
    return kinds.predictor.predict(new_sales().to_batches()[0])


def test_a_duckdb_connection_predicts_with_a_model_of_its_own_database(
    source: str, expected: pa.RecordBatch
) -> None:
    with duckdb.connect(source.removeprefix("duckdb:///")) as connection:
        assert sqlflow_edl.register(connection, "kinds") == ("predict_kinds", "predict_kinds_all")
        connection.register("fresh", new_sales())
        query = f"SELECT predict_kinds({COLUMNS}) AS kind, predict_kinds_all({COLUMNS}) AS p FROM fresh ORDER BY id"
        found = connection.sql(query).to_arrow_table()
        replaces = connection.sql("SELECT current_setting('python_enable_replacements')").fetchall()
    assert found["kind"].to_pylist() == expected.column("kind").to_pylist()
    assert found["p"].to_pylist() == expected.to_pylist()
    assert replaces == [(True,)]  # settings of the caller's stay


def test_more_rows_than_a_vector_are_predicted(archives: dict[str, Path], expected: pa.RecordBatch) -> None:
    with duckdb.connect() as connection:
        sqlflow_edl.register(connection, archives["kinds"], name="guess")
        connection.register("fresh", new_sales())
        query = f"SELECT guess({COLUMNS}) AS kind, count(*) AS n FROM fresh, range(1000) GROUP BY ALL"
        found = dict(connection.sql(query).fetchall())
    kinds = expected.column("kind").to_pylist()
    assert found == {kind: 1000 * kinds.count(kind) for kind in set(kinds)}


def test_a_function_is_replaced_when_it_is_registered_again(archives: dict[str, Path]) -> None:
    with duckdb.connect() as connection:
        sqlflow_edl.register(connection, archives["kinds"], name="guess")
        sqlflow_edl.register(connection, archives["costs"], name="guess")
        found = connection.sql("SELECT guess(1.5, 'Oslo', true)").fetchall()
    assert isinstance(found[0][0], float)


def test_a_sqlite_connection_predicts_row_by_row(source: str, expected: pa.RecordBatch) -> None:
    connection = sqlite3.connect(":memory:")
    with ModelStore(source).open() as registry:
        names = sqlflow_edl.register(connection, "kinds@1", source=registry)
    assert names == ("predict_kinds", "predict_kinds_all")
    connection.execute("CREATE TABLE fresh (id, amount, city, day, is_new)")
    rows = [
        (*list(row.values())[:3], row["day"] and str(row["day"]), row["is_new"])
        for row in new_sales().to_pylist()
    ]
    connection.executemany("INSERT INTO fresh VALUES (?, ?, ?, ?, ?)", rows)
    query = f"SELECT predict_kinds({COLUMNS}), predict_kinds_all({COLUMNS}) FROM fresh ORDER BY id"
    found = connection.execute(query).fetchall()
    assert [kind for kind, _ in found] == expected.column("kind").to_pylist()
    for (_, text), row in zip(found, expected.to_pylist(), strict=True):
        assert json.loads(text) == pytest.approx(row, abs=1e-9)


def test_a_value_that_no_column_holds_is_an_error(
    archives: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(":memory:")
    sqlflow_edl.register(connection, archives["costs"], name="cost")
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT cost('much', 'Oslo', 1)")
    assert capsys.readouterr().err == "error: column amount, row 0: 'much' is not a number\n"
    with pytest.raises(sqlite3.OperationalError, match="wrong number of arguments to function cost"):
        connection.execute("SELECT cost(1)")


def test_a_missing_model_or_an_impossible_name_is_refused(source: str, archives: dict[str, Path]) -> None:
    with duckdb.connect(source.removeprefix("duckdb:///")) as connection:
        with pytest.raises(SemanticError, match="there is no model kind"):
            sqlflow_edl.register(connection, "kind")
        with pytest.raises(SemanticError, match="'a b' cannot name a function"):
            sqlflow_edl.register(connection, archives["kinds"], name="a b")
    with pytest.raises(SQLFlowError, match="a SQLite database in memory"):
        sqlflow_edl.register(sqlite3.connect(":memory:"), "kinds")
