"""Weights of rows and classes as a statement writes them."""

from __future__ import annotations

import pytest

from edl import spec
from sqlflow_edl.session.session import Session
from tests.databases import spelt


def compiled(session: Session, text: str) -> spec.JobSpec:
    [found] = session.compile(text)
    return found.spec


def test_a_column_of_weights_is_no_feature(session: Session) -> None:
    found = compiled(
        session, "SELECT age AS Weight, city, income FROM people TO TRAIN DNNRegressor "
        "WITH weight_column = weight COLUMN * VALIDATE 0 LABEL income INTO m"
    )  # fmt: skip
    assert found.weights == spec.Weights(spelt("Weight", session), 44.5)
    assert [column for feature in found.features for column in spec.source_columns(feature)] == ["city"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("{'red': 2, blue: 0.5}", (0.5, 1.0, 2.0)),
        ("{green: 0}", (1.0, 0.0, 1.0)),
    ],
)
def test_classes_weigh_what_is_written_and_1(
    session: Session, written: str, wanted: tuple[float, ...]
) -> None:
    found = compiled(
        session, f"SELECT age, team FROM people TO TRAIN DNNClassifier WITH class_weights = {written} LABEL team INTO m"
    )  # fmt: skip
    assert found.label.classes == ("blue", "green", "red")  # type: ignore[union-attr]
    assert found.loss.params["class_weights"] == wanted


def test_booleans_and_numbers_name_their_classes(session: Session) -> None:
    for label, written in (
        ("member", "{true: 3}"),
        ("CASE WHEN member THEN 1 ELSE 0 END AS member", "{1: 3}"),
    ):
        select = f"SELECT age, {label} FROM people TO TRAIN DNNClassifier"
        found = compiled(session, f"{select} WITH class_weights = {written} LABEL member INTO m")
        assert found.loss.params["class_weights"] == (1.0, 3.0)


def test_balanced_classes_weigh_alike_and_a_row_1_on_average(session: Session) -> None:
    select = "SELECT age, CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS kind FROM people"
    found = compiled(
        session, f"{select} TO TRAIN DNNClassifier WITH class_weights = auto VALIDATE 0 LABEL kind INTO m"
    )
    rows = session.source.execute(f"SELECT kind, count(*) AS n FROM ({select}) t GROUP BY kind ORDER BY kind")
    assert rows is not None
    counts = rows.read_all()["n"].to_pylist()
    weights = found.loss.params["class_weights"]
    assert isinstance(weights, tuple)
    totals = [count * weight for count, weight in zip(counts, weights, strict=True)]  # type: ignore[operator]
    assert totals == pytest.approx([sum(counts) / 2] * 2)
