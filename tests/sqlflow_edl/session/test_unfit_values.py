"""Columns with a value that their type cannot hold: a training leaves out, with a note, those that no clause names."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqlflow_edl
from edl.errors import UnfitValueError
from sqlflow_edl.session.session import Session
from tests.databases import Databases

TABLES = {
    "postgres": """
    CREATE TABLE visits AS SELECT i % 10 AS x,
     CASE WHEN i = 150 THEN 'NaN'::numeric ELSE i END::numeric(8, 2) AS "Paid",
     CASE WHEN i = 3 THEN DATE 'infinity' END AS until, i % 10 * 2.0::float8 AS y FROM generate_series(0, 199) s(i);
    """,
    "mysql": """
    SET sql_mode = '';
    CREATE TABLE visits AS SELECT seq % 10 AS x, CAST('10:00' AS TIME) AS `Paid`, DATE '2024-02-29' AS until,
     seq % 10 * 2e0 AS y FROM seq_0_to_199;
    UPDATE visits SET until = '0000-00-00' WHERE x = 3;
    UPDATE visits SET `Paid` = '83:03:20' WHERE x = 4;
    """,
}
LEFT_OUT = "{} is left out: it holds '{}', which is not a {}; write {}".format
NOTES = {
    "postgres": [
        LEFT_OUT("Paid", "NaN", "decimal", '"Paid"::double precision AS "Paid"'),
        LEFT_OUT("until", "infinity", "date", 'CASE WHEN isfinite("until") THEN "until" END AS "until"'),
    ],
    "mysql": [
        LEFT_OUT("Paid", "83:03:20", "time", "TIME_TO_SEC(Paid) AS Paid"),
        LEFT_OUT("until", "0000-00-00", "date", "NULLIF(until, 0) AS until"),
    ],
}
TREES = "TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2"


@pytest.fixture(params=TABLES)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session(dialect: str, databases: Databases, tmp_path: Path, request: pytest.FixtureRequest) -> Session:
    """A session over a table of visits, with unfit values in two of its columns."""
    options = getattr(request, "param", "")
    url = databases.url(dialect)
    if options:
        url += ("&" if "?" in url else "?") + options
    opened = sqlflow_edl.connect(url)
    request.addfinalizer(opened.close)
    for _ in opened.run(TABLES[dialect]):
        pass
    return opened


def notes(session: Session, statement: str) -> list[str]:
    [result] = session.run(statement)
    return list(result.notes)


def test_columns_with_unfit_values_are_left_out_with_notes(session: Session, dialect: str) -> None:
    assert notes(session, f"SELECT * FROM visits {TREES} LABEL y INTO m") == NOTES[dialect]
    evaluated, described = session.run("SELECT x, y FROM visits TO EVALUATE m; DESCRIBE MODEL m")
    assert any("trained m@1" in note for note in evaluated.notes), "the rows of the training are found again"
    left_out = [row["name"] for row in described.to_arrow().to_pylist() if row["section"] == "left out"]
    assert left_out == ["Paid", "until"]


@pytest.mark.parametrize("session", ["pin=file"], indirect=True)
def test_rows_that_are_copied_into_a_file_lack_these_columns(session: Session, dialect: str) -> None:
    assert notes(session, f"SELECT * FROM visits {TREES} LABEL y INTO m") == NOTES[dialect]


def test_a_plan_without_a_training_leaves_them_out_too(session: Session, dialect: str) -> None:
    [result] = session.compile(f"SELECT * FROM visits {TREES} LABEL y INTO m")
    assert sorted(result.notes) == NOTES[dialect]


@pytest.mark.soak
def test_a_search_leaves_them_out_too(session: Session, dialect: str) -> None:
    statement = "SELECT * FROM visits LABEL y INTO m WITH auto.trials = 2"
    found = [note for note in notes(session, statement) if "left out: it holds" in note]
    assert sorted(found) == NOTES[dialect]


def test_validation_rows_with_unfit_values_leave_their_columns_out(session: Session, dialect: str) -> None:
    trained_on = "SELECT * FROM visits WHERE x NOT IN (0, 3, 4)"
    statement = f"{trained_on} {TREES} LABEL y VALIDATE ON (SELECT * FROM visits WHERE x IN (0, 3, 4)) INTO m"
    assert sorted(notes(session, statement)) == NOTES[dialect]


def test_of_several_such_columns_those_that_a_clause_names_are_an_error(
    session: Session, dialect: str
) -> None:
    held = {"postgres": "infinity", "mysql": "0000-00-00"}[dialect]
    with pytest.raises(UnfitValueError, match=f"column until holds '{held}'") as error:
        notes(session, "SELECT * FROM visits TO TRAIN BoostedTreesRegressor COLUMN until LABEL y INTO m")
    assert list(error.value.columns) == ["until"]


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
def test_a_label_with_an_unfit_value_is_an_error(session: Session) -> None:
    with pytest.raises(UnfitValueError, match="column Paid holds 'NaN'"):
        notes(session, f'SELECT * FROM visits {TREES} LABEL "Paid" INTO m')
