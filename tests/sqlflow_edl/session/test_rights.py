"""Rights to write models and tables: asked for before any work, without an effect and outside of transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edl.data.source import MissingRightError
from edl.errors import SQLFlowError
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.cli.program.lint import problems_with_source
from sqlflow_edl.session.session import Session
from tests.mariadb import Server
from tests.postgresql import Server as PostgreSQL

TRAIN = "SELECT a, y FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2 LABEL y INTO m"  # 2 rounds
WRITES = [
    "SELECT a FROM t TO PREDICT guesses USING m",
    "SELECT a FROM t TO PREDICT t USING m APPEND",
    "SELECT a FROM t TO PREDICT elsewhere.guesses.y USING m",
    "SELECT a, y FROM t TO EVALUATE m INTO figures",
    "SELECT a FROM t TO EXPLAIN m INTO reasons",
    "SELECT a, y FROM t TO EVALUATE WITH evaluate.prediction = a LABEL y INTO figures",
]
READER = {
    "mysql": ["CREATE USER {0}@'127.0.0.1' IDENTIFIED BY 'x'", "GRANT SELECT ON {0}.* TO {0}@'127.0.0.1'"],
    "postgres": ["CREATE ROLE {0} LOGIN PASSWORD 'x'"],
}


@pytest.fixture(scope="module", params=["mysql", "postgres"])
def database(request: pytest.FixtureRequest) -> tuple[Server | PostgreSQL, str]:
    server: Server | PostgreSQL = request.getfixturevalue(
        "mariadb" if request.param == "mysql" else "postgresql"
    )
    return server, made(server, request.param)


def made(server: Server | PostgreSQL, dialect: str) -> str:
    """Make a database with a table, and an account of its name that may only read it."""
    name = server.database()
    server.run(*(each.format(name) for each in READER[dialect]))
    with Session(server.url(name)) as owner:
        owner.source.execute("CREATE TABLE t (a DOUBLE PRECISION, y DOUBLE PRECISION)")
        owner.source.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
        if owner.dialect == "postgres":
            owner.source.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
            owner.source.execute(
                f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {name}"
            )
    return name


@pytest.fixture
def reader(
    database: tuple[Server | PostgreSQL, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    """The session of an account that may only read."""
    server, name = database
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Session(server.url(name, user=name, password="x")) as session:  # noqa: S106
        yield session


@pytest.fixture
def owner(
    database: tuple[Server | PostgreSQL, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    server, name = database
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Session(server.url(name)) as session:
        yield session


def refused(run: Callable[[], object]) -> SQLFlowError:
    with pytest.raises(MissingRightError, match="denied") as raised:
        run()
    assert raised.value.span is not None
    return raised.value


def test_a_training_is_refused_in_its_plan_and_in_a_program(reader: Session) -> None:
    [statement] = reader.parse(TRAIN)
    for run in (reader.plan, reader.execute):
        error = refused(lambda run=run: run(statement))  # type: ignore[misc]
        assert "--model-store DIR keeps models in a folder" in (error.hint or "")
    [_, found] = reader.problems(reader.read(f"SELECT 1; {TRAIN}"))
    assert found is not None
    assert "denied" in found.message


@pytest.mark.variants(1)
def test_it_runs_with_a_model_store(
    database: tuple[Server | PostgreSQL, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, name = database
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = str(tmp_path / "models")
    with Session(server.url(name, user=name, password="x"), model_store=store) as session:  # noqa: S106
        [statement] = session.parse(TRAIN)
        session.plan(statement)


@pytest.mark.soak
def test_a_result_table_is_refused_before_a_job_starts(
    owner: Session, reader: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(owner.run(TRAIN))
    monkeypatch.delattr(Submitter, "run")
    for text in WRITES:
        [statement] = reader.parse(text)
        for run in (reader.plan, reader.execute):
            error = refused(lambda run=run, statement=statement: run(statement))  # type: ignore[misc]
            assert "sqlflow run -o FILE.csv" in (error.hint or "")
    [statement] = reader.parse(TRAIN)
    refused(lambda: reader.plan(statement))  # now that there are tables of models
    refused(lambda: reader.execute(statement))


MAKES = {
    "mysql": "GRANT CREATE, INSERT, UPDATE, DELETE ON {0}.* TO {0}@'127.0.0.1'",
    "postgres": 'GRANT CREATE, USAGE ON SCHEMA public TO "{0}"',
}


def test_a_result_is_refused_to_an_account_that_may_not_replace_the_table(
    database: tuple[Server | PostgreSQL, str], owner: Session
) -> None:
    server, dialect = database[0], owner.dialect
    name = made(server, dialect)
    with Session(server.url(name)) as first, Session(server.url(name, user=name, password="x")) as second:  # noqa: S106
        list(first.run(WRITES[-1]))
        grants = [MAKES[dialect].format(name)]
        if (
            dialect == "postgres"
        ):  # where who makes a table has all rights on it, and its owner alone replaces it
            tables = ("sqlflow_edl_staged", "sqlflow_edl_results", "figures")
            grants += [f"GRANT ALL ON {table} TO {name}" for table in tables]
        for grant in grants:
            first.source.execute(grant) if dialect == "postgres" else server.run(grant)
        [statement] = second.parse(WRITES[-1])
        error = refused(lambda: second.plan(statement))
        assert "DROP, ALTER command denied" in error.message or "figures belongs to" in error.message
        if dialect == "postgres":
            [statement] = second.parse(WRITES[-1].replace("figures", "others"))
            second.plan(statement)


def test_who_may_write_is_not_refused_and_nothing_is_made(owner: Session) -> None:
    before = owner.source.tables()
    for text in (TRAIN, WRITES[-1], WRITES[-1].replace("figures", "elsewhere.figures")):
        [statement] = owner.parse(text)
        owner.plan(statement)
    assert owner.source.tables() == before
    assert "elsewhere" not in owner.source.databases()


@pytest.mark.variants(1)
def test_a_transaction_of_the_user_stays_open(owner: Session, reader: Session) -> None:
    [statement] = owner.parse(WRITES[-1])
    for session in (owner, reader):
        session.source.execute("BEGIN")
    owner.source.execute("INSERT INTO t VALUES (9, 9)")
    owner.plan(statement)
    refused(lambda: reader.plan(statement))
    assert reader.source.stream("SELECT a FROM t WHERE a = 9").read_all().num_rows == 0
    for session in (owner, reader):
        session.source.execute("ROLLBACK")
    assert owner.source.stream("SELECT a FROM t").read_all().num_rows == 4


def test_lint_does_not_ask_as_another_account_runs_the_program(reader: Session) -> None:
    assert [
        each for each in problems_with_source(f"{TRAIN}; {WRITES[-1]}", reader) if each.severity == "error"
    ] == []
