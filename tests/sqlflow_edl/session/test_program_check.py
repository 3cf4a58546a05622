"""The check of a program before its first statement runs: all errors at once, and no error where none is certain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.errors import ErrorList, SQLFlowError
from edl.models.registry.records import ModelRecord
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session

FORECAST = Path(
    "tests/fixtures/museum/models/forecast_trees.zip"
)  # of day, store and promo; sold is predicted

TABLES = "CREATE TABLE t AS SELECT range AS x, range * 2.5 AS y FROM range(30);"
TRAIN = "SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO m;"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(f"duckdb:///{tmp_path}/x.duckdb", create=True) as session:
        session.source.execute(TABLES.rstrip(";"))
        session.source.execute("CREATE VIEW v AS SELECT x FROM t")
        yield session


def found(session: Session, text: str) -> list[str]:
    """The messages about all statements of the program."""
    errors: list[SQLFlowError] = []
    for each in session.problems(session.read(text)):
        if each is not None:
            errors += each.errors if isinstance(each, ErrorList) else (each,)
    return [error.message for error in errors]


def test_errors_of_all_statements_are_found_at_once(session: Session) -> None:
    text = f"""
        SELECT x, y FROM t TO TRAIN DNNRegresor LABEL z INTO n;
        SELECT x FROM t TO PREDICT USING nothing;
        SELECT x FROM t TO EVALUATE;
        {TRAIN}
        SELECT x FROM t TO PREDICT USING m WITH predict.batchsize = 3;
    """
    assert found(session, text) == [
        "unknown model DNNRegresor",
        "unknown column z",
        "there is no model nothing",
        "unexpected end of the statement after EVALUATE",
        "unknown attribute predict.batchsize",
    ]


def test_attributes_are_checked_where_columns_are_not_known_yet(session: Session) -> None:
    text = """
        CREATE TABLE new AS SELECT 1 AS x;
        SELECT x FROM new TO MAXIMIZE SUM(y) WITH variables = 'y(x)', var_typ = Reals USING glkp
    """
    assert found(session, text) == [
        "the statement needs var_type",
        "unknown attribute var_typ",
        "there is no solver glkp",
    ]


def test_metrics_that_do_not_exist_are_found_before_rows_are_read(session: Session) -> None:
    text = (
        "SELECT 1; SELECT x, y FROM t TO TRAIN DNN WITH validation.metrics = 'rmse, acuracy' LABEL y INTO m"
    )
    assert found(session, text) == ["there is no metric acuracy"]


@pytest.mark.soak
def test_an_error_has_its_place_in_the_program(session: Session) -> None:
    text = f"SELECT 1; {TRAIN} SELECT x FROM t TO PREDICT USING nothing"
    [error] = [each for each in session.problems(session.read(text)) if each is not None]
    assert error.span is not None
    assert text[error.span.start : error.span.end] == "nothing"


def test_nothing_runs_where_a_later_statement_has_an_error(session: Session) -> None:
    with pytest.raises(SQLFlowError, match="there is no model nothing"):
        list(session.run("CREATE TABLE made (a INT); SELECT x FROM t TO PREDICT USING nothing"))
    assert "made" not in session.source.tables()


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    "program",
    [
        f"CREATE TABLE new AS SELECT x AS q, y FROM t; {TRAIN.replace('FROM t', 'FROM new').replace('x,', 'q,')}",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS q; SELECT q, q AS p FROM t TO TRAIN DNNRegressor LABEL p INTO m",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS q; SELECT * FROM v TO TRAIN DNNRegressor LABEL q INTO m",
        "ALTER TABLE t ADD COLUMN q INT; SELECT x, q FROM t TO TRAIN DNNRegressor LABEL q INTO m",
        "DROP TABLE IF EXISTS t; CREATE TABLE t (q INT); SELECT q, 1 AS p FROM t TO TRAIN DNN LABEL p INTO m",
        "ATTACH ':memory:' AS other; SELECT * FROM other.q TO TRAIN DNN LABEL p INTO m",
        "CREATE MACRO f(a) AS a + 1; SELECT f(x) AS p, y FROM t TO TRAIN DNN LABEL y INTO m",
        "ATTACH 'other.duckdb' AS other; USE other; SELECT x FROM t TO PREDICT USING of_that_database",
        f"{TRAIN} SELECT x FROM t TO PREDICT p.y USING m; SELECT * FROM p TO EVALUATE m",
        f"{TRAIN} SHOW TRAIN m; SHOW CURVE m; DESCRIBE MODEL m; DROP MODEL m; DROP MODEL IF EXISTS nothing",
        f"{TRAIN} SELECT * FROM t TO TRAIN DNNRegressor WITH model.units = 3 LABEL y USING m INTO n",
        f"{TRAIN} SET MODEL m ACTIVE 1",
        f"{TRAIN} SET MODEL m TAG best 1; SHOW TRAIN m@best; DROP MODEL m TAG best",
        f"{TRAIN} DROP MODEL m; {TRAIN} SELECT x FROM t TO PREDICT USING m",
        "SELECT no_such_column FROM t; SELECT 1",
    ],
)
def test_what_may_be_right_when_it_runs_is_no_error(session: Session, program: str) -> None:
    assert found(session, program) == []


def test_columns_are_checked_where_an_earlier_statement_changes_another_table(session: Session) -> None:
    program = "DROP TABLE IF EXISTS u; CREATE TABLE u (a INT); SELECT x, y FROM t TO TRAIN DNN LABEL z INTO m"
    assert found(session, program) == ["unknown column z"]


def test_clauses_are_checked_where_the_columns_are_not_known_yet(session: Session) -> None:
    program = (
        "CREATE TABLE u AS SELECT * FROM t; SELECT * FROM u TO TRAIN DNNRegressor WITH train.epochs = 0 "
        "COLUMN bucketise(x, 3), BUCKETIZE(x, 'many'), VOCABULARIZE() LABEL y INTO m"
    )
    assert found(session, program) == [
        "train.epoch = 0 is out of range",
        "unknown function bucketise",
        "BUCKETIZE's num_buckets must be a whole number from 2 to 100,000",
        "VOCABULARIZE lacks its x",
    ]


def test_a_misspelt_model_of_the_program_is_named(session: Session) -> None:
    program = f"{TRAIN.replace('INTO m', 'INTO my_model')} SELECT x FROM t TO PREDICT USING my_modle"
    [error] = [each for each in session.problems(session.read(program)) if each is not None]
    assert error.hint == "did you mean my_model, which an earlier statement trains?"


def test_a_dropped_model_cannot_be_used(session: Session) -> None:
    program = f"{TRAIN} DROP MODEL m; SELECT x FROM t TO PREDICT USING m"
    assert found(session, program) == ["the model m is dropped by an earlier statement"]


def test_a_run_reports_all_errors_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bad.sql"
    program.write_text(f"{TABLES}\nSELECT 1 AS x TO PREDICT USING nothing;\nDROP MODEL neither;\n")
    url = f"duckdb:///{tmp_path}/x.duckdb"
    assert main(["run", "--source", url, "--create", str(program)]) == 1
    said = capsys.readouterr().err
    assert "bad.sql:2:32" in said
    assert "bad.sql:3:12" in said
    assert "2 of 3 statements have errors: nothing has run" in said
    assert "START" not in said


def test_a_run_that_goes_on_runs_what_has_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"duckdb:///{tmp_path}/x.duckdb"
    program = f"{TABLES} SELECT 1 AS x TO PREDICT p.y USING nothing; SELECT * FROM p; SELECT COUNT(*) FROM t"
    assert main(["run", "--source", url, "--create", "--on-error", "continue", "-e", program]) == 1
    said = capsys.readouterr().err
    assert said.count("there is no model nothing") == 1
    assert said.index("there is no model nothing") < said.index("1 of 4 START")
    assert "2 of 4 ERROR PREDICT p.y USING nothing: its errors are reported above" in said
    assert "3 of 4 SKIP  SELECT: the table p is made by statement 2, which has errors" in said
    assert "Done. OK=2 ERROR=1 SKIP=1 TOTAL=4" in said


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'2024-05-01' AS day, 1.0 AS sold", "day is of type string, and the time of a series is a date"),
        ("20240501 AS day, 1.0 AS sold", "day is a whole number, and was a date or timestamp in training"),
        (
            "DATE '2024-05-01' AS day, 'many' AS sold",
            "column sold is of type string where a number is needed",
        ),
        ("DATE '2024-05-01' AS day, NULL::VARCHAR AS sold", ""),
        ("TIMESTAMP '2024-05-01' AS day, true AS sold", ""),
    ],
)
@pytest.mark.parametrize("use", ["PREDICT USING f", "EVALUATE f"])
def test_time_and_label_of_a_forecast_have_types_of_use(
    session: Session, columns: str, message: str, use: str
) -> None:
    session.registry.save("f", FORECAST, ModelRecord("Forecast", "lightgbm", 1, {}, ""))
    errors = found(session, f"SELECT 1; SELECT {columns}, 'a' AS store, true AS promo TO {use}")
    assert [each.startswith(message) for each in errors] == [True] * bool(message)
