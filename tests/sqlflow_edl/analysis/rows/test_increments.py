"""Trainings on the rows that are new since the last one, on every database."""

from __future__ import annotations

import pytest

from edl import spec
from edl.errors import SemanticError, SpecError
from sqlflow_edl.analysis import train
from sqlflow_edl.analysis.train_settings import check_settings
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.session.pinning import look
from sqlflow_edl.session.session import Session
from tests.databases import Databases

ROWS = 1200


def planned(
    session: Session, column: str, last: int | str | None, select: str = "SELECT * FROM people"
) -> Planned:
    """Plan a training by the column. last: its greatest value in the last training."""
    text = f"{select} TO TRAIN BoostedTreesRegressor WITH train.incremental_column = {column} LABEL income INTO m"
    [statement] = session.parse(text)
    schema, query = session.compiler.describe(statement)
    before = spec.Query("", session.dialect, "", (), spec.Increment(column, None, last))
    return look(session.source, train.plan(statement, query, schema, check_settings(statement), last=before))


def test_the_first_training_has_all_rows_and_their_greatest_value(session: Session) -> None:
    found = planned(session, "age", None)
    assert found.spec.rows.total == ROWS
    assert found.spec.query.increment == spec.Increment("age", None, 69)
    assert "all rows are trained on, up to age 69" in found.plan.notes


def test_a_later_training_has_the_rows_above_it(session: Session) -> None:
    found = planned(session, "age", 59)
    assert found.spec.rows.total == ROWS // 5
    assert found.spec.query.increment == spec.Increment("age", 59, 69)
    assert "rows with age above 59, up to 69, are trained on" in found.plan.notes
    assert "age" not in [name for each in found.spec.features for name in spec.source_columns(each)]


@pytest.mark.parametrize("dialect", ["duckdb", "mysql", "postgres", "maxcompute"])
def test_dates_and_times_tell_new_rows(databases: Databases, dialect: str) -> None:
    session = databases.filled(dialect)
    found = planned(session, "born", "2000-02-14", "SELECT age, born, income FROM dated")
    assert found.spec.rows.total == 5
    assert found.spec.query.increment == spec.Increment("born", "2000-02-14", "2000-02-19")


def test_no_new_row_is_an_error_that_says_what_was_seen(session: Session) -> None:
    with pytest.raises(
        SemanticError, match="no row has age above 69, up to which the model was trained"
    ) as raised:
        planned(session, "age", 69)
    assert raised.value.span is not None


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("income", "it is the label or the weight"),
        ("height", "height is a number, and new rows are told by a whole number or a time"),
        ("agee", "unknown column agee"),
    ],
)
def test_a_column_that_tells_nothing_is_refused(session: Session, column: str, said: str) -> None:
    with pytest.raises(SemanticError, match=said):
        planned(session, column, None)


@pytest.mark.parametrize(
    ("column", "select"), [("age", "SELECT * FROM people"), ("born", "SELECT age, born, income FROM dated")]
)
def test_a_stored_value_never_becomes_other_sql(databases: Databases, column: str, select: str) -> None:
    with pytest.raises(SpecError, match="cannot be a value of a column that is"):
        planned(databases.filled("duckdb"), column, "2000-01-01' OR true --", select)


def test_times_of_sqlite_are_texts(databases: Databases) -> None:
    with pytest.raises(SemanticError, match="born is a time, which SQLite stores as a text of any form"):
        planned(databases.filled("sqlite"), "born", None, "SELECT age, born, income FROM dated")


def test_the_model_knows_the_rows_of_its_last_training(databases: Databases) -> None:
    train = (
        "SELECT id, x, y FROM t TO TRAIN BoostedTreesRegressor "
        "WITH num_boost_round = 2, train.incremental_column = id LABEL y INTO m"
    )
    add = "SELECT range AS id, range % 7 AS x, range * 1.5 AS y FROM range({}, {})"
    with Session(databases.url("duckdb"), create=True) as session:
        list(session.run(f"CREATE TABLE t AS {add.format(0, 50)}; {train}"))
        with pytest.raises(SemanticError, match="no row has id above 49"):
            list(session.run(train))
        *_, second = session.run(f"INSERT INTO t {add.format(50, 90)}; {train}")
        assert second.model == "m@2"
        [described] = session.run("DESCRIBE MODEL m")
        found = {row["name"]: row["value"] for row in described.to_arrow().to_pylist()}
    assert found["increment"] == "id above 49, up to 89"
