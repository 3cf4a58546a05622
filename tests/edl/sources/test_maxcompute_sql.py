"""What a statement of MaxCompute is, before the service sees it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from edl.errors import SourceError
from edl.sources.maxcompute.sql import LEXICON, bind_values, check_column, literal, split_name


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT n FROM t", "SELECT n FROM t"),
        ("SELECT n FROM t -- the end", "SELECT n FROM t"),
        ("SELECT n FROM t /* ; */ ;", "SELECT n FROM t"),
        ("\n VALUES (1)\n", "\n VALUES (1)"),
        ("WITH q AS (SELECT ';?)' AS n) SELECT n FROM q", "WITH q AS (SELECT ';?)' AS n) SELECT n FROM q"),
        ("SELECT 'it\\'s', \"(\", `(` FROM t", "SELECT 'it\\'s', \"(\", `(` FROM t"),
        ("SELEC 1", "SELEC 1"),
    ],
)
def test_a_query_may_stand_in_parentheses_as_it_is(text: str, query: str) -> None:
    assert LEXICON.one_query(text) == query


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-- nothing",
        ";",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "DROP TABLE t",
        "INSERT INTO t VALUES (9)",
        "SELECT 1) LIMIT 0; DROP TABLE t; SELECT (1",
        "SELECT 1) q UNION ALL SELECT * FROM (SELECT 2",
        "SELECT ?",
        "SET odps.sql.submit.mode = script",
    ],
)
def test_a_text_that_is_not_one_query_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        LEXICON.one_query(text)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "NULL"),
        (float("nan"), "NULL"),
        (True, "TRUE"),
        (-3, "CAST(-3 AS BIGINT)"),
        (0.1, "CAST('0.1' AS DOUBLE)"),
        (Decimal("1.50"), "1.50BD"),
        (b"\x00x", "UNHEX('0078')"),
        (dt.date(2024, 1, 2), "DATE '2024-01-02'"),
        (dt.datetime(2024, 1, 2, 3), "CAST('2024-01-02 03:00:00.000' AS DATETIME)"),
        ("it's \\ \n", "'it\\'s \\\\ \\n'"),
    ],
)
def test_a_value_is_written_as_a_literal(value: object, written: str) -> None:
    assert literal(value) == written


def test_values_go_where_the_question_marks_are_and_not_into_texts() -> None:
    sql = "SELECT '?', `?`, ? -- ?\n, ?"
    assert bind_values(sql, ("?", 1)) == "SELECT '?', `?`, '?' -- ?\n, CAST(1 AS BIGINT)"
    assert bind_values("SELECT ?", ()) == "SELECT ?"


def test_one_statement_may_end_with_a_semicolon() -> None:
    LEXICON.one_statement("DROP TABLE t ; -- done")
    with pytest.raises(SourceError, match="this text holds 2 statements"):
        LEXICON.one_statement("DROP TABLE t; DROP TABLE u")


def test_names_are_those_that_the_service_takes() -> None:
    assert split_name("`shop`.t_1") == ("shop", "t_1")
    check_column("größe")
    for name in ("a b", "1a", "", "a.", "p.s.t.u", "größe", 'x"; DROP TABLE t'):
        with pytest.raises(SourceError, match="cannot name a table"):
            split_name(name)
    for column in ("", "a b", "n" * 129, "`"):
        with pytest.raises(SourceError, match="cannot name a column"):
            check_column(column)
