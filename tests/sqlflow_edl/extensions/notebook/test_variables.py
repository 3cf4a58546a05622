"""Variables of the notebook in SQL: as text, and as quoted literals."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from sqlflow_edl.extensions.notebook.variables import fill_variables

NAMES: dict[str, Any] = {
    "low": 3,
    "rate": np.float64(0.5),
    "many": np.int64(7),
    "table": "my_table",
    "name": "O'Slo \\ ; --",
    "day": datetime.date(2024, 1, 2),
    "price": decimal.Decimal("1.50"),
    "nothing": None,
    "units": [10, 20],
    "names": ("a", "it's"),
    "settings": {"rate": 0.25},
    "df": pd.DataFrame({"a": [1]}),
    "_hidden": 1,
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT '{x}' LIMIT 3", "SELECT '{x}' LIMIT 3"),
        ("SELECT * FROM {{ table }} WHERE i > {{ low }}", "SELECT * FROM my_table WHERE i > 3"),
        ("WITH model.hidden_units = {{ units }}", "WITH model.hidden_units = [10, 20]"),
        ("{{ rate }} {{ many }} {{ settings.rate }}", "0.5 7 0.25"),
        ("{% for u in units %}{{ u }} {% endfor %}", "10 20 "),
    ],
)
def test_braces_take_the_text_of_a_variable(text: str, wanted: str) -> None:
    assert fill_variables(text, NAMES, "duckdb") == wanted


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("SELECT 1,\n  {{ loww }}", "loww", "the variable loww is not given", "did you mean low?"),
        ("SELECT {{ zzz }}", "zzz", "the variable zzz is not given", "set zzz in a cell before this one"),
        ("SELECT\n {{ df }}", "{{ df }}", "df is a DataFrame, and SQL takes numbers, texts", ""),
        ("{{ _hidden }}", "_hidden", "the variable _hidden is not given", ""),
        ("{{ name.__class__ }}", "{{ name.__class__ }}", "SecurityError", ""),
        ("SELECT 1,\n :loww", ":loww", "the variable loww is not given", "did you mean low?"),
        ("SELECT :df", ":df", "df is a DataFrame, and SQL takes numbers, texts", ""),
        ("SELECT :settings", ":settings", "settings is a dict", ""),
    ],
)
def test_what_is_not_there_or_no_value_is_pointed_at(text: str, place: str, message: str, hint: str) -> None:
    with pytest.raises(SQLFlowError) as raised:
        fill_variables(text, NAMES, "duckdb")
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == place


def test_a_notebook_without_variables_says_that_one_is_missing() -> None:
    with pytest.raises(SQLFlowError, match="the variable x is not given"):
        fill_variables("SELECT {{ x }}", {"In": [], "_": 1}, "duckdb")


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "mysql", "postgres", "maxcompute"])
def test_a_parameter_is_a_literal_that_cannot_end_early(dialect: str) -> None:
    text = fill_variables("SELECT 1 WHERE k = :name AND i IN :units AND x < :price", NAMES, dialect)
    quoted = r"'O\'Slo \\ ; --'" if dialect == "maxcompute" else "'O''Slo \\ ; --'"
    quoted = "'O''Slo \\\\ ; --'" if dialect == "mysql" else quoted
    assert text == f"SELECT 1 WHERE k = {quoted} AND i IN (10, 20) AND x < 1.50"
    assert len(sqlflow_edl.parse(text, dialect)) == 1


def test_a_literal_is_the_value_that_it_was(url: str) -> None:
    """But a date where the database has none: SQLite has it as a text."""
    text = "SELECT :name AS a, :day AS b, :nothing AS c, :rate AS d, :name IN :names AS e"
    with sqlflow_edl.connect(url) as session:
        [result] = session.run(fill_variables(text, NAMES, session.dialect))
        [row] = result.to_arrow().to_pylist()
    row["b"] = str(row["b"])
    assert list(row.values()) == [NAMES["name"], "2024-01-02", None, 0.5, False]


def test_a_parameter_stands_in_the_query_of_our_statements_too() -> None:
    text = fill_variables(
        "SELECT * FROM t WHERE i > :low TO TRAIN my:low LABEL i INTO m", {"low": 3}, "duckdb"
    )
    assert text == "SELECT * FROM t WHERE i > 3 TO TRAIN my:low LABEL i INTO m"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':low' -- :low",
        "SELECT x::low, x ::low",
        "SELECT x[1:low], x[:low], x[1 :low]",
        "SELECT {'a':low, 'b' :low}",
        'SELECT ":low" /* :low */',
        "SELECT $$ :low $$",
    ],
)
def test_other_colons_belong_to_the_sql(text: str) -> None:
    assert fill_variables(text, NAMES, "duckdb") == text
