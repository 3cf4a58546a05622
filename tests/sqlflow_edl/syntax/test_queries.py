"""sqlglot's opinion of a query."""

from __future__ import annotations

import logging

import pytest

from sqlflow_edl.syntax.dialects import DIALECTS, Dialect
from sqlflow_edl.syntax.queries import objection, with_expression


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
def test_a_query_has_no_objection(dialect: Dialect) -> None:
    assert objection("SELECT a, count(*) AS n FROM t WHERE b = 'x' GROUP BY a", dialect) is None


@pytest.mark.parametrize(
    "sql",
    ["SELECT FROM FROM", "SELECT 'a", "WIBBLE WOBBLE", "(" * 5000, "SELECT a b c", "EXPLAIN SELECT 1"],
)
def test_what_cannot_be_read_has_one_line_of_objection(sql: str) -> None:
    reason = objection(sql, DIALECTS["duckdb"])

    assert reason
    assert "\n" not in reason


def test_nothing_is_logged_and_the_logger_is_left_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("sqlglot")
    level = logger.level
    objection("SHOW WHATEVER IS THERE", DIALECTS["postgres"])

    assert not caplog.records
    assert logger.level == level


@pytest.mark.parametrize(
    ("select", "item", "changed"),
    [
        ("SELECT a, x FROM t", "CAST(x AS INT) AS x", "SELECT a, CAST(x AS INT) AS x FROM t"),
        ("SELECT a + 1 AS x FROM t", "CAST(a + 1 AS INT) AS x", "SELECT CAST(a + 1 AS INT) AS x FROM t"),
        ("SELECT t.x AS x FROM t", "CAST(t.x AS INT) AS x", "SELECT CAST(t.x AS INT) AS x FROM t"),
        ("SELECT * FROM t", "CAST(x AS INT) AS x", "SELECT * REPLACE (CAST(x AS INT) AS x) FROM t"),
    ],
)
def test_an_expression_takes_the_place_of_a_column(select: str, item: str, changed: str) -> None:
    assert with_expression(select, "x", "CAST(x AS INT)", DIALECTS["duckdb"]) == (changed, item)


@pytest.mark.parametrize("select", ["SELECT a FROM t", "SELECT x FROM t UNION SELECT x FROM u", "FROM t"])
def test_an_expression_has_no_place_in_a_query_without_the_column(select: str) -> None:
    assert with_expression(select, "x", "CAST(x AS INT)", DIALECTS["duckdb"]) is None
