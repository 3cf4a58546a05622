"""The plan of a search: EXPLAIN of the short form."""

from __future__ import annotations

import pytest

from sqlflow_edl.analysis.search import portfolio
from sqlflow_edl.session.session import Session
from tests.sqlflow_edl.reports.test_plan import explained


@pytest.fixture(autouse=True)
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "is_installed", lambda framework: True)


@pytest.mark.soak
def test_a_search_shows_its_limits_and_where_they_come_from(session: Session) -> None:
    found = explained(
        session, "SELECT age, team, income FROM people LABEL income WITH auto.max_members = 2 INTO m"
    )
    assert found["model", "Ensemble"][1] == "no model is named"
    assert found["model", "name"][0] == "m"
    assert found["label", "income"][0].startswith("a number")
    assert found["search", "time_limit"] == ("60 s", "default for 1,200 rows")
    assert found["search", "metric"] == ("rmse", "default")
    assert found["search", "folds"] == ("5", "default for 1,200 rows")
    assert found["search", "max_members"] == ("2", "written")


def test_a_search_shows_its_candidates_in_their_order(session: Session) -> None:
    found = explained(
        session, "SELECT age, team FROM people LABEL team WITH auto.models = [lightgbm, linear] INTO m"
    )
    shown = [(name, value) for (section, name), (value, _) in found.items() if section == "candidates"]
    assert shown[0] == ("1 BoostedTreesClassifier (lightgbm)", "learning_rate 0.05")
    assert any("LinearClassifier (torch)" in name for name, _ in shown)
    assert len(shown) == 11
    assert shown[-1] == ("others", "24 with other settings")
    assert found["search", "trials"] == (
        "at most 34 candidates",
        "after the first 10, chosen by the results",
    )
    assert ("features", "age") not in found


def test_a_search_shows_its_columns_and_the_split_of_its_rows(session: Session) -> None:
    found = explained(
        session,
        "SELECT age, city, flat, income FROM people LABEL income "
        "WITH validation.test_fraction = 0.25, validation.fraction = 0.25 INTO m",
    )
    assert [name for section, name in found if section == "columns"] == ["age", "city"]
    assert found["left out", "flat"][1].startswith("its text is different in every row")
    assert found["rows", "total"] == ("1,200", "counted now; pinned when the search starts")
    assert found["rows", "training"] == ("600", "")
    assert found["rows", "validation"] == ("300", "choose the models and their length")
    assert found["rows", "test"][0] == "300"
    folds = explained(session, "SELECT age, income FROM people LABEL income WITH auto.folds = 3 INTO m")
    assert folds["rows", "training"] == ("800", "in each fold")
    assert folds["rows", "validation"] == ("400", "in each fold, choose the models and their length")
    assert folds["rows", "split"] == ("at random", "default: income is a number")


def test_the_metric_decides_if_whole_numbers_are_classes(session: Session) -> None:
    few, many = "CAST(age AS INTEGER) % 5", "CAST(age AS INTEGER)"
    for label, metric, kind in (
        (few, "mae", "a number"),
        (many, "accuracy", "50 classes"),
        (few, "auc", "5 classes"),
    ):
        query = f"SELECT city, {label} AS y FROM people WHERE age IS NOT NULL"
        found = explained(
            session, f"{query} LABEL y WITH auto.models = lightgbm, auto.metric = {metric} INTO m"
        )
        assert found["label", "y"][0].startswith(kind)
        assert found["label", "y"][1] == f"by the metric {metric}"


@pytest.mark.parametrize(
    ("label", "kind", "why"),
    [
        (
            "CAST(age AS INTEGER) % 5",
            "5 classes",
            "few different whole numbers are classes; write auto.metric = rmse",
        ),
        (
            "CAST(age AS INTEGER) * 7",
            "a number",
            "many different whole numbers are one number; write auto.metric = log_loss",
        ),
        ("age * 1.5", "a number", ""),
    ],
)
def test_a_search_says_why_whole_numbers_are_classes_or_a_number(
    session: Session, label: str, kind: str, why: str
) -> None:
    query = f"SELECT city, {label} AS y FROM people WHERE age IS NOT NULL"
    found = explained(session, f"{query} LABEL y WITH auto.models = lightgbm INTO m")
    assert found["label", "y"][0].startswith(kind)
    assert found["label", "y"][1].startswith(why)
    assert bool(found["label", "y"][1]) is bool(why)


def test_the_reason_of_a_search_is_what_makes_the_statement_one(session: Session) -> None:
    query = "SELECT age, income FROM people TO TRAIN LinearRegressor WITH"
    folds = explained(session, f"{query} validation.folds = 3 LABEL income INTO m")
    values = explained(session, f"{query} train.epoch = CANDIDATES(2, 3) LABEL income INTO m")
    assert folds["model", "Ensemble"][1] == "a training in folds"
    assert values["model", "Ensemble"][1] == "attributes have several values"
    assert ("rows", "test") not in folds
