"""Which features enter which input of a model."""

from __future__ import annotations

import pytest

from edl import spec
from sqlflow_edl.session.session import Session

CITY = spec.Vocabulary("city", ("bonn", "lima", "oslo", "rome"))
CROSS = spec.Cross(("city", "team"), 90)
MANY = spec.HashBucket("flat", 100)


def inputs(
    session: Session, columns: str, model: str = "DNNLinearCombinedRegressor", select: str = "age, city"
) -> dict[str, tuple[spec.Feature, ...]]:
    text = f"SELECT {select}, income FROM people TO TRAIN {model} {columns} LABEL income INTO m"
    [only] = session.compile(text)
    return only.spec.inputs


def age(session: Session) -> spec.Feature:
    return inputs(session, "", "LinearRegressor", "age")["features"][0]


def test_numbers_are_deep_and_categories_both(session: Session) -> None:
    found = inputs(session, "COLUMN HASH(flat, 100)", select="flat, age, city")
    assert found == {
        "wide": (spec.OneHot(MANY), spec.OneHot(CITY)),
        "deep": (spec.Embedding(MANY, 8), age(session), spec.OneHot(CITY)),
    }


def test_crosses_and_indicators_are_wide_and_embeddings_deep(session: Session) -> None:
    items = "COLUMN CROSS([city, team], 90), INDICATOR(city), EMBEDDING(city, 3)"
    assert inputs(session, items, select="age, city, team") == {
        "wide": (spec.OneHot(CROSS), spec.OneHot(CITY)),
        "deep": (spec.Embedding(CITY, 3), age(session)),
    }


@pytest.mark.variants(4)
@pytest.mark.parametrize("wide", ["wide", "LINEAR", "linear_feature_columns"])
@pytest.mark.parametrize("deep", ["deep", "dnn", "dnn_feature_columns"])
def test_for_decides_where_it_is_written(session: Session, wide: str, deep: str) -> None:
    found = inputs(session, f"COLUMN age FOR {wide} COLUMN city FOR {deep}")
    assert found == {"wide": (age(session),), "deep": (spec.OneHot(CITY),)}


def test_a_named_category_has_a_form_of_its_own_in_each_part(session: Session) -> None:
    found = inputs(session, "COLUMN BUCKETIZE(age, 2) AS a FOR wide, EMBEDDING(a, 3) FOR deep", select="age")
    bucket = spec.Bucket("age", (44.5,))
    assert found == {"wide": (spec.OneHot(bucket),), "deep": (spec.Embedding(bucket, 3),)}


@pytest.mark.parametrize("quote", ['"', "`"])
def test_a_quoted_name_stands_wherever_a_name_does(session: Session, quote: str) -> None:
    items = "COLUMN @age@ + 1, MEAN(@age@) - @age@, IMPUTE(@age@), LN(@age@) AS `the log`, BUCKETIZE(@the log@, 2)"
    bare = items.replace("@the log@", "log").replace("`the log`", "log").replace("@", "")
    written = items.replace("@", quote)
    assert inputs(session, written, "LinearRegressor", "age") == inputs(
        session, bare, "LinearRegressor", "age"
    )


def test_what_for_does_not_mention_is_placed_by_its_kind(session: Session) -> None:
    found = inputs(session, "COLUMN city FOR deep", select="city, age, team")
    team = spec.OneHot(spec.Vocabulary("team", ("blue", "green", "red")))
    assert found == {"wide": (team,), "deep": (spec.OneHot(CITY), age(session), team)}


def test_an_empty_part_sees_what_the_other_sees(session: Session) -> None:
    assert inputs(session, "", select="age") == {"wide": (age(session),), "deep": (age(session),)}
    found = inputs(session, "COLUMN CROSS([city, team], 90)", select="city, team")
    assert found == {"wide": (spec.OneHot(CROSS),), "deep": (spec.Embedding(CROSS, 8),)}


def test_fractional_numbers_are_crossed_by_their_buckets(session: Session) -> None:
    found = inputs(session, "COLUMN CROSS([city, height], 90)", select="city, height")
    written = inputs(session, "COLUMN CROSS([city, BUCKETIZE(height, 10)], 90)", select="city, height")
    assert found == written
    assert isinstance(found["wide"][0].category.columns[1], spec.Bucket)


def test_what_says_how_a_column_is_read_is_crossed_as_the_column(session: Session) -> None:
    found = inputs(
        session, "COLUMN CROSS([DENSE(city, 1, SPACE), NUMERIC(team, 2)], 90)", select="city, team"
    )
    assert found["wide"] == (spec.OneHot(CROSS),)


def test_an_embedding_in_the_wide_part_is_a_weight_for_each_id(session: Session) -> None:
    found = inputs(
        session, "COLUMN EMBEDDING(city, 4) FOR wide, age FOR deep".replace(", age", " COLUMN age")
    )
    assert found["wide"] == (spec.OneHot(CITY),)


def test_a_large_category_stays_one_hot_in_the_wide_part(session: Session) -> None:
    found = inputs(
        session, "COLUMN HASH(city, 500000) FOR wide, age FOR deep".replace(", age", " COLUMN age")
    )
    assert found["wide"] == (spec.OneHot(spec.HashBucket("city", 500000)),)


def test_deepfm_makes_every_category_an_embedding_of_one_length(session: Session) -> None:
    items = "COLUMN INDICATOR(city), HASH(flat, 100), EMBEDDING(city, 5), age WITH model.embedding_dim = 5"
    assert inputs(session, items, "DeepFM", "age, city, flat") == {
        "features": (spec.Embedding(CITY, 5), spec.Embedding(MANY, 5), age(session))
    }


def test_a_model_of_one_input_may_name_it(session: Session) -> None:
    assert inputs(session, "COLUMN age FOR feature_columns", "DNNRegressor", "age") == {
        "features": (age(session),)
    }


@pytest.mark.parametrize(
    ("model", "label", "chosen"),
    [
        ("DNN", "member", "DNNClassifier"),
        ("linear", "income", "LinearRegressor"),
        ("DeepFM", "member", "DeepFMClassifier"),
        ("deep_fm", "age % 2", "DeepFMClassifier"),
        ("DeepFM", "age % 3", "DeepFMRegressor"),
        ("DNNLinearCombined", "age % 3", "DNNLinearCombinedClassifier"),
    ],
)
def test_a_family_of_models_follows_the_label(session: Session, model: str, label: str, chosen: str) -> None:
    [only] = session.compile(f"SELECT city, {label} AS y FROM people TO TRAIN {model} LABEL y INTO m")
    assert only.spec.model.name == chosen
    assert only.notes[0].startswith(f"{chosen} is chosen: y is ")
