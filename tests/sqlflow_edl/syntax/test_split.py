"""Programs are cut at the semicolons that end a statement, and nowhere else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.split import split
from tests.sql_cases import cases
from tests.texts import texts

PROGRAMS = [case.program for case in cases("syntax/statements.sql") if case.dialect == "duckdb"]
FRAGMENTS = (
    *("'", '"', "`", "\\", "--", "#", "/*", "*/", "\n", " ", ";", "(", ")", "$$", "SELECT 1 ", "FROM t "),
    *("TO ", "TRAIN ", "LABEL c ", "INTO m ", "WITH x = 'a;b' ", "EXPLAIN ", "VALIDATE ON ("),
    *("CREATE TRIGGER BEGIN ", "END"),
)


@pytest.mark.variants(2)
@pytest.mark.parametrize("dialect", DIALECTS)
@given(parts=st.lists(st.one_of(st.sampled_from(FRAGMENTS), texts(max_size=3)), max_size=12))
def test_the_pieces_put_together_are_the_program(dialect: str, parts: list[str]) -> None:
    program = "".join(parts)
    pieces = list(split(program, DIALECTS[dialect]))

    assert "".join(program[piece.raw.start : piece.raw.end] for piece in pieces) == program
    for piece in pieces:
        assert piece.raw.start <= piece.span.start <= piece.span.end <= piece.raw.end
        assert (
            program[piece.span.start : piece.span.end].strip() == program[piece.span.start : piece.span.end]
        )


@pytest.mark.soak
@given(programs=st.lists(st.sampled_from(PROGRAMS), min_size=1, max_size=4))
def test_programs_in_a_row_have_the_statements_of_each(programs: list[str]) -> None:
    def last_lines(program: str) -> list[str]:
        """Last line of each statement; the comments in front of a statement may belong to the one before."""
        pieces = [piece for piece in split(program, DIALECTS["duckdb"]) if not piece.empty]
        return [program[piece.span.start : piece.span.end].split("\n")[-1] for piece in pieces]

    assert last_lines("\n;\n".join(programs)) == [line for each in programs for line in last_lines(each)]


def test_a_piece_knows_its_query_and_its_clauses() -> None:
    program = "SELECT 1; EXPLAIN SELECT 2 TO TRAIN m; SELECT 3 PREDICT x USING m"
    sql, plan, bare = split(program, DIALECTS["duckdb"])

    assert sql.clauses is None
    assert plan.plan
    assert plan.query
    assert plan.clauses
    assert program[plan.query.start : plan.query.end] == "SELECT 2"
    assert program[plan.clauses[0].start :].startswith("TO TRAIN m;")
    assert bare.bare
    assert (sql.ended, plan.ended, bare.ended) == (True, True, False)


@pytest.mark.soak
@pytest.mark.parametrize(
    "statement",
    [
        "select a, b, 'x;y' from t where c = 3 -- foo; bar\n;\n",
        *(
            pytest.param(statement, marks=pytest.mark.soak)
            for statement in (
                "SELECT a label FROM t UNION ALL\n",
                "SELECT x TO TRAIN m WITH a='b;c' LABEL d INTO e;\n",
                "SELECT a LABEL b ",
            )
        ),
        "/* ; */ (",
    ],
)
def test_the_time_is_linear_in_the_text(statement: str) -> None:
    def seconds(characters: int) -> float:
        text = statement * (characters // len(statement))
        start = time.perf_counter()
        assert sum(1 for _ in split(text, DIALECTS["duckdb"])) >= 1
        return time.perf_counter() - start

    seconds(1_000)
    assert min(seconds(200_000) for _ in range(2)) < 12 * min(seconds(50_000) for _ in range(2)) + 0.2
