"""Entities whose rows are on both sides of a split."""

from __future__ import annotations

import pytest

from edl.spec import Split
from sqlflow_edl.analysis.checks.entities import names_entity, repeated_entities, similar_groups
from sqlflow_edl.analysis.checks.predictors import Score

AT_RANDOM = Split("random", "y")


@pytest.mark.parametrize(
    "column",
    ["patient", "patient_id", "PatientID", "customers", "id_customer", "storeNr", "machine_no", "item_id"],
)
def test_names_of_entities(column: str) -> None:
    assert names_entity(column)


@pytest.mark.parametrize("column", ["age", "id", "stored", "patience", "restore_time", "userbase", "city"])
def test_names_of_other_columns(column: str) -> None:
    assert not names_entity(column)


def find(score: Score, split: Split | None = AT_RANDOM, rows: int = 1000) -> list[str]:
    return [str(warning) for warning in repeated_entities("y", rows, [score], split)]


def test_an_entity_with_rows_on_both_sides_is_reported_with_the_split_that_keeps_it_whole() -> None:
    [said] = find(Score("patient", 0.6, "predictor", 0.01))
    assert said == (
        "patient has about 10 rows for each of its values, of which some train and some validate the model, and it "
        "alone tells y (score 0.60 of 1); if the rows to predict have other values of it, write "
        "validation.split = group, validation.column = patient"
    )


@pytest.mark.parametrize(
    "score",
    [
        Score("patient", 0.1, "predictor", 0.01),
        Score("patient", 0.6, "predictor", 0.001),
        Score("patient", 0.6, "predictor", 0.2),
        Score("age", 0.6, "predictor", 0.01),
        Score("patient", 1.0, "copy", 0.01),
    ],
    ids=["does not tell the label", "one row each", "few values", "no entity", "the label itself"],
)
def test_other_columns_are_not_reported(score: Score) -> None:
    assert not find(score)


@pytest.mark.parametrize(
    "split", [None, Split("time", "day"), Split("group", "patient"), Split("column", "mark")]
)
def test_rows_that_are_not_drawn_at_random_are_not_reported(split: Split | None) -> None:
    assert not find(Score("patient", 0.6, "predictor", 0.01), split)


def test_the_entity_that_tells_most_is_reported() -> None:
    scores = [Score("shop", 0.3, "predictor", 0.01), Score("patient", 0.6, "predictor", 0.01)]
    assert [warning.about for warning in repeated_entities("y", 1000, scores, AT_RANDOM)] == ["patient"]


def test_groups_that_differ_by_case_and_spaces_only_are_reported() -> None:
    [warning] = similar_groups("name", ["Ann Lee", "ann  lee", "Bob", " bob ", "Cy", 7, None])
    assert warning.message.startswith(
        "4 values of name differ from others by case and spaces only, such as 'Ann Lee'"
    )
    assert warning.advice == "select one spelling: lower(trim(name)) AS name"
    assert not list(similar_groups("name", ["Ann", "Bob"]))
