"""The statement that was meant: small changes of one that is refused, of which one is accepted."""

from __future__ import annotations

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.passed_on import check_syntax, find_doubt, parser_without_source
from sqlflow_edl.syntax.parse import parse
from tests.sql_cases import corpus

MEANT = [
    ("SELEC 1", "did you mean SELECT? SELECT 1"),
    ("CREATE TABEL x AS SELECT 1", "did you mean TABLE? CREATE TABLE x AS SELECT 1"),
    ("SELECT * FORM iris", "did you mean FROM? SELECT * FROM iris"),
    (
        "SELECT * FROM iris LABL species INTO m",
        "did you mean LABEL? SELECT * FROM iris LABEL species INTO m",
    ),
    (
        "SELECT * FROM iris INTO m LABEL species",
        "put INTO behind LABEL: SELECT * FROM iris LABEL species INTO m",
    ),
    (
        "SELECT * FROM iris INTO m TO TRAIN DNN LABEL y",
        "put INTO behind TO: SELECT * FROM iris TO TRAIN DNN LABEL y INTO m",
    ),
    (
        "SELECT * FROM iris, LABEL species INTO m",
        "leave out the comma before LABEL: SELECT * FROM iris LABEL species INTO m",
    ),
    (
        "SELECT * FROM iris TO FORECAST m",
        "FORECAST is written PREDICT USING: SELECT * FROM iris TO PREDICT USING m",
    ),
    (
        "SELECT * FORM iris TO TRAIN DNN LABEL y INTO m",
        "did you mean FROM? SELECT * FROM iris TO TRAIN DNN LABEL y INTO m",
    ),
    ("SELEC * FORM t WEHRE x > 1", "did you mean SELECT, FROM, WHERE? SELECT * FROM t WHERE x > 1"),
    (
        "SELECT 'a  b' -- text\nFORM t\n\tGROPU BY x",
        "did you mean FROM, GROUP? SELECT 'a  b' FROM t GROUP BY x",
    ),
    (
        "SELECT * FROM PREDICT(m, (SELECT 1)) WEHRE a = 1",
        "did you mean WHERE? SELECT * FROM PREDICT(m, (SELECT 1)) WHERE a = 1",
    ),
]


def hint(sql: str, dialect: str) -> str | None:
    """The hint of the one statement of the text, which its parser refuses."""
    [statement] = parse(sql, dialect)
    with pytest.raises(SQLFlowError) as raised:
        check_syntax(statement, dialect, parser_without_source(dialect))
    assert raised.value.span is not None
    return raised.value.hint


@pytest.mark.parametrize("dialect", ["duckdb", pytest.param("sqlite", marks=pytest.mark.soak)])
@pytest.mark.parametrize(("sql", "meant"), MEANT)
def test_the_hint_is_the_statement_that_was_meant(sql: str, meant: str, dialect: str) -> None:
    assert hint(sql, dialect) == meant


@pytest.mark.parametrize("sql", ["SELECT * FROM a b c", "SELECT (1", "SELECT 1 2 3 FORM", "FRMO"])
def test_without_an_accepted_change_there_is_no_guess(sql: str) -> None:
    found = hint(sql, "duckdb")
    assert found is None or "did you mean" not in found


def test_of_a_long_statement_the_part_around_the_change_is_shown() -> None:
    columns = ", ".join(f"column_{number}" for number in range(60))
    found = hint(f"SELECT {columns} FORM t WHERE {' AND '.join(f'a = {n}' for n in range(60))}", "duckdb")
    assert found is not None
    assert "column_59 FROM t WHERE a = 0" in found
    assert len(found) < 220


@pytest.mark.variants(5)
@pytest.mark.parametrize("dialect", ["mysql", "postgres", "maxcompute"])
@pytest.mark.parametrize(("sql", "meant"), MEANT[:5])
def test_of_a_server_that_is_not_asked_sqlglot_has_doubts(sql: str, meant: str, dialect: str) -> None:
    [statement] = parse(sql, dialect)
    doubt = find_doubt(statement, dialect)
    assert doubt is not None
    assert doubt.hint == meant
    assert "the database decides" in doubt.message


def test_a_kind_of_statement_that_sqlglot_does_not_know_is_no_doubt() -> None:
    for sql in ("VACUUM FULL t", "GRANT SELECT ON t TO predict", "LISTEN news", "CHECKPOINT"):
        [statement] = parse(sql, "postgres")
        assert find_doubt(statement, "postgres") is None, sql


@pytest.mark.variants(1)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "mysql", "postgres", "maxcompute"])
def test_no_statement_of_the_corpus_is_refused_or_corrected(dialect: str) -> None:
    parser = parser_without_source(dialect)
    for statement in corpus():
        for each in parse(statement.sql, dialect) if statement.stage != "syntax" else ():
            if each.kind == "sql":
                check_syntax(each, dialect, parser)
            doubt = find_doubt(each, dialect, parser)
            assert doubt is None or doubt.hint is None, each.text
