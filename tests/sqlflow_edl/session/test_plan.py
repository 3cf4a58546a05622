"""Plans of statements that the database refuses, and gets rewritten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl.errors import SourceError, SQLFlowError
from sqlflow_edl.session.session import Session


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("duckdb:") as opened:
        yield opened


def plan(session: Session, query: str) -> list[dict[str, str]]:
    [statement] = session.parse(query)
    return session.plan(statement).to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT ML.DISTANCE([1.0, 2.0], [2.0, 3.0], 'COSINE') AS d", ["d"]),
        ("SELECT model_name, model_type FROM INFORMATION_SCHEMA.MODELS", ["model_name", "model_type"]),
    ],
)
def test_a_plan_describes_the_query_that_the_database_gets(
    session: Session, query: str, columns: list[str]
) -> None:
    first, *rows = plan(session, query)
    assert "as ordinary SQL" in str(first)
    assert [row["name"] for row in rows] == columns


def test_a_plan_and_a_run_refuse_a_function_in_the_same_words(session: Session) -> None:
    query = "SELECT AI.GENERATE('hello')"
    with pytest.raises(SQLFlowError) as planned:
        plan(session, query)
    with pytest.raises(SQLFlowError) as run:
        list(session.run(query))
    assert (planned.value.message, planned.value.hint) == (run.value.message, run.value.hint)


def test_a_query_of_no_model_keeps_the_error_of_the_database(session: Session) -> None:
    with pytest.raises(SourceError, match="nothing_there"):
        plan(session, "SELECT * FROM nothing_there")
