"""Features that tell NULL and unseen values from each other, by the kind of model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edl import spec
from sqlflow_edl.session.session import Session
from tests.sql_cases import FIXTURES

CITIES = tuple(f"city {place}" for place in range(11))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session("duckdb:") as opened:
            opened.run((FIXTURES / "reported" / "null_and_unseen.sql").read_text("utf-8"))
            yield opened


def features(session: Session, text: str) -> tuple[spec.Feature, ...]:
    [compiled] = session.compile(f"SELECT {text} INTO m")
    return compiled.spec.features


def vocabulary(session: Session, text: str) -> spec.Vocabulary:
    [feature] = features(session, text)
    category = spec.category_of(feature)
    assert isinstance(category, spec.Vocabulary)
    return category


def test_trees_take_an_unseen_value_as_the_most_frequent_one(session: Session) -> None:
    assert (
        vocabulary(session, "city, y FROM cities TO TRAIN BoostedTreesRegressor LABEL y").unseen == "frequent"
    )


def test_trees_learn_unseen_values_from_those_that_have_no_id(session: Session) -> None:
    found = vocabulary(
        session,
        "city, y FROM rare TO TRAIN BoostedTreesRegressor COLUMN VOCABULARIZE(city, min_count=2) LABEL y",
    )
    assert (found.unseen, found.size) == ("other", 15)


@pytest.mark.parametrize("model", ["LinearRegressor", "DNNRegressor", "DeepFMRegressor"])
def test_a_network_has_an_id_for_null_and_one_for_unseen_values(session: Session, model: str) -> None:
    for feature in features(session, f"city, y FROM cities TO TRAIN {model} LABEL y"):
        assert spec.category_of(feature).unseen == "other"


def test_null_is_unseen_where_training_has_none(session: Session) -> None:
    text = "city, y FROM cities WHERE city IS NOT NULL TO TRAIN LinearRegressor LABEL y"
    assert not vocabulary(session, text).unseen


@pytest.mark.parametrize("model", ["LinearRegressor", "BoostedTreesRegressor"])
def test_null_has_statistics_of_its_own(session: Session, model: str) -> None:
    found = features(
        session,
        f"city, y FROM cities TO TRAIN {model} COLUMN TARGET_ENCODE(city), COUNT_ENCODE(city) LABEL y",
    )
    assert [feature.nulls for feature in found] == [True, True]  # type: ignore[union-attr]
    assert {spec.category_of(feature).unseen for feature in found} == {"other"}


def test_a_cross_has_the_most_frequent_value_for_unseen_ones(session: Session) -> None:
    text = "city, size, y FROM cities TO TRAIN LinearRegressor COLUMN CROSS([VOCABULARIZE(city), size], 99) LABEL y"
    text = text.replace("size, y", "size::INT AS size, y")
    [feature] = features(session, text)
    crossed = spec.category_of(feature)
    assert isinstance(crossed, spec.Cross)
    assert crossed.columns[0] == spec.Vocabulary("city", tuple(sorted(CITIES)), "frequent")


@pytest.mark.parametrize(
    "item", ["x", "STANDARDIZE(x)", "NORMALIZE(x)", "NUMERIC(x)", "PERIODIC(x)", "LOG(x + 2)"]
)
def test_a_number_that_is_null_in_training_rows_has_an_indicator(session: Session, item: str) -> None:
    found = features(session, f"x, z, flag FROM halves TO TRAIN LinearClassifier COLUMN {item}, z LABEL flag")
    number, indicator, other = found
    [source] = spec.sources(number)
    assert (indicator, next(spec.sources(other))) == (spec.IsNull(source), "z")


@pytest.mark.parametrize(
    ("model", "item"),
    [("LinearClassifier", "PLE(x)"), ("BoostedTreesClassifier", "x"), ("DNNClassifier", "z")],
)
def test_a_number_that_tells_null_by_itself_or_has_none_has_no_indicator(
    session: Session, model: str, item: str
) -> None:
    found = features(session, f"x, z, flag FROM halves TO TRAIN {model} COLUMN {item} LABEL flag")
    assert not [feature for feature in found if isinstance(feature, spec.IsNull)]


def test_the_plan_says_why_there_is_an_indicator(session: Session) -> None:
    [shown] = session.run("EXPLAIN SELECT x, z, flag FROM halves TO TRAIN LinearClassifier LABEL flag INTO m")
    assert "NULL in" in str(shown.to_arrow().to_pylist())


def test_a_model_without_a_label_measures_no_distance_to_null(session: Session) -> None:
    assert len(features(session, "x, z FROM halves TO TRAIN KMeans WITH model.n_clusters = 2")) == 2


def test_only_a_network_with_categories_drops_values(session: Session) -> None:
    def rate(text: str) -> float:
        [compiled] = session.compile(f"SELECT {text} INTO m")
        return compiled.spec.training.unseen_rate or 0.0

    assert rate("city, y FROM cities TO TRAIN LinearRegressor WITH optimizer = adam LABEL y") == 0.02
    assert rate("city, y FROM cities TO TRAIN LinearRegressor LABEL y") == 0  # solved for
    assert rate("city, y FROM cities TO TRAIN LinearRegressor WITH train.unseen_rate = 0.05 LABEL y") == 0.05
    assert rate("city, y FROM cities TO TRAIN DNNRegressor COLUMN HASH(city) LABEL y") == 0
    assert rate("size, y FROM cities TO TRAIN DNNRegressor LABEL y") == 0
    assert rate("city, y FROM cities TO TRAIN BoostedTreesRegressor LABEL y") == 0
