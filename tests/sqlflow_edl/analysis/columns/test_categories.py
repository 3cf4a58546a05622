"""What functions of the COLUMN language make of cells that hold several ids or words."""

from __future__ import annotations

import pytest

from edl import spec
from sqlflow_edl.session.session import Session
from tests.databases import has_lists

COLUMNS = ("ids", "pairs", "words", "tags", "names")


def column(session: Session, item: str, model: str = "DNNRegressor") -> spec.Feature:
    name = next(name for name in COLUMNS if name in item)
    text = f"SELECT {name}, income FROM packed TO TRAIN {model} COLUMN {item} LABEL income INTO m"
    [only] = session.compile(text)
    return only.spec.features[0]


IDS = spec.ListOf(spec.CategoryId("ids", 20))
MORE = spec.ListOf(spec.CategoryId("ids", 128))
TAGS = spec.ListOf(spec.CategoryId("tags", 20))
PAIRS = spec.ListOf(spec.CategoryId("pairs", 20), " ", ":")
HASHED = spec.ListOf(spec.HashBucket("pairs", 128), " ", ":")
WORDS = spec.ListOf(spec.Vocabulary("words", ("red", "blue")), "|")


@pytest.mark.variants(8)
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("EMBEDDING(SPARSE(ids, 20), 4)", spec.Embedding(IDS, 4)),
        ('EMBEDDING(SPARSE(ids, 20, COMMA, "int"), 4, mean)', spec.Embedding(IDS, 4, "mean")),
        ("EMBEDDING(SPARSE(ids), 4)", spec.Embedding(IDS, 4)),
        ("EMBEDDING(SPARSE(ids, none), 4)", spec.Embedding(IDS, 4)),
        ("EMBEDDING(CATEGORY_ID(ids, 128, COMMA), 4)", spec.Embedding(MORE, 4)),
        ("EMBEDDING(CATEGORY_ID(SPARSE(ids, 20, COMMA), 128), 4)", spec.Embedding(MORE, 4)),
        ("EMBEDDING(SEQ_CATEGORY_ID(SPARSE(ids, 20, COMMA), 128), 4)", spec.Embedding(MORE, 4)),
        ("EMBEDDING(SEQ_CATEGORY_ID(ids, 128, COMMA), 4)", spec.Embedding(MORE, 4)),
        ("EMBEDDING(CATEGORY_ID(DENSE(ids, 2, COMMA), 128), 4)", spec.Embedding(MORE, 4)),
        ("SPARSE(ids, 128)", spec.Embedding(MORE, 8)),
        ("INDICATOR(SPARSE(ids, 128))", spec.OneHot(MORE)),
        ("NUMERIC(SPARSE(ids, 128))", spec.OneHot(MORE)),
        ("NUMERIC(SPARSE(ids), 128)", spec.OneHot(MORE)),
        ('INDICATOR(SPARSE(pairs, 20, " ", "int", ":", "float"))', spec.OneHot(PAIRS)),
        ("NUMERIC(SPARSE(pairs, 20, SPACE, kv_delimiter=COLON))", spec.OneHot(PAIRS)),
        ('EMBEDDING(CATEGORY_HASH(SPARSE(pairs, 20, " ", "int", ":"), 128), 4)', spec.Embedding(HASHED, 4)),
        (
            'EMBEDDING(WEIGHTED_CATEGORY(CATEGORY_HASH(SPARSE(pairs, 20, " ", "int", ":"), 128)), 4)',
            spec.Embedding(HASHED, 4),
        ),
        ("INDICATOR(VOCABULARIZE(words, min_count=2, delimiter=PIPE))", spec.OneHot(WORDS)),
        ("VOCABULARIZE(words, 2, 2, '|')", spec.OneHot(WORDS)),
        (
            "INDICATOR(CATEGORY_HASH(words, 9, '|'))",
            spec.OneHot(spec.ListOf(spec.HashBucket("words", 9), "|")),
        ),
    ],
)
def test_items_of_a_cell_become_lists_of_ids(session: Session, item: str, wanted: spec.Feature) -> None:
    assert column(session, item) == wanted


