"""NULL is a value of its own for every model, and an unseen value is as the known ones are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from sqlflow_edl.session.session import Session
from tests.sessions import open_in_folder
from tests.sql_cases import FIXTURES

SPREAD = 95.0  # of the labels
SOAK = pytest.mark.soak


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("missing")) as opened:
        opened.run((FIXTURES / "reported" / "null_and_unseen.sql").read_text("utf-8"))
        yield opened


def predict(session: Session, train: str, column: str, values: list[str]) -> np.ndarray:
    """Predictions for these values of a column, written in SQL, with a size of 3."""
    selects = " UNION ALL ".join(
        f"SELECT {place} AS n, {value} AS {column}, 3.0::DOUBLE AS size" for place, value in enumerate(values)
    )
    *_, rows = session.run(f"{train}; SELECT * FROM PREDICT(m, ({selects})) ORDER BY n")
    return np.array(rows.to_arrow()["y"].to_pylist(), np.float64)


LONG = "train.epoch = 30, train.batch_size = 32, optimizer.learning_rate = 0.02, model.framework = torch"
NETWORKS = (
    "LinearRegressor",
    "DNNRegressor",
    "DNNLinearCombinedRegressor",
    "DeepFMRegressor",
    "RealMLPRegressor",
)


@pytest.mark.parametrize(
    ("model", "column", "slack"),
    [
        ("BoostedTreesRegressor WITH train.num_boost_round = 100", "city", 0.0),
        ("BoostedTreesRegressor WITH train.num_boost_round = 100", "place", 0.0),
        ("BoostedTreesRegressor WITH train.num_boost_round = 100, model.framework = xgboost", "city", 0.0),
        (f"LinearRegressor WITH {LONG}", "city", 0.05),
        (f"DNNRegressor WITH {LONG}", "city", 0.05),
        *(
            pytest.param(f"{name} WITH {LONG.replace('torch', framework)}", column, 0.05, marks=SOAK)
            for name in NETWORKS
            for column in ("city", "place")
            for framework in ("torch", "keras")
        ),
    ],
)
@pytest.mark.parametrize("form", ["{}", pytest.param("TARGET_ENCODE({})", marks=SOAK)])
def test_null_is_a_value_and_an_unseen_one_is_as_the_known_ones(
    session: Session, model: str, column: str, form: str, slack: float
) -> None:
    items = (
        f"COLUMN {form.format(column)}, BUCKET(size, [2, 5])"
        if form != "{}"
        else f"COLUMN VOCABULARIZE({column}), size"
    )
    train = f"SELECT {column}, size, y FROM cities TO TRAIN {model} {items} LABEL y INTO m"
    known = [f"'city {place}'" if column == "city" else str(place) for place in range(11)]
    *of_known, null, unseen = predict(
        session, train, column, [*known, "NULL", "'zzz'" if column == "city" else "99"]
    )
    assert null == pytest.approx(100, abs=0.05 * SPREAD + 1)
    slack = slack * SPREAD + 1e-9
    assert min(of_known) - slack <= unseen <= max(of_known) + slack


def test_trees_predict_an_unseen_value_as_those_that_are_rare(session: Session) -> None:
    train = (
        "SELECT city, y FROM rare TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 100 "
        "COLUMN VOCABULARIZE(city, min_count=2) LABEL y INTO m"
    )
    known, unseen = predict(session, train, "city", ["'city 3'", "'zzz'"])
    assert known == pytest.approx(3, abs=1)
    assert unseen > 40, "the values that occur once are 60, and the others at most 14"


@pytest.mark.parametrize("framework", ["torch", pytest.param("keras", marks=SOAK)])
def test_a_linear_model_learns_that_null_decides(session: Session, framework: str) -> None:
    settings = f"train.epoch = 20, train.batch_size = 32, optimizer.learning_rate = 0.01, model.framework = {framework}"
    *_, measured = session.run(
        f"SELECT * FROM halves TO TRAIN LinearClassifier WITH {settings} LABEL flag INTO m; "
        "SELECT * FROM halves TO EVALUATE m WITH validation.metrics = accuracy"
    )
    assert measured.to_arrow()["accuracy"][0].as_py() > 0.99


def test_the_weights_of_a_linear_model_name_null_and_unseen_values(session: Session) -> None:
    def weights(train: str) -> dict:
        *_, rows = session.run(f"{train} INTO m; SELECT * FROM ML.WEIGHTS(MODEL m)")
        return {row["processed_input"]: row["category_weights"] for row in rows.to_arrow().to_pylist()}

    linear = "TO TRAIN {} WITH train.epoch = 2, model.framework = torch LABEL"
    of_cities = weights(f"SELECT city, size, y FROM cities {linear.format('LinearRegressor')} y")["city"]
    assert [each["category"] for each in of_cities][-2:] == [None, "__UNSEEN__"]
    assert list(weights(f"SELECT * FROM halves {linear.format('LinearClassifier')} flag")) == [
        "x",
        "x IS NULL",
        "z",
        "__INTERCEPT__",
    ]
