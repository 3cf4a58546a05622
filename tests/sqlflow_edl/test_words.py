"""Statements in the words of SQLFlow and of BigQuery ML: nearly all run as they are written.

The others are answered by an error with a whole statement that does the same, or with the reason why there is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.errors import ErrorList, SQLFlowError
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import parse
from tests.engine import write_engine
from tests.sessions import open_in_folder
from tests.sql_cases import FIXTURES, Case, cases

FILES = ("words/bigquery_ml.sql", "words/sqlflow.sql", "words/more.sql")
CASES = [case for file in FILES for case in cases(file) if case.dialect == "duckdb"]
ANSWERED = [case for case in CASES if {"instead", "why"} & {*case.fields}]
RUN = [case for case in CASES if case not in ANSWERED]
LEAST, SHARE = 150, 0.95


def read(name: str) -> str:
    return (FIXTURES / "words" / name).read_text("utf-8")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("tables")) as opened:
        opened.run(read("tables.sql"))
        yield opened


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("words")) as opened:
        opened.run(read("tables.sql"))
        opened.run(read("models.sql"))
        yield opened


def test_nearly_all_statements_run_as_they_are_written() -> None:
    assert len(CASES) >= LEAST
    assert len(RUN) >= SHARE * len(CASES)
    assert len({case.title for case in CASES}) >= LEAST


def test_a_statement_that_runs_is_read_without_an_error() -> None:
    for case in RUN:
        assert parse(case.program), case.title


def trains(case: Case) -> bool:
    """True if the case trains a model from tables alone."""
    [*statements] = parse(case.program)
    return len(statements) == 1 and statements[0].trains and statements[0].using is None


@pytest.mark.variants(15)
@pytest.mark.parametrize("case", [case for case in RUN if trains(case)], ids=lambda case: case.title)
def test_a_training_is_planned(case: Case, tables: Session) -> None:
    [statement] = parse(case.program)
    assert tables.plan(statement).to_arrow().num_rows


@pytest.mark.soak
@pytest.mark.parametrize("case", RUN, ids=lambda case: case.title)
def test_a_statement_runs(
    case: Case, session: Session, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where files of models are written
    write_engine(tmp_path, repository, FIXTURES / "words")  # in place of docker
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SQLFLOW_IMAGES", "sqlflow/")
    for program in (case.fields.get("needs", ""), case.program):
        for result in session.run(program):
            assert result.message or result.to_arrow().num_columns


@pytest.mark.soak
@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.title)
def test_another_statement_is_answered_with_what_does_the_same(case: Case, session: Session) -> None:
    session.run(case.fields.get("needs", ""))
    with pytest.raises(SQLFlowError) as raised:
        session.run(case.program)
    errors = raised.value.errors if isinstance(raised.value, ErrorList) else (raised.value,)
    if "why" in case.fields:
        assert case.fields["why"] in f"{errors[0].message}; {errors[0].hint}"
        return
    assert errors[-1].corrected == case.fields["instead"]
    [statement] = session.parse(case.fields["instead"])
    assert session.plan(statement).to_arrow().num_rows
