"""Syntax of what is passed on to the database: found before anything runs, and where the statement runs alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SourceError, SQLFlowError
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import Databases

MEANT = "did you mean FROM? SELECT a FROM given"


@pytest.fixture(params=["duckdb", "sqlite", "mysql", "postgres"])
def session(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Session:
    return databases.filled(request.param)


def test_nothing_runs_where_a_later_statement_has_wrong_syntax(session: Session) -> None:
    with pytest.raises(SQLFlowError) as raised:
        list(session.run("CREATE TABLE made_early (a INTEGER); SELECT a FORM given"))
    assert raised.value.hint == MEANT
    assert "made_early" not in session.source.tables()


def test_a_statement_that_runs_alone_and_its_plan_have_the_same_hint(session: Session) -> None:
    [statement] = session.parse("SELECT a FORM given")
    for run in (session.execute, session.plan):
        with pytest.raises(SourceError) as raised:
            run(statement)
        assert raised.value.hint == MEANT
        assert raised.value.span is not None


@pytest.mark.variants(2)
def test_so_has_the_query_of_a_training(session: Session) -> None:
    with pytest.raises(SourceError) as raised:
        list(session.run("SELECT a FORM given TO TRAIN DNN LABEL a INTO m"))
    assert raised.value.hint == "did you mean FROM? SELECT a FROM given TO TRAIN DNN LABEL a INTO m"


def test_so_has_the_query_of_its_validation_rows(session: Session) -> None:
    training = "SELECT a FROM given TO TRAIN DNN LABEL a VALIDATE ON (SELECT a {} given) INTO m"
    with pytest.raises(SourceError) as raised:
        list(session.run(f"CREATE TABLE made_early (a INTEGER); {training.format('FORM')}"))
    assert raised.value.hint == f"did you mean FROM? {training.format('FROM')}"
    assert "made_early" not in session.source.tables()


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "program",
    [
        "LOAD no_such_extension; a b c",
        "CALL enable_other_parser(); a b c",
        "SET no_such_parser = 1; a b c",
    ],
)
def test_what_an_earlier_statement_may_make_valid_is_left_to_run_time(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Session("duckdb:") as session:
        assert session.problems(session.read(program)) == [None, None]
    (tmp_path / "p.sql").write_text(program, encoding="utf-8")
    assert main(["lint", str(tmp_path / "p.sql")]) == 0
    main(["run", "--dry-run", str(tmp_path / "p.sql"), "--source", "duckdb:"])
    assert "syntax error" not in capsys.readouterr().err


def test_the_database_decides_about_a_select_that_sqlglot_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.sql").write_text(
        "SELECT a FROM t LIMIT 5, 10 TO TRAIN DNN LABEL a INTO m;\nSELECT x FROM (PIVOT t ON a USING count(*)) "
        "TO TRAIN DNN LABEL x INTO m;",
        encoding="utf-8",
    )
    assert main(["lint", str(tmp_path / "p.sql")]) == 0
    shown = capsys.readouterr()
    assert "p.sql:1:24: warning: Parser Error" in shown.out
    assert shown.err == "errors: 0, warnings: 1\n"


def test_a_dry_run_of_wrong_syntax_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["run", "--dry-run", "-e", "CREATE TABEL x AS SELECT 1", "--source", "duckdb:"]) == 1
    assert "CREATE TABLE x AS SELECT 1" in capsys.readouterr().err
