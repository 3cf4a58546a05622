"""Every case of errors.sql is told at its place, in words."""

from __future__ import annotations

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.clauses import extended_grammar
from sqlflow_edl.syntax.error_messages import describe_expected
from tests.sql_cases import Case, cases, refusal


@pytest.mark.variants(100)
@pytest.mark.parametrize("case", cases("syntax/errors.sql"), ids=str)
def test_an_error_is_told_at_its_place(case: Case) -> None:
    refusal(case, lambda program: parse(program, case.dialect))


def test_both_clauses_given_twice_are_reported() -> None:
    with pytest.raises(SQLFlowError) as caught:
        parse("SELECT 1 TO TRAIN m LABEL a INTO b LABEL c INTO d")

    assert [error.message for error in getattr(caught.value, "errors", ())] == [
        "LABEL is given twice",
        "INTO is given twice",
    ]


def test_a_hint_speaks_of_no_terminal_by_its_internal_name() -> None:
    grammar = extended_grammar()
    terminals = {terminal.name for terminal in grammar.parser.terminals} | {"$END"}

    for terminal in terminals - grammar.keywords:
        assert terminal not in describe_expected({terminal, "COMMA"}), terminal


def test_a_long_text_is_shortened_in_a_message() -> None:
    with pytest.raises(SQLFlowError) as caught:
        parse(f"SELECT 1 TO TRAIN m {'x' * 500}")

    assert len(caught.value.message) < 80
