"""Keyword or name, where both could stand."""

from __future__ import annotations

import pytest

from sqlflow_edl.syntax.dialects import DIALECTS
from sqlflow_edl.syntax.keywords import LazyTokens, opens_clause
from sqlflow_edl.syntax.lexer import clause_tokens


def tokens(text: str) -> LazyTokens:
    return LazyTokens(clause_tokens(text, 0, DIALECTS["duckdb"]))


@pytest.mark.parametrize(
    "text",
    [
        "LABEL c",
        "LABEL label",
        "LABEL label INTO m",
        "LABEL into INTO into",
        "LABEL 'c'",
        "COLUMN *",
        "COLUMN as INTO m",
        "WITH a = 1",
        "WITH train.epoch = 1",
        "VALIDATE 0.1",
        "VALIDATE ON (SELECT 1)",
        "USING host/a",
        "CONSTRAINT (a) <= 3",
    ],
)
def test_a_keyword_with_a_body_opens_a_clause(text: str) -> None:
    assert opens_clause(tokens(text), 0)


@pytest.mark.parametrize(
    "text",
    [
        "label",
        "label, b",
        "label)",
        "label.x",
        "label = 1",
        "label LABEL c",
        "into LABEL label INTO m",
        "with 3",
        "label AS x",
        "target FOR wide",
        "validate, b",
        "column(a)",
        "x",
    ],
)
def test_a_keyword_without_a_body_is_a_name(text: str) -> None:
    assert not opens_clause(tokens(text), 0)


def test_tokens_are_read_only_as_far_as_they_are_asked_for() -> None:
    read: list[str] = []

    def noted() -> object:
        for token in clause_tokens("a b c", 0, DIALECTS["duckdb"]):
            read.append(token.text)
            yield token

    lazy = LazyTokens(noted())  # type: ignore[arg-type]

    assert lazy[1].text == "b"
    assert read == ["a", "b"]
    assert lazy.last().kind == lazy[99].kind == "end"
