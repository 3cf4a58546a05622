"""What a person is asked about before it runs."""

from __future__ import annotations

import pytest

from sqlflow_edl.console.statements import confirmation_question
from sqlflow_edl.syntax import parse

TABLES = ("guesses", 'main."two words"')


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SELECT * FROM t", ""),
        ("INSERT INTO t SELECT * FROM u", ""),
        ("CREATE TABLE t (x INT)", ""),
        ("UPDATE t SET x = 1 WHERE y = 2", ""),
        ("UPDATE t SET x = (SELECT 1 WHERE TRUE)", "UPDATE t: all rows are changed. Run it?"),
        ("DELETE FROM t", "DELETE FROM t: all rows are deleted. Run it?"),
        ("drop view v", "DROP VIEW v: this cannot be undone. Run it?"),
        ("DROP MODEL m@2", "DROP MODEL m@2: this cannot be undone. Run it?"),
        ("SELECT 1 TO PREDICT USING m", ""),
        ("SELECT 1 TO PREDICT fresh.x USING m", ""),
        (
            "SELECT 1 TO PREDICT guesses.x USING m",
            "PREDICT guesses.x USING m replaces the table guesses. Run it?",
        ),
        ("SELECT 1 TO PREDICT guesses.x USING m APPEND", ""),
        ("SELECT 1 TO EVALUATE m INTO `two words`", "EVALUATE m replaces the table two words. Run it?"),
        ("SELECT 1 TO EXPLAIN m INTO guesses", "EXPLAIN m replaces the table guesses. Run it?"),
        ("SELECT 1 TO EXPLAIN m", ""),
        ("SELECT 1 AS x TO TRAIN DNN LABEL x INTO guesses", ""),
    ],
)
def test_what_cannot_be_taken_back_is_a_question(text: str, asked: str) -> None:
    [statement] = parse(text)
    assert confirmation_question(statement, "duckdb", TABLES) == asked