@has_lists
@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("EMBEDDING(SPARSE(tags, 20), 4)", spec.Embedding(TAGS, 4)),
        ("EMBEDDING(CATEGORY_ID(tags, 20), 4)", spec.Embedding(TAGS, 4)),
        (
            "VOCABULARIZE(names)",
            spec.OneHot(spec.ListOf(spec.Vocabulary("names", ("t0", "t1", "t2")))),
        ),
    ],
)
def test_items_of_a_list_become_ids(session: Session, item: str, wanted: spec.Feature) -> None:
    assert column(session, item) == wanted


@pytest.mark.parametrize(
    ("model", "items", "wanted"),
    [
        ("LinearRegressor", "SPARSE(ids, 20)", spec.OneHot(IDS)),
        (
            "LinearRegressor",
            "SPARSE(ids, 2000)",
            spec.Embedding(spec.ListOf(spec.CategoryId("ids", 2000)), 1),
        ),
        ("DeepFMRegressor", "INDICATOR(SPARSE(ids, 20))", spec.Embedding(IDS, 8)),
    ],
)
def test_lists_enter_a_model_as_other_categories_do(
    session: Session, model: str, items: str, wanted: spec.Feature
) -> None:
    assert column(session, items, model) == wanted


def test_the_wide_part_has_a_weight_for_each_id_of_a_list(session: Session) -> None:
    text = (
        "SELECT ids, words, income FROM packed TO TRAIN DNNLinearCombinedRegressor "
        "COLUMN SPARSE(ids, 20), CATEGORY_HASH(words, 2000, PIPE) LABEL income INTO m"
    )
    [only] = session.compile(text)
    many = spec.ListOf(spec.HashBucket("words", 2000), "|")
    assert only.spec.inputs == {
        "wide": (spec.OneHot(IDS), spec.Embedding(many, 1)),
        "deep": (spec.Embedding(IDS, 4), spec.Embedding(many, 32)),
    }


AGE = spec.Bucket("age", (10.0, 20.0))
GROUP = spec.Concat((IDS, AGE, spec.HashBucket("words", 9)))
CONCAT = "CONCAT(SPARSE(ids, 20), BUCKET(age, [10, 20]), HASH(words, 9))"


def inputs(session: Session, columns: str, model: str) -> dict[str, tuple[spec.Feature, ...]]:
    text = f"SELECT ids, age, words, income FROM packed TO TRAIN {model} {columns} LABEL income INTO m"
    [only] = session.compile(text)
    return only.spec.inputs


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        (f"EMBEDDING({CONCAT}, 4, mean)", spec.Embedding(GROUP, 4, "mean")),
        (f"INDICATOR({CONCAT})", spec.OneHot(GROUP)),
        (CONCAT, spec.Embedding(GROUP, 8)),
        ("CONCAT([SPARSE(ids, 20), BUCKET(age, [10, 20]), HASH(words, 9)])", spec.Embedding(GROUP, 8)),
    ],
)
def test_several_categories_become_one(session: Session, item: str, wanted: spec.Feature) -> None:
    assert inputs(session, f"COLUMN {item}", "DNNRegressor") == {"features": (wanted,)}


def test_each_of_several_categories_has_its_own_statistics(session: Session) -> None:
    item = "CONCAT(BUCKETIZE(age, 2), VOCABULARIZE(words, 2, 2, PIPE), SPARSE(ids))"
    [found] = inputs(session, f"COLUMN {item}", "DNNRegressor")["features"]
    words = spec.ListOf(spec.Vocabulary("words", ("red", "blue")), "|")
    assert found == spec.Embedding(spec.Concat((spec.Bucket("age", (24.5,)), words, IDS)), 4)


def test_items_may_stand_together_and_name_what_others_use(session: Session) -> None:
    columns = (
        f"COLUMN COMBINE(EMBEDDING({CONCAT} AS both, 4), age) FOR deep COLUMN EMBEDDING(both, 1) FOR wide"
    )
    found = inputs(session, columns, "DNNLinearCombinedRegressor")
    assert found["wide"] == (spec.OneHot(GROUP),)
    assert found["deep"][0] == spec.Embedding(GROUP, 4)
    assert [type(each) for each in found["deep"]] == [spec.Embedding, spec.Standardize]
