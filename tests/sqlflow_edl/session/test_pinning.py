"""The rows of a TRAIN statement: which ids are features, and warnings in the plan and beside the pinned rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.models.fitting import read_fitting
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.pinning import pin_and_fit
from sqlflow_edl.session.session import Session

TABLE = """
CREATE TABLE people AS
SELECT range AS id, range % 7 AS age, 'p' || range AS name, (range * 37 % 11) * 0.5 AS pay, range % 2 = 0 AS even
FROM range(300)
"""
TWICE = "(SELECT * FROM people UNION ALL SELECT * FROM people)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(f"duckdb:///{tmp_path}/x.duckdb", create=True) as session:
        session.source.execute(TABLE)
        yield session


def planned(session: Session, text: str) -> Planned:
    [statement] = session.parse(text)
    return session.compiler.plan(statement)


def test_an_id_that_the_select_brings_is_no_feature_and_the_answer_says_so(session: Session) -> None:
    found = planned(session, "SELECT * FROM people TO TRAIN DNNRegressor LABEL pay INTO m")
    assert found.spec.columns == ("age", "even")
    assert [note for note in found.plan.notes if "left out" in note] == [
        "id is left out: its number is different in every row, as an id is; name it in COLUMN to use it anyway",
        "name is left out: its text is different in every row; name it in COLUMN to use it anyway",
    ]
    assert found.warnings == ()


def test_an_id_that_column_names_stays_with_a_warning(session: Session) -> None:
    found = planned(session, "SELECT * FROM people TO TRAIN DNNRegressor COLUMN id LABEL pay INTO m")
    assert "id" in found.spec.columns
    assert [each.about for each in found.warnings] == ["id"]


def test_an_id_stays_where_no_other_feature_is_left(session: Session) -> None:
    found = planned(session, "SELECT id, pay FROM people TO TRAIN DNNRegressor LABEL pay INTO m")
    assert found.spec.columns == ("id",)
    assert "because no other feature is left" in found.warnings[0].message


def test_the_plan_shows_warnings_with_what_to_do(session: Session) -> None:
    [statement] = session.parse(
        "SELECT age, pay, pay AS paid FROM people TO TRAIN DNNRegressor LABEL pay INTO m"
    )
    rows = session.plan(statement).to_arrow().to_pylist()
    assert [(row["name"], row["value"]) for row in rows if row["section"] == "warnings"] == [
        ("paid", "paid is a copy of the label pay")
    ]


@pytest.mark.soak
def test_copies_of_training_rows_are_found_when_the_rows_are_split(session: Session) -> None:
    [statement] = session.parse(
        "SELECT row_number() OVER (ORDER BY id) AS id, id * 1.5 AS x, age, even, pay "
        f"FROM {TWICE} TO TRAIN DNNRegressor LABEL pay INTO m"
    )
    job = job_folder.create("train", statement.text)
    fixed = pin_and_fit(session.source, session.compiler.training_plan(statement), job, Silent())
    assert [each.about for each in fixed.warnings] == ["validation rows"]
    assert "of 60 validation rows" in fixed.warnings[0].message
    stored = read_fitting(job.rows)
    assert stored is not None
    assert stored.warnings == tuple(map(str, fixed.warnings))


def test_rows_of_a_query_of_their_own_are_checked_too(session: Session) -> None:
    [statement] = session.parse(
        "SELECT id * 1.5 AS x, age, even FROM people TO TRAIN DNNClassifier LABEL even INTO m "
        "VALIDATE ON (SELECT EVEN, age, id * 1.5 AS X FROM people WHERE even AND id < 20)"
    )
    job = job_folder.create("train", statement.text)
    said = [
        each.message
        for each in pin_and_fit(
            session.source, session.compiler.training_plan(statement), job, Silent()
        ).warnings
    ]
    assert said[0].startswith("10 of 10 validation rows (100.0 %) have the same features")
    assert said[1].startswith("all 10 validation rows have the same class, TRUE")
