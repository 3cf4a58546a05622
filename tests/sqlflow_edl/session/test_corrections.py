"""The whole statement that is meant, in errors that the tables, models and values of the source explain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.errors import ErrorList, SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import Databases

TABLES = """
CREATE TABLE people AS SELECT
    ['basic', 'pro', 'premium'][i % 3 + 1] AS plan, i % 50 AS tenure, i * 1.5 AS spend, i % 4 = 0 AS churned,
    DATE '2021-01-01' + i::INT AS signup, strftime(DATE '2021-01-01' + (i % 25)::INT, '%d.%m.%Y') AS since,
    i % 9 AS "customer since", i % 2 AS "Returned?" FROM range(200) AS r(i);
CREATE TABLE fresh AS SELECT plan, tenure FROM people;
CREATE TABLE texts AS SELECT * REPLACE (tenure || ' months' AS tenure) FROM people;
SELECT plan, tenure, spend, churned FROM people TO TRAIN BoostedTreesClassifier WITH train.epoch = 2
LABEL churned INTO churn;
"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("duckdb:") as opened:
        for result in opened.run(TABLES):
            result.to_arrow()
        yield opened


def errors_of(session: Session, statement: str) -> tuple[SQLFlowError, ...]:
    with pytest.raises(SQLFlowError) as raised:
        if "TRAIN" in statement or "LABEL" in statement or "CREATE" in statement:
            session.compile(statement)
        else:
            for result in session.run(statement):
                result.to_arrow()
    error = raised.value
    return error.errors if isinstance(error, ErrorList) else (error,)


_TRAIN = "TO TRAIN DNNClassifier"
MEANT = [
    (
        f"SELECT * FROM people {_TRAIN}s LABEL churned INTO m",
        f"SELECT * FROM people {_TRAIN} LABEL churned INTO m",
    ),
    (
        "SELECT * FROM people TO TRAIN BoostedTreeClassifier LABEL churned INTO m",
        "SELECT * FROM people TO TRAIN BoostedTreesClassifier LABEL churned INTO m",
    ),
    (
        "SELECT plan, tenure FROM people TO TRAIN DNNRegressor LABEL plan INTO m",
        "SELECT plan, tenure FROM people TO TRAIN DNNClassifier LABEL plan INTO m",
    ),
    (
        f"SELECT * FROM people {_TRAIN} WITH model.hidden_units = [10 20] LABEL churned INTO m",
        f"SELECT * FROM people {_TRAIN} WITH model.hidden_units = [10, 20] LABEL churned INTO m",
    ),
    (
        f"SELECT * FROM people {_TRAIN} INTO m",
        f"SELECT * FROM people {_TRAIN} LABEL churned INTO m",
    ),
    (
        f"SELECT * FROM people {_TRAIN}, LABEL churned INTO m",
        f"SELECT * FROM people {_TRAIN} LABEL churned INTO m",
    ),
    (
        "SELECT plan, tenure FROM fresh LABEL INTO m",
        "SELECT plan, tenure FROM fresh LABEL tenure INTO m",
    ),
    (
        "SELECT * FROM people TO TRAIN LABEL churned INTO m",
        "SELECT * FROM people LABEL churned INTO m",
    ),
    (
        "SELECT tenure FROM people LABEL churned INTO m",
        "SELECT tenure, churned FROM people LABEL churned INTO m",
    ),
    (
        "SELECT tenure FROM people TO PREDICT USING churn",
        "SELECT tenure, plan, spend FROM people TO PREDICT USING churn",
    ),
    (
        "SELECT tenure FROM people TO EVALUATE churn",
        "SELECT tenure, churned, plan, spend FROM people TO EVALUATE churn",
    ),
    (
        "SELECT * FROM fresh TO EVALUATE churn",
        "SELECT *, CAST(NULL AS DOUBLE) AS spend FROM fresh TO PREDICT USING churn",
    ),
    (
        "SELECT * FROM texts TO EVALUATE churn",
        (
            "SELECT * REPLACE (CAST(regexp_extract(tenure, '[0-9]+([.][0-9]+)?') AS BIGINT) AS tenure) "
            "FROM texts TO EVALUATE churn"
        ),
    ),
    ("SELECT * FROM people TO PREDICT churn", "SELECT * FROM people TO PREDICT USING churn"),
    ("SELECT * FROM people TO EVALUATE people", "SELECT * FROM people TO EVALUATE churn"),
    (
        "SELECT * FROM people TO TRAIN people LABEL churned INTO m",
        "SELECT * FROM people LABEL churned INTO m",
    ),
    (
        f"SELECT * FROM people WHERE plan = 'Basic' {_TRAIN} LABEL churned INTO m",
        f"SELECT * FROM people WHERE plan = 'basic' {_TRAIN} LABEL churned INTO m",
    ),
    (
        f"SELECT * FROM people WHERE since = '2021-01-09' {_TRAIN} LABEL churned INTO m",
        f"SELECT * FROM people WHERE since = '09.01.2021' {_TRAIN} LABEL churned INTO m",
    ),
    (
        "SELECT plan FROM people WHERE signup > '01.06.2021'",
        "SELECT plan FROM people WHERE signup > '2021-06-01'",
    ),
    ("SELECT avg(churned) FROM people", "SELECT avg(churned::INT) FROM people"),
    (
        f"SELECT * FROM people {_TRAIN} WITH test_size = 0.2, epoch = 'ten', nonsense = 1 LABEL churned INTO m",
        f"SELECT * FROM people {_TRAIN} WITH validation.fraction = 0.2, epoch = 10 LABEL churned INTO m",
    ),
    (
        "CREATE MODEL m OPTIONS(model_type = 'LINEAR_REG') AS SELECT plan, tenure FROM people",
        (
            "CREATE MODEL m OPTIONS(model_type = 'LINEAR_REG', input_label_cols = ['tenure']) "
            "AS SELECT plan, tenure FROM people"
        ),
    ),
]


