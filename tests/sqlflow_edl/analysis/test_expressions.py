"""What hints write, which may be copied into the statement as it stands."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError
from sqlflow_edl.analysis import expressions
from sqlflow_edl.session.session import Session


@pytest.mark.parametrize(
    ("column", "in_query", "in_column"),
    [
        ("age", "age", "age"),
        ("größe", "größe", "größe"),
        ("order", '"order"', "`order`"),
        ("Group", '"Group"', "`Group`"),
        ("NULL", '"NULL"', "`NULL`"),
        ("at", '"at"', "`at`"),
        ("offset", '"offset"', "`offset`"),
        ("a b", '"a b"', "`a b`"),
        ('a"`b', '"a""`b"', '`a"``b`'),
    ],
)
def test_a_name_is_quoted_where_it_has_to_be(column: str, in_query: str, in_column: str) -> None:
    assert expressions.name(column, "duckdb") == in_query
    assert expressions.name(column, "mysql") == expressions.argument(column) == in_column


@pytest.mark.parametrize(
    ("column", "wrong", "right"),
    [
        ("city", "STANDARDIZE(`order`)", "VOCABULARIZE(`order`)"),
        ("height", "VOCABULARIZE(`order`)", "BUCKETIZE(`order`, 10)"),
        ("balance", "LOG(`order`)", "STANDARDIZE(`order`)"),
        ("age", "CATEGORY_ID(`order`, 3)", "CATEGORY_ID(`order`, 70)"),
    ],
)
def test_what_a_hint_says_of_a_reserved_word_is_right_in_every_database(
    session: Session, column: str, wrong: str, right: str
) -> None:
    selected = f"SELECT {column} AS {expressions.name('order', session.dialect)}, income FROM people"
    train = f"{selected} TO TRAIN LinearRegressor COLUMN {{}} LABEL income INTO m"
    with pytest.raises(SemanticError) as raised:
        session.compile(train.format(wrong))
    assert right in (raised.value.hint or "")
    [compiled] = session.compile(train.format(right))
    assert compiled.spec.features


@pytest.mark.parametrize(
    ("reference", "written"),
    [
        ("m@2", "m"),
        ("clinic.tumours", "clinic.tumours"),
        ("my model@1", "`my model`"),
        ("a.my b", "a.`my b`"),
    ],
)
def test_a_model_is_written_as_a_clause_takes_it(reference: str, written: str) -> None:
    assert expressions.model(reference) == written
