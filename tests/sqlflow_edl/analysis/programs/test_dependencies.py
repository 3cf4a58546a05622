"""Statements that must wait for each other, and those that need each other."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.programs.dependencies import accesses, needed
from sqlflow_edl.syntax import parse

PROGRAM = """
CREATE TABLE a AS SELECT 1 AS x, 2 AS y;
CREATE VIEW v AS SELECT * FROM main.a;
SELECT * FROM v TO TRAIN DNNRegressor LABEL y INTO m;
SELECT * FROM b TO TRAIN DNNRegressor WITH validation.select = "SELECT * FROM c" COLUMN FEATURES('m@1') LABEL y INTO n;
SELECT * FROM b TO PREDICT p.y USING m@1;
SHOW MODELS;
INSERT INTO a VALUES (1, 2);
DROP MODEL n;
SELECT * FROM p;
INSERT INTO c SELECT * FROM d
"""


def before(program: str, views: frozenset[str] | None = frozenset()) -> list[list[int]]:
    """The numbers of the earlier statements that each statement waits for."""
    found = accesses(parse(program), "duckdb", views)
    return [
        [number for number, earlier in enumerate(found[:place], 1) if each.follows(earlier)]
        for place, each in enumerate(found)
    ]


def test_a_statement_waits_for_what_writes_its_tables_and_models_and_for_what_reads_what_it_writes() -> None:
    assert dict(enumerate(before(PROGRAM), 1)) == {
        1: [],
        2: [1],
        3: [1, 2],
        4: [3],
        5: [3],
        6: [3, 4],
        7: [1, 2, 3],
        8: [4, 6],
        9: [5],
        10: [4],
    }


def test_a_view_of_the_database_may_read_every_table() -> None:
    program = "INSERT INTO t VALUES (1); SELECT * FROM old; SELECT * FROM other"
    assert before(program, frozenset({"old"})) == [[], [1], []]
    assert before(program, None) == [[], [1], [1]]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE INDEX i ON other(x)",
        "COPY other TO 'file.csv'",
        "SET threads = 1",
        "BEGIN",
        "CREATE TEMP TABLE u AS SELECT 1 AS x",
        "ATTACH 'x.db' AS x",
        "CALL something()",
        "? !",
    ],
)
def test_what_may_change_anything_waits_for_all_and_all_wait_for_it(text: str) -> None:
    assert before(f"SELECT 1; {text}; SELECT 2") == [[], [1], [2]]


@pytest.mark.parametrize("text", ["SHOW TABLES", "SELECT * FROM information_schema.tables"])
def test_a_list_of_tables_waits_for_each_table(text: str) -> None:
    assert before(f"CREATE TABLE t (x INT); {text}; CREATE TABLE u (x INT)") == [[], [1], [2]]


@pytest.mark.parametrize(
    ("number", "wanted"), [(3, {1, 2, 3}), (5, {1, 2, 3, 5}), (9, {1, 2, 3, 5, 9}), (10, {10})]
)
def test_a_statement_needs_what_makes_what_it_reads(number: int, wanted: set[int]) -> None:
    found = needed(accesses(parse(PROGRAM), "duckdb"), {number - 1})
    assert {each + 1 for each in found} == wanted
