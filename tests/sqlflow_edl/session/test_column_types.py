"""Types and columns of a query against its model: errors before any process starts, with what made them in training."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.session.session import Session
from tests.databases import Databases

TABLE = (
    "CREATE TABLE raw (id INTEGER, spend VARCHAR(20), city VARCHAR(20), y INTEGER)",
    "INSERT INTO raw VALUES (1, '1.5', 'a', 1), (2, '2.5', 'b', 2), (3, '3.5', 'a', 3), (4, '4.5', 'b', 4)",
)
DAY = "'2026-01-31'"
VISITS = (
    "CREATE TABLE visits (customer BIGINT, was_float DOUBLE PRECISION, day DATE, arrived TIMESTAMP, y INTEGER)",
    f"INSERT INTO visits VALUES {', '.join(f'({2**53 + n}, {2**53 + n}, {DAY}, {DAY}, {n % 3})' for n in range(4))}",
)
SELECT = "SELECT CAST(spend AS DECIMAL(10, 2)) AS spend, city, id * 2 AS twice, y FROM raw"
TRAIN = f"{SELECT} TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m"
TRAIN_VISITS = (
    "SELECT customer, day, y FROM visits TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 "
    "COLUMN VOCABULARIZE(customer), HASH(day, 10) LABEL y INTO of_visits"
)


@pytest.fixture(scope="module")
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """With a model that was trained on a text made a number, a computed number and a text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session(databases.url(request.param), create=True) as found:
            for sql in (*TABLE, *VISITS):
                found.source.execute(sql)
            list(found.run(f"{TRAIN}; {TRAIN_VISITS}"))
            yield found


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    """No job starts in these tests."""

    def refuse(*arguments: object, **settings: object) -> None:
        raise AssertionError("a job started")

    monkeypatch.setattr(Submitter, "warm", refuse)
    monkeypatch.setattr(Submitter, "run", refuse)


def error_of(session: Session, text: str, *, plans: bool = False) -> SQLFlowError:
    [statement] = session.parse(text)
    with pytest.raises(SQLFlowError) as raised:
        (session.plan if plans else session.execute)(statement)
    return raised.value


on_databases = pytest.mark.parametrize(
    "session",
    ["duckdb", *(pytest.param(name, marks=pytest.mark.soak) for name in ("sqlite", "mysql", "postgres"))],
    indirect=True,
)


@pytest.mark.variants(2)
@on_databases
@pytest.mark.parametrize("use", ["EVALUATE m", "PREDICT USING m", "EXPLAIN m"])
@pytest.mark.parametrize("plans", [False, True])
def test_a_text_for_a_number_is_found_with_the_cast_of_the_training(
    session: Session, use: str, plans: bool
) -> None:
    text = f"SELECT spend, city, id * 2 AS twice, y FROM raw TO {use}"
    error = error_of(session, text, plans=plans)
    assert "column spend is of type string where a number is needed" in error.message
    assert error.hint is not None
    assert error.hint.startswith("the training selected CAST(spend AS DECIMAL(10, 2)) AS spend")
    assert error.span is not None
    assert text[error.span.start : error.span.end] == "spend"


@on_databases
def test_so_it_is_where_the_model_is_trained_further(session: Session) -> None:
    text = "SELECT spend, city, id * 2 AS twice, y FROM raw TO TRAIN BoostedTreesRegressor LABEL y USING m INTO n"
    error = error_of(session, text, plans=True)  # a process that waits for the job may have started
    assert "column spend is of type string where a number is needed" in error.message
    assert error.hint == "the training selected CAST(spend AS DECIMAL(10, 2)) AS spend"


@on_databases
def test_a_missing_column_is_found_with_its_expression_in_the_training(session: Session) -> None:
    error = error_of(session, "SELECT CAST(spend AS DECIMAL(10, 2)) AS spend, city, y FROM raw TO EVALUATE m")
    assert "twice" in error.message
    assert error.hint == "the training selected id * 2 AS twice"


@on_databases
def test_a_label_of_another_type_is_found_in_evaluation_alone(session: Session) -> None:
    text = SELECT.replace(", y FROM", ", city AS y FROM")
    error = error_of(session, f"{text} TO EVALUATE m")
    assert "column y is of type string where a number is needed" in error.message
    [statement] = session.parse(f"{text} TO PREDICT USING m")
    session.plan(statement)


@on_databases
@pytest.mark.parametrize(
    "columns",
    [
        "spend * 1.0 AS spend, city, id AS twice, y",  # of other types of numbers
        "CAST(id AS DECIMAL(4, 1)) AS spend, id AS city, id AS twice, y",  # a number as a category
        "NULL AS spend, NULL AS city, NULL AS twice, y",  # of whatever type the database gives to NULL
    ],
)
def test_what_the_features_can_read_is_no_error(session: Session, columns: str) -> None:
    source = "(SELECT id, CAST(spend AS DECIMAL(10, 2)) AS spend, city, y FROM raw) AS q"
    [statement] = session.parse(f"SELECT {columns} FROM {source} TO EVALUATE m")
    session.plan(statement)


@on_databases
def test_large_ids_are_refused_as_floats_that_may_stand_for_several_ids(session: Session) -> None:
    text = "SELECT was_float AS customer, day FROM visits TO PREDICT USING of_visits"
    error = error_of(session, text)
    assert "customer has ids above 2^53 as floating-point numbers" in error.message
    for customer in ("customer", "1.5e0 AS customer"):  # the latter cannot have been rounded
        [statement] = session.parse(text.replace("was_float AS customer", customer))
        session.plan(statement)


@on_databases
def test_a_day_as_a_time_is_refused_where_it_is_a_category(session: Session) -> None:
    text = "SELECT customer, arrived AS day FROM visits TO PREDICT USING of_visits"
    if session.source.dialect == "sqlite":  # has one type for both, of which the declared one decides
        return
    error = error_of(session, text)
    assert error.message.startswith("day is of type timestamp")
    assert "and was date32[day] in training" in error.message


@on_databases
def test_a_program_is_refused_before_its_first_statement_runs(session: Session) -> None:
    [_, error] = session.problems(
        session.read("SELECT 1; SELECT spend, city, id AS twice, y FROM raw TO EVALUATE m")
    )
    assert error is not None
    assert "column spend" in error.message
