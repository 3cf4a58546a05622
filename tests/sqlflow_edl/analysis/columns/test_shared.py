"""EMBEDDING of several columns that look their vectors up in one table."""

from __future__ import annotations

import pytest

from edl import spec
from sqlflow_edl.session.session import Session

TEAMS_AND_CITIES = ("blue", "green", "red", "bonn", "lima", "oslo", "rome")


def embedded(session: Session, items: str, table: str = "people") -> tuple[spec.Feature, ...]:
    """The embeddings that share a table."""
    settings = "WITH validation.fraction = 0"
    [only] = session.compile(
        f"SELECT * FROM {table} TO TRAIN DNNRegressor {settings} COLUMN {items} LABEL income INTO m"
    )
    features = only.spec.features
    return tuple(each for each in features if isinstance(each, spec.Embedding) and each.table)


def of(
    *categories: spec.Category, dim: int = 2, table: int = 1, combiner: str = "sum"
) -> tuple[spec.Embedding, ...]:
    return tuple(spec.Embedding(each, dim, combiner, table=table) for each in categories)


PLACES = [spec.Vocabulary(name, TEAMS_AND_CITIES, "other") for name in ("city", "team")]
DIGITS = [spec.ListOf(spec.Vocabulary(name, ("1", "2", "3", "two"))) for name in ("uneven", "wrong")]


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("EMBEDDING([city, team], 8)", of(*PLACES, dim=8)),
        ('shared_embedding_columns(["city|team"])', of(*PLACES, dim=4)),
        (
            "EMBEDDING([VOCABULARIZE(city, 3), VOCABULARIZE(team, 3)], 2)",
            of(*(spec.Vocabulary(name, TEAMS_AND_CITIES[:3], "other") for name in ("city", "team"))),
        ),
        (
            "EMBEDDING([HASH(city), HASH(team)], 2)",
            of(spec.HashBucket("city", 21), spec.HashBucket("team", 21)),
        ),
        (
            "EMBEDDING([CATEGORY_ID(age, 99), CATEGORY_ID(age + 20, 99)], 2)",
            of(*(spec.CategoryId(age, 99, "other") for age in ("age", spec.Computed("+", ("age", 20.0))))),
        ),
        (
            "EMBEDDING([BUCKET(age, [30, 40]), BUCKET(height, [30, 40])], 2)",
            of(spec.Bucket("age", (30.0, 40.0)), spec.Bucket("height", (30.0, 40.0))),
        ),
        (
            "EMBEDDING([city], 2), EMBEDDING([team, city], 2)",
            (
                *of(spec.Vocabulary("city", ("bonn", "lima", "oslo", "rome"), "other")),
                *of(*PLACES[::-1], table=2),
            ),
        ),
    ],
)
def test_columns_in_brackets_share_ids_and_vectors(
    session: Session, item: str, wanted: tuple[spec.Feature, ...]
) -> None:
    assert embedded(session, item) == wanted


@pytest.mark.soak
def test_lists_share_vectors_whatever_separates_their_items(session: Session) -> None:
    assert embedded(session, "EMBEDDING([uneven, wrong], 2, mean)", "packed") == of(*DIGITS, combiner="mean")
    found = embedded(session, "EMBEDDING([uneven, halves], 2)", "packed")
    first, second = (each.category for each in found)  # type: ignore[union-attr]
    assert (first.delimiter, second.delimiter) == (",", ";")
    assert first.category.values == second.category.values
    assert {"1", "3", "24.5"} < set(first.category.values)
