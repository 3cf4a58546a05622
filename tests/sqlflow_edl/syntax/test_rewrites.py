"""Tests for statements of other systems and frequent slips: the hint is the statement that is meant."""

from __future__ import annotations

import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.session.passed_on import check_syntax, parser_without_source
from sqlflow_edl.syntax.parse import read_statements


def hint(text: str, dialect: str = "duckdb") -> str | None:
    """Return the hint of the first error, of the clauses or of the query."""
    for each in read_statements(text, dialect):
        try:
            if isinstance(each, SQLFlowError):
                raise each
            check_syntax(each, dialect, parser_without_source(dialect))
        except SQLFlowError as error:
            return error.hint
    return None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "SELECT * FROM t TO TRAIN DNN WITH model.hidden_units=10,20 LABEL y INTO m",
            "write a list in brackets: SELECT * FROM t TO TRAIN DNN WITH model.hidden_units=[10,20] LABEL y INTO m",
        ),
        (
            "SELECT * FROM t LABEL y INTO m WITH auto.models='trees', 'linear'",
            "write a list in brackets: SELECT * FROM t LABEL y INTO m WITH auto.models=['trees', 'linear']",
        ),
        (
            "SELECT * FROM t WITH train.epoch = 3 LABEL y INTO m",
            "put WITH behind LABEL: SELECT * FROM t LABEL y WITH train.epoch = 3 INTO m",
        ),
        ("PREDICT y USING m FROM t", "the query comes first: SELECT * FROM t TO PREDICT USING m"),
        ("TO EVALUATE m FROM t", "the query comes first: SELECT * FROM t TO EVALUATE m"),
        (
            "TRAIN DNN ON t WHERE x > 1 LABEL y INTO m",
            "the query comes first: SELECT * FROM t WHERE x > 1 TO TRAIN DNN LABEL y INTO m",
        ),
        (
            "TRAIN DNN ON t INTO m",
            "the query comes first, the label behind it: SELECT * FROM t TO TRAIN DNN LABEL my_label INTO m",
        ),
        (
            "TRAIN KMeans ON t",
            "the query comes first, and the name of the model last: SELECT * FROM t TO TRAIN KMeans INTO my_model",
        ),
        (
            "SELECT * FROM t TO TRAIN DNN VALIDATE ON u LABEL y",
            "the rows are a query in parentheses: SELECT * FROM t TO TRAIN DNN VALIDATE ON (SELECT * FROM u) LABEL y",
        ),
        (
            "SELECT * FROM t TO TRAIN DNN WITH optimizer.learning_rate = 0,01 LABEL y INTO m",
            "a decimal has a point: SELECT * FROM t TO TRAIN DNN WITH optimizer.learning_rate = 0.01 LABEL y INTO m",
        ),
        (
            "SELECT * FROM t TO EXPLAIN USING m",
            "leave out USING behind EXPLAIN: SELECT * FROM t TO EXPLAIN m",
        ),
        ("SELECT 1 SELECT 2", "put a semicolon before SELECT: SELECT 1; SELECT 2"),
        (
            "SELECT * FROM t LABEL y INTO m SELECT * FROM u",
            "put a semicolon before SELECT: SELECT * FROM t LABEL y INTO m; SELECT * FROM u",
        ),
        (
            "SELECT * FROM t LABEL y INTO m TO EVALUATE m",
            "write two statements: SELECT * FROM t LABEL y INTO m; SELECT * FROM t TO EVALUATE m",
        ),
        (
            "SELECT * FROM t TO TRAIN DNN LABEL y INTO m TO PREDICT USING m",
            "write two statements: SELECT * FROM t TO TRAIN DNN LABEL y INTO m; SELECT * FROM t TO PREDICT USING m",
        ),
        ("SELECT TOP 5 * FROM t", "TOP is written LIMIT, behind the query: SELECT * FROM t LIMIT 5"),
        (
            "SELECT TOP 9 * FROM t LABEL y INTO m",
            "TOP is written LIMIT, behind the query: SELECT * FROM t LIMIT 9 LABEL y INTO m",
        ),
        ("df = SELECT * FROM t", "leave out df =: SELECT * FROM t"),
        ("SELECT * FROM t WHERE k IS yes", "compare with =: SELECT * FROM t WHERE k = 'yes'"),
        (
            "SELECT * FROM t TO PREDICT USING m ORDER BY k LIMIT 3",
            "ORDER is of the query: SELECT * FROM t ORDER BY k LIMIT 3 TO PREDICT USING m",
        ),
        (
            "SELECT * FROM t LABEL y WHERE x > 1 INTO m",
            "WHERE is of the query: SELECT * FROM t WHERE x > 1 LABEL y INTO m",
        ),
        (
            "SELECT * FROM t LABEL k = 'yes' INTO m",
            "compute the label in the SELECT: SELECT * EXCLUDE (k), k = 'yes' AS y FROM t LABEL y INTO m",
        ),
        (
            "SELECT k, x FROM t LABEL k = 'yes' INTO m",
            "compute the label in the SELECT: SELECT k, x, k = 'yes' AS y FROM t LABEL y INTO m",
        ),
        (
            "SELECT * FROM t TO TRAIN DNN WITH model.framework = “torch” LABEL y INTO m",
            "write straight quotes: SELECT * FROM t TO TRAIN DNN WITH model.framework = 'torch' LABEL y INTO m",
        ),
        (
            "SELECT * FROM t WHERE city = ‘New York’",
            "write straight quotes: SELECT * FROM t WHERE city = 'New York'",
        ),
    ],
)  # fmt: skip
def test_the_hint_is_the_statement_that_is_meant(text: str, meant: str) -> None:
    assert hint(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE note = 'it’s “good”'",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "SELECT top FROM t WHERE k IS NULL",
        "CREATE TABLE c AS SELECT 1",
        "INSERT INTO c SELECT 1",
        "SELECT * FROM t TO TRAIN DNN WITH model.hidden_units = [10, 20], epochs = 2 LABEL y INTO m",
    ],
)
def test_correct_statements_have_no_error(text: str) -> None:
    assert hint(text) is None


def test_what_no_rewriting_makes_valid_keeps_its_hint() -> None:
    assert hint("SELECT * FROM t WHERE a > 1 TO PREDICT USING m WHERE b > 1") == (
        "WHERE is of the query: write it before TO PREDICT"
    )
    assert hint("SELECT * FROM t LABEL y INTO my-model") == (
        "write my_model, or quote a name that is not one word: `my-model`"
    )


def test_a_quote_that_is_never_closed_is_shown_closed() -> None:
    assert hint("SELECT * FROM t WHERE k = 'red TO TRAIN DNN LABEL y INTO m") == (
        "close it, such as 'red', or remove the '"
    )


@pytest.mark.parametrize(
    ("columns", "label"),
    [(("id", "churned", "city"), "churned"), (("id", "city"), "city"), (("id", "last name"), "`last name`")],
)
def test_the_label_of_a_rewritten_statement_is_probably_a_column_of_its_table(
    columns: tuple[str, ...], label: str
) -> None:
    [error] = read_statements("TRAIN DNN ON t INTO m", names=lambda statement: columns)
    assert isinstance(error, SQLFlowError)
    assert str(error.hint).endswith(f"SELECT * FROM t TO TRAIN DNN LABEL {label} INTO m")
