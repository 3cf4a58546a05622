"""sqlglot's opinion of a query."""

from __future__ import annotations

import logging

import pytest

from sqlflow_edl.syntax.dialects import DIALECTS, Dialect
from sqlflow_edl.syntax.queries import objection


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
