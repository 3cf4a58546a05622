"""What functions of the COLUMN language make of numbers, and of cells that hold several."""

from __future__ import annotations

import pytest

from edl import spec
from sqlflow_edl.session.session import Session
from tests.databases import has_lists


def column(session: Session, item: str) -> spec.Feature:
    name = next(name for name in ("age", "point", "halves", "pair", "written") if name in item)
    text = f"SELECT {name}, income FROM packed TO TRAIN DNNRegressor COLUMN {item} LABEL income INTO m"
    [only] = session.compile(text)
    return only.spec.features[0]


POINT = spec.Vector("point", (24.5, 49.0, 7.0))
HALVES = spec.Vector("halves", (12.25, 2.0), delimiter=";")

# SQLite and MySQL have no lists.


@pytest.mark.variants(6)
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("DENSE(point, 3)", POINT),
        ("DENSE(point, 3, COMMA, int)", POINT),
        ("DENSE(point, none, comma)", POINT),
        ("DENSE(point)", POINT),
        ("DENSE(point, [3, 1])", POINT),
        ("NUMERIC(point, 3)", POINT),
        ("NUMERIC(DENSE(point, 3))", POINT),
        ("NUMERIC(DENSE(point), 3)", POINT),
        ('DENSE(halves, 2, ";")', HALVES),
        ("DENSE(halves, delimiter=SEMICOLON)", HALVES),
        ('NUMERIC(halves, 2, ";", dtype=FLOAT)', HALVES),
        ("DENSE(written, 1)", spec.Vector("written", (12.25,))),
        ("DENSE(age)", spec.Numeric("age", 24.5)),
        ("DENSE(age, 1)", spec.Numeric("age", 24.5)),
        ("STANDARDIZE(DENSE(age))", spec.Standardize("age", 24.5, 14.4308697)),
        ("BUCKET(DENSE(age, 1), [10])", spec.OneHot(spec.Bucket("age", (10.0,)))),
    ],
)
def test_numbers_of_a_cell_become_a_vector(session: Session, item: str, wanted: spec.Feature) -> None:
    assert column(session, item) == wanted


@has_lists
@pytest.mark.parametrize("item", ["DENSE(pair)", "NUMERIC(pair, 2)"])
def test_a_list_is_a_vector(session: Session, item: str) -> None:
    assert column(session, item) == spec.Vector("pair", (24.5, 25.5))


def test_a_vector_is_standardised_place_by_place(session: Session) -> None:
    found = column(session, "STANDARDIZE(DENSE(point))")
    assert isinstance(found, spec.Vector)
    assert found.mean == POINT.mean
    assert found.std == pytest.approx((14.43087, 28.86174, 0.0), abs=1e-5)


@pytest.mark.soak
def test_a_pattern_makes_a_vector_of_each_column(session: Session) -> None:
    text = "SELECT point, uneven, income FROM packed WHERE age <> 31 TO TRAIN DNNRegressor "
    [only] = session.compile(text + "COLUMN DENSE('.*e?[ve]en|point', 3) LABEL income INTO m")
    assert [feature.column for feature in only.spec.features] == ["point", "uneven"]  # type: ignore[union-attr]
