"""Users and items from TRAIN to PREDICT, by alternating least squares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import SQLFlowError
from sqlflow_edl.session.session import Session
from tests.databases import fill, on_each
from tests.sessions import open_in_folder

rng = np.random.default_rng(4)
WHOLE = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40)) + rng.normal(size=60)[:, None] + 3
SEEN = np.nonzero(rng.random(WHOLE.shape) < 0.5)
NOISE = rng.normal(size=len(SEEN[0])) / 5
RATINGS = pa.table(
    {
        "visitor": [f"u{user}" for user in SEEN[0]],
        "film": SEEN[1],
        "stars": WHOLE[SEEN] + NOISE,
        "is_test": rng.random(len(SEEN[0])) < 0.1,
    }
)
RATED = "SELECT visitor, film, stars FROM ratings WHERE NOT is_test"
TRAIN = f"{RATED} TO TRAIN MatrixFactorization WITH model.num_factors = 2"
CLAUSES = "COLUMN VOCABULARIZE(visitor), VOCABULARIZE(film) LABEL stars"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("ratings")) as opened:
        fill(opened, "ratings", RATINGS)
        opened.run(f"{TRAIN}, model.l2_reg = 0.02, validation.fraction = 0 {CLAUSES} INTO films")
        yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def test_ratings_that_were_held_out_are_predicted(session: Session) -> None:
    [row] = last(session, "SELECT * FROM ratings WHERE is_test TO EVALUATE films").to_pylist()
    assert row["rmse"] < 0.25 * np.std(RATINGS["stars"])
    curve = last(session, "SELECT * FROM ML.TRAINING_INFO(MODEL films)").to_pylist()
    assert curve[-1]["loss"] < 0.03  # of the factors, not of the ratings before them


def test_an_unknown_user_gets_the_mean_and_the_bias_of_the_item(session: Session) -> None:
    rows = last(
        session, "SELECT 'nobody' AS visitor, film FROM range(40) AS films(film) TO PREDICT USING films"
    )
    weights = last(session, "SELECT * FROM ML.WEIGHTS(MODEL films)").to_pylist()
    mean = weights[0]["intercept"]
    biases = {row["feature"]: row["intercept"] for row in weights if row["processed_input"] == "film"}
    for row in rows.to_pylist():
        assert row["stars"] == pytest.approx(mean + biases[str(row["film"])], abs=1e-5)


@on_each("url", always=())
def test_every_database_has_the_same_factors(url: str) -> None:
    """Compare predictions, because the order of a vocabulary is a detail."""
    with sqlflow_edl.connect(url) as session:
        fill(session, "ratings", RATINGS)
        session.run(
            "SELECT visitor, film, stars FROM ratings TO TRAIN MatrixFactorization WITH model.num_factors = 2, "
            f"model.l2_reg = 0.02, validation.fraction = 0 {CLAUSES} INTO films"
        )
        rows = last(session, "SELECT visitor, film, stars FROM ratings TO PREDICT USING films").to_pylist()
    errors = [row["stars"] - (WHOLE[int(row["visitor"][1:]), int(row["film"])]) for row in rows]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(0.1, abs=0.06)


def test_implicit_feedback_predicts_preferences(session: Session) -> None:
    session.run(
        "SELECT visitor, film, stars FROM ratings WHERE stars > 4 TO TRAIN MatrixFactorization "
        f"WITH model.num_factors = 3, model.feedback_type = implicit, validation.fraction = 0 {CLAUSES} INTO seen"
    )
    chosen = last(session, "SELECT visitor, film FROM ratings WHERE stars > 4 TO PREDICT USING seen")["stars"]
    others = last(session, "SELECT visitor, film FROM ratings WHERE stars < 2 TO PREDICT USING seen")["stars"]
    assert np.mean(chosen) > 0.8
    assert np.mean(others) < 0.5


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TRAIN} COLUMN VOCABULARIZE(visitor) LABEL stars INTO m", "two categories, a user and an item"),
        (
            f"{TRAIN} COLUMN VOCABULARIZE(visitor), film LABEL stars INTO m",
            "and the columns are visitor and film",
        ),
        (f"{TRAIN}, model.wals_alpha = 3 {CLAUSES} INTO m", "wals_alpha is of implicit feedback"),
        (f"{TRAIN}, train.batch_size = 8 {CLAUSES} INTO m", "solved for in one pass"),
    ],
)
def test_other_columns_and_settings_are_refused(session: Session, text: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        session.compile(text)


def test_choices_without_a_number_are_learned_and_ratings_without_a_difference_are_not(
    session: Session,
) -> None:
    """More factors than users are no hindrance."""
    chosen = "SELECT visitor, film, 1 AS stars FROM ratings WHERE film < 3 TO TRAIN MatrixFactorization WITH"
    session.run(f"{chosen} model.num_factors = 30, model.feedback_type = implicit {CLAUSES} INTO chosen")
    found = last(session, "SELECT visitor, film FROM ratings WHERE film < 3 TO PREDICT USING chosen")["stars"]
    assert found.null_count == 0
    assert np.mean(found) > 0.8
    with pytest.raises(SQLFlowError, match="stars is 1 in every training row"):
        session.run(f"{chosen} model.num_factors = 3 {CLAUSES} INTO rated")
