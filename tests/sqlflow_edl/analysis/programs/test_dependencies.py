"""Statements that must wait for each other, and those that need each other."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.programs.dependencies import accesses, find_needed
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


def before(
    program: str, views: frozenset[str] | None = frozenset(), dialect: str = "duckdb"
) -> list[list[int]]:
    """The numbers of the earlier statements that each statement waits for."""
    found = accesses(parse(program, dialect), dialect, views)
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
    ("program", "wanted"),
    [
        ("ALTER TABLE a RENAME TO b; SELECT * FROM b; SELECT * FROM a", [[], [1], [1]]),
        (
            (
                "SELECT * FROM s TO TRAIN DNNRegressor LABEL y INTO glpk;"
                "SELECT * FROM t TO MAXIMIZE SUM(x) WITH variables = 'x(p)', var_type = Reals USING glpk"
            ),
            [[], []],
        ),
        ("INSERT INTO a VALUES (1); WITH a AS (SELECT * FROM a) SELECT * FROM a", [[], [1]]),
        ("INSERT INTO a VALUES (1); WITH RECURSIVE a AS (SELECT 1 UNION FROM a) FROM a", [[], []]),
        ("INSERT INTO a VALUES (1); SELECT * FROM a, (WITH a AS (SELECT 1) SELECT * FROM a)", [[], [1]]),
        ("INSERT INTO a VALUES (1); WITH b AS (SELECT 1), a AS (FROM b) SELECT (SELECT 2 FROM A)", [[], []]),
        ("SELECT * FROM a TO TRAIN DNNRegressor LABEL y INTO m; SELECT * FROM sqlflow_edl_models", [[], [1]]),
    ],
)
def test_names_mean_tables_where_they_stand(program: str, wanted: list[list[int]]) -> None:
    assert before(program) == wanted


@pytest.mark.parametrize(
    ("dialect", "program", "wanted"),
    [
        ("mysql", "UPDATE a JOIN b USING (x) SET b.y = 1; SELECT * FROM b; SELECT * FROM c", [[], [1], []]),
        ("mysql", "SELECT @n := 1; SELECT 2", [[], [1]]),
        (
            "postgres",
            "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d; TABLE t; TABLE u",
            [[], [1], []],
        ),
        ("postgres", "WITH d AS (DELETE FROM t RETURNING *) INSERT INTO u TABLE d; TABLE t", [[], [1]]),
    ],
)
def test_tables_change_in_joins_and_common_table_expressions(
    dialect: str, program: str, wanted: list[list[int]]
) -> None:
    assert before(program, dialect=dialect) == wanted


def test_rows_inserted_into_a_view_change_its_table() -> None:
    program = "CREATE VIEW v AS SELECT * FROM a; INSERT INTO v VALUES (1); SELECT * FROM a; SELECT * FROM b"
    assert before(program, dialect="postgres") == [[], [1], [2], []]
    assert before("INSERT INTO old VALUES (1); SELECT * FROM a", frozenset({"old"})) == [[], [1]]


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
    found = find_needed(accesses(parse(PROGRAM), "duckdb"), {number - 1})
    assert {each + 1 for each in found} == wanted
