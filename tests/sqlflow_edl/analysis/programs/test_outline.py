"""Titles of statements, and what they make and use."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.programs.outline import Thing, depends, effects, title
from sqlflow_edl.syntax import parse


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT * FROM a TO TRAIN DNNClassifier LABEL x INTO s.m", "TRAIN DNNClassifier INTO s.m"),
        ("EXPLAIN SELECT * FROM a TO TRAIN X LABEL x INTO m", "EXPLAIN TRAIN X INTO m"),
        ("SELECT * FROM a LABEL x INTO m", "TRAIN INTO m"),
        ("SELECT * FROM a TO PREDICT t.x USING m@2", "PREDICT t.x USING m@2"),
        ("SELECT * FROM a TO PREDICT USING m", "PREDICT USING m"),
        ("SELECT * FROM a TO PREDICT t append USING m", "PREDICT t USING m APPEND"),
        ("SELECT * FROM a TO EVALUATE m INTO t", "EVALUATE m"),
        ("DROP MODEL IF EXISTS m@1", "DROP MODEL m@1"),
        ("CREATE OR REPLACE TEMP TABLE IF NOT EXISTS a.b (x INT)", "CREATE TABLE a.b"),
        ('CREATE TABLE "my table" (x INT)', "CREATE TABLE my table"),
        ("insert into t values (1)", "INSERT INTO t"),
        ("UPDATE t SET x = 1", "UPDATE t"),
        ("-- why\n/* so */ WITH a AS (SELECT 1) SELECT * FROM a", "SELECT"),
        ("(SELECT 1)", "SELECT"),
        ("SET x = 1", "SET"),
        ("? !", "SQL"),
    ],
)
def test_a_title_names_the_kind_and_what_it_is_about(text: str, wanted: str) -> None:
    [statement] = parse(text)
    assert title(statement, "duckdb") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "ATTACH 'mysql://me:s3cret@db/x' AS x",
        "CREATE SECRET s (TYPE s3, KEY 's3cret')",
        "COPY t TO 's3cret.csv'",
        "SET password = 's3cret'",
        "PRAGMA add_parquet_key('k', 's3cret')",
        "UPDATE users SET password = 's3cret'",
    ],
)
def test_a_title_shows_no_value(text: str) -> None:
    [statement] = parse(text)
    assert "s3cret" not in title(statement, "duckdb")


def test_a_long_name_is_shortened() -> None:
    [statement] = parse(f"DROP TABLE {'x' * 500}")
    assert len(title(statement, "duckdb")) < 80


@pytest.mark.parametrize(
    ("text", "makes", "uses"),
    [
        ("CREATE TABLE a.b AS WITH c AS (SELECT * FROM d) SELECT * FROM c, 'f.csv'", ["a.b"], ["f.csv", "d"]),
        ("CREATE VIEW v AS SELECT * FROM t", ["v"], ["t"]),
        ("CREATE SCHEMA s", [], []),
        ("INSERT INTO t(a) SELECT * FROM u", ["t"], ["t", "u"]),
        ("DELETE FROM t WHERE x IN (SELECT x FROM w)", ["t"], ["t", "w"]),
        ("DROP TABLE t", [], ["t"]),
        ("DROP TABLE IF EXISTS t", [], []),
        ("SELECT * FROM a JOIN b.c USING (x), range(3)", [], ["a", "b.c"]),
        ("SELEC * FORM t", [], []),
        ("SELECT * FROM a TO TRAIN X LABEL x USING w INTO m", ["m"], ["a", "w"]),
        ("EXPLAIN SELECT * FROM a TO TRAIN X LABEL x INTO m", [], ["a"]),
        ("SELECT * FROM a TO PREDICT s.t.x USING m", ["s.t"], ["a", "m"]),
        ("SELECT * FROM a TO PREDICT t USING m@3", ["t"], ["a"]),
        ("SELECT * FROM a TO PREDICT t.x USING m@3 APPEND", ["t"], ["a", "t"]),
        (
            "SELECT * FROM a TO TRAIN DNN COLUMN x, FEATURES(m), FEATURES('n@2') LABEL y INTO o",
            ["o"],
            ["a", "m"],
        ),
        ("SELECT * FROM a TO EVALUATE m INTO s.t", ["s.t"], ["a", "m"]),
        ("SELECT * FROM a TO EXPLAIN m USING TreeExplainer INTO s.t", ["s.t"], ["a", "m"]),
        ("DROP MODEL m", [], ["m"]),
        ("DROP MODEL IF EXISTS m", [], []),
    ],
)
def test_what_a_statement_makes_and_uses_is_read_from_its_names(
    text: str, makes: list[str], uses: list[str]
) -> None:
    [statement] = parse(text)
    found = effects(statement, "duckdb")
    assert [".".join(thing.parts) for thing in found.makes] == makes
    assert sorted(".".join(thing.parts) for thing in found.uses) == sorted(uses)


@pytest.mark.parametrize(
    ("missing", "text", "skipped"),
    [
        (Thing("table", ("main", "T")), "SELECT * FROM t", True),
        (Thing("table", ("t",)), "SELECT * FROM other.t", True),
        (Thing("table", ("a", "t")), "SELECT * FROM b.t", False),
        (Thing("table", ("m",)), "SELECT 1 TO PREDICT USING m", False),
        (Thing("model", ("m",)), "SELECT * FROM m", False),
        (Thing("model", ("m",)), "SELECT 1 TO PREDICT USING m", True),
        (Thing("model", ("m",)), "SELECT 1 TO PREDICT USING a.m", False),
    ],
)
def test_what_depends_on_what_is_missing_is_known_by_its_name(
    missing: Thing, text: str, skipped: bool
) -> None:
    [statement] = parse(text)
    assert depends(effects(statement, "duckdb"), [missing]) == (missing if skipped else None)
