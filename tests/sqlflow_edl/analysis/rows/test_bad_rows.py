"""Rows without a label or a weight, which `train.on_bad_row = skip` leaves out, on every database."""

from __future__ import annotations

import re

import pytest

from edl.errors import SemanticError, SourceError, Span
from sqlflow_edl.session.compiler import CompiledStatement
from sqlflow_edl.session.session import Session
from tests.databases import Databases

ROWS = """SELECT age, height, CASE WHEN age < 25 THEN NULL ELSE income END AS income,
    CASE WHEN height > 200 THEN NULL ELSE 2 END AS weight FROM people"""


def compiled(session: Session, clauses: str, *, select: str = ROWS) -> CompiledStatement:
    [statement] = session.parse(f"{select} TO TRAIN BoostedTreesRegressor {clauses} LABEL income INTO m")
    return session.compiler.compile(statement)


def test_rows_without_a_label_are_left_out_and_counted(session: Session) -> None:
    found = compiled(session, "WITH train.on_bad_row = skip")
    assert found.spec.rows.total == 1080
    assert "120 of 1,200 rows have no income and are left out: WHERE income IS NULL" in found.notes


def test_rows_without_a_weight_are_left_out_too(session: Session) -> None:
    found = compiled(session, "WITH train.on_bad_row = skip, train.weight_column = weight")
    [note] = (note for note in found.notes if "left out" in note)
    left = re.fullmatch(r"(\d+) of 1,200 rows have no income or no weight and are left out: WHERE (.+)", note)
    assert left is not None
    assert found.spec.rows.total == 1200 - int(left[1]) < 1080
    listed = session.source.stream(f"SELECT age FROM ({ROWS}) rows_of_all WHERE {left[2]}").read_all()
    assert listed.num_rows == int(left[1])


def test_validation_rows_of_a_query_without_a_label_are_left_out(session: Session) -> None:
    found = compiled(session, f"WITH train.on_bad_row = skip VALIDATE ON ({ROWS} WHERE age < 30)")
    assert (found.spec.rows.training, found.spec.rows.validation) == (1080, 120)


def test_nothing_is_said_where_nothing_is_left_out(session: Session) -> None:
    found = compiled(session, "WITH train.on_bad_row = skip", select="SELECT age, income FROM people")
    assert found.spec.rows.total == 1200
    assert found.notes == compiled(session, "", select="SELECT age, income FROM people").notes


NOT_FINITE = {
    "duckdb": ("CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"),
    "postgres": ("CAST('NaN' AS DOUBLE PRECISION)", "CAST('-Infinity' AS DOUBLE PRECISION)"),
    "sqlite": ("9e999", "-9e999"),
}


@pytest.mark.parametrize("dialect", NOT_FINITE)
def test_labels_that_are_no_finite_numbers_are_left_out(databases: Databases, dialect: str) -> None:
    one, other = NOT_FINITE[dialect]
    select = f"""SELECT age, CASE WHEN age = 20 THEN {one} WHEN age = 21 THEN {other} ELSE income * 1.0 END AS income
        FROM people"""
    found = compiled(databases.filled(dialect), "WITH train.on_bad_row = skip", select=select)
    assert found.spec.rows.total == 1152


def test_a_query_of_bad_rows_alone_is_an_error_that_says_so(databases: Databases) -> None:
    select = "SELECT age, CAST(NULL AS DOUBLE) AS income FROM people"
    with pytest.raises(SemanticError, match="1,200 of 1,200 rows have no income and are left out") as raised:
        compiled(databases.filled("duckdb"), "WITH train.on_bad_row = skip", select=select)
    assert raised.value.span == Span(0, len(select))


def test_an_error_of_the_database_is_placed_in_the_query(databases: Databases) -> None:
    session = databases.filled("duckdb")
    text = "SELECT age, CAST(city AS INTEGER) AS income FROM people"
    with pytest.raises(SourceError) as raised:
        compiled(session, "WITH train.on_bad_row = skip", select=text)
    assert raised.value.span is None or raised.value.span.end <= len(text)
