"""Layouts of programs: as the fixtures say, stable, and never with another meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.errors import SQLFlowError
from sqlflow_edl.syntax import layout
from sqlflow_edl.syntax.layout import laid_out
from tests.sql_cases import Case, cases, corpus

LAYOUTS = [case for case in cases("syntax/layout.sql") if case.dialect == "duckdb"]
ADDED = (" ", "\n", "/* c */", "-- c\n", "\r\n", "\t", "/* a\nb */", "--x\n  --y\n", "\r")
STATEMENTS = [case for case in cases("syntax/statements.sql") if case.dialect in ("duckdb", "mysql")]


def same(one: str, other: str) -> bool:
    """True if the texts differ in white space, capitals and the commas behind a last item alone."""
    words = (re.sub(r"[\s,]", "", text).casefold() for text in (one, other))
    return next(words) == next(words)


@pytest.mark.parametrize("case", LAYOUTS, ids=str)
def test_a_program_has_its_layout(case: Case) -> None:
    written, _, wanted = case.program.partition("\n=>\n")
    wanted = (wanted or written).rstrip() + "\n"
    assert laid_out(written, "duckdb") == wanted
    assert laid_out(wanted, "duckdb") == wanted


@pytest.mark.variants(30)
@pytest.mark.parametrize("case", STATEMENTS, ids=str)
def test_every_form_of_a_statement_keeps_its_words_and_its_layout(case: Case) -> None:
    found = laid_out(case.program, case.dialect)
    assert same(found, case.program)
    assert laid_out(found, case.dialect) == found


@pytest.mark.soak
@given(data=st.data())
def test_space_and_comments_anywhere_lose_no_word_and_no_layout(data: st.DataObject) -> None:
    program = data.draw(st.sampled_from(LAYOUTS)).program.partition("\n=>\n")[0]
    for added in data.draw(st.lists(st.sampled_from(ADDED), min_size=1, max_size=4)):
        place = data.draw(st.integers(0, len(program)))
        program = program[:place] + added + program[place:]
    try:
        found = laid_out(program, "duckdb")
    except SQLFlowError as error:
        assert "would change" not in error.message
        return
    assert same(found, program)
    assert laid_out(found, "duckdb") == found


@pytest.mark.soak
def test_the_statements_of_the_corpus_keep_their_words_and_their_layout() -> None:
    laid = 0
    for each in corpus():
        try:
            found = laid_out(each.sql, "mysql")
        except SQLFlowError as error:
            assert "would change" not in error.message
            continue
        assert same(found, each.sql)
        assert laid_out(found, "mysql") == found
        laid += 1
    assert laid > 250


@pytest.mark.soak
def test_samples_are_laid_out(repository: Path) -> None:
    for file in sorted((repository / "samples").glob("*.sql")):
        if file.name != "employee.sql":  # its first statement is the reference's
            text = file.read_text("utf-8")
            assert laid_out(text, "duckdb") == text, file


def test_line_ends_stay(repository: Path) -> None:
    assert laid_out("SELECT 1\r\nto predict using m", "duckdb") == "SELECT 1\r\nTO PREDICT USING m\r\n"


def test_a_layout_with_another_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout._Extended, "on_one_line", lambda _: "SELECT 1 TO PREDICT USING n")
    with pytest.raises(SQLFlowError, match="would change what the program means"):
        laid_out("SELECT 1 TO PREDICT USING m", "duckdb")


def test_errors_are_the_programs() -> None:
    with pytest.raises(SQLFlowError, match="unexpected trian"):
        laid_out("SELECT 1; SELECT 1 to trian M label y into m", "duckdb")