@pytest.mark.variants(3)
@pytest.mark.parametrize(("statement", "meant"), MEANT, ids=[statement for statement, _ in MEANT])
def test_an_error_has_the_whole_statement_that_is_meant(session: Session, statement: str, meant: str) -> None:
    errors = errors_of(session, statement)
    assert errors[-1].corrected == meant
    if "TRAIN" in meant or "LABEL" in meant or "CREATE" in meant:
        assert session.compile(meant)
    else:
        for result in session.run(meant):
            result.to_arrow()


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("SELECT * FROM people WHERE customer since > 5", '"customer since" > 5'),
        ("SELECT * FROM people LABEL Returned? INTO m", 'LABEL "Returned?" INTO m'),
    ],
)
def test_a_column_that_is_not_one_word_gets_quotes(session: Session, statement: str, meant: str) -> None:
    error = errors_of(session, statement)[-1]
    assert meant in (error.hint or "")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT nowhere FROM people",  # of which nothing is near
        f"SELECT count(*) AS n FROM people {_TRAIN} LABEL churned INTO m",  # a column would change the rows
        f"SELECT * FROM people {_TRAIN} WITH train.epoch = 0 LABEL churn_ed_at_all INTO m",  # one error stays
        f"SELECT * FROM people WHERE tenure > 10 AND tenure < 5 {_TRAIN} LABEL churned INTO m",
    ],
)
def test_no_statement_is_offered_where_none_is_known_to_be_right(session: Session, statement: str) -> None:
    assert all(not error.corrected for error in errors_of(session, statement))


def test_a_source_without_models_says_so_and_what_trains_one() -> None:
    with Session("duckdb:") as empty:
        for result in empty.run("CREATE TABLE t AS SELECT i AS x, i % 2 AS y FROM range(9) AS r(i);"):
            result.to_arrow()
        error = errors_of(empty, "SELECT x FROM t TO PREDICT p.y USING nothing")[0]
    assert "keeps no models" in str(error.hint)
    assert error.corrected == "SELECT * FROM t LABEL y INTO nothing"


def test_a_store_without_models_is_named_by_its_option(tmp_path: Path) -> None:
    with Session("duckdb:", model_store=str(tmp_path)) as empty:
        error = errors_of(empty, "SELECT 1 AS x TO PREDICT p.y USING nothing")[0]
    assert "keeps no models: give the --model-store that has it" in str(error.hint)


def test_the_caret_is_below_the_word_that_is_wrong(session: Session) -> None:
    statement = "SELECT * FORM people"
    [error] = errors_of(session, statement)
    assert error.span is not None
    assert statement[error.span.start : error.span.end] == "FORM"


def test_nothing_is_looked_at_in_a_transaction_of_the_user(databases: Databases) -> None:
    """A query that fails would undo what the transaction has written."""
    with Session(databases.url("postgres")) as opened:
        for result in opened.run("CREATE TABLE people (plan TEXT, churned BOOLEAN); BEGIN;"):
            result.to_arrow()
        for result in opened.run("INSERT INTO people VALUES ('basic', TRUE), ('pro', FALSE)"):
            result.to_arrow()
        [error] = errors_of(
            opened, "SELECT * FROM people WHERE plan = 'Basic' TO TRAIN DNNClassifier LABEL churned INTO m"
        )
        assert not error.corrected
        assert [result.to_arrow() for result in opened.run("COMMIT")]
        [count] = [result.to_arrow() for result in opened.run("SELECT count(*) AS n FROM people")]
    assert count["n"].to_pylist() == [2]
