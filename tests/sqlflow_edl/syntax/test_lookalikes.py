"""Statements of other systems, and ours misspelt: ordinary SQL with an error for the case that it is refused."""

from __future__ import annotations

import pytest

from sqlflow_edl.syntax import parse


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("CREATE MODEL m AS SELECT 1", "CREATE MODEL", "SELECT … LABEL my_label INTO m"),
        (
            "create or replace model m AS SELECT 1",
            "create or replace model",
            "CREATE MODEL m OPTIONS(model_type",
        ),
        ("/* all */ SHOW MODLES", "SHOW MODLES", "did you mean SHOW MODELS?"),
        ("SHOW MODLES LIKE 'a%'", "SHOW MODLES", "did you mean SHOW MODELS?"),
        ("SHOW MODEL", "SHOW MODEL", "write SHOW MODELS"),
        ("LIST MODELS", "LIST MODELS", "write SHOW MODELS"),
        ("SHOW TRIAN m", "SHOW TRIAN", "did you mean SHOW TRAIN?"),
        ("DESC MODLE m", "DESC MODLE", "did you mean DESC MODEL?"),
        ("DROP MDOEL m", "DROP MDOEL", "did you mean DROP MODEL?"),
        ("SHOW JOBS", "SHOW JOBS", "sqlflow jobs"),
    ],
)
def test_a_statement_that_is_like_ours_says_what_to_write(text: str, place: str, hint: str) -> None:
    (statement,) = parse(text)

    assert statement.kind == "sql"
    assert statement.refused
    assert statement.refused.span
    assert text[statement.refused.span.start : statement.refused.span.end] == place
    assert hint in (statement.refused.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "SHOW TABLES",
        "SHOW train",
        "DESCRIBE mode",
        "SHOW modes FROM t",
        "DROP TABLE model",
        "CREATE TABLE model (a INT)",
        "SELECT model",
        "SHOW",
    ],
)
def test_ordinary_sql_is_like_none_of_ours(text: str) -> None:
    assert [statement.refused for statement in parse(text)] == [None]
