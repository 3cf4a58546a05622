"""Descriptions of files of XGBoost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost

from edl.errors import JobError
from edl.extensions.imported.description import FileError, describe_file
from edl.extensions.imported.reading_xgboost import describe

ROWS = 80


def table(*cities: str) -> pd.DataFrame:
    draw = np.random.default_rng(1)
    city = pd.Categorical(draw.choice(cities or ("rome", "oslo"), ROWS))
    return pd.DataFrame(
        {"x": draw.normal(size=ROWS), "city": city, "zone": pd.Categorical(draw.choice([9, 4], ROWS))}
    )


def data(frame: Any, suffix: str = "json", rounds: int = 3, attributes: Any = (), **params: Any) -> bytes:
    labels = np.arange(ROWS) % max(params.get("num_class", 2), 2)
    matrix = xgboost.DMatrix(frame, labels, enable_categorical=True)
    booster = xgboost.train({"verbosity": 0, "max_depth": 2, **params}, matrix, rounds)
    booster.set_attr(**dict(attributes))
    return bytes(booster.save_raw(suffix))


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_names_and_values_of_categories_are_in_both_formats(suffix: str) -> None:
    description = describe(data(table(), suffix, objective="binary:logistic"))
    assert [(column.name, column.categories) for column in description.columns] == [
        ("x", ()),
        ("city", ("oslo", "rome")),
        ("zone", (4, 9)),
    ]
    assert (description.gives, description.outputs_of_trees, description.rounds) == ("logits", 1, 3)


@pytest.mark.parametrize("cities", [("Ålesund", "Bodø", "Oslo"), ("Zürich", "Genève", "Bern", "日本")])
def test_letters_beyond_ascii_are_refused_because_xgboost_cuts_texts_off(cities: tuple[str, ...]) -> None:
    with pytest.raises(JobError, match="values of categories damaged if they have letters beyond a to z"):
        describe(data(table(*cities), objective="reg:squarederror"))


def test_a_matrix_without_names_has_none() -> None:
    description = describe(data(table()[["x"]].to_numpy(), objective="count:poisson"))
    assert [column.name for column in description.columns] == [""]
    assert (description.objective, description.gives) == ("poisson", "number")


def test_the_best_round_of_early_stopping_is_known() -> None:
    description = describe(
        data(table(), attributes={"best_iteration": "1"}, objective="multi:softprob", num_class=3)
    )
    assert (description.rounds, description.best, description.outputs_of_trees) == (3, 2, 3)


def test_a_linear_model_has_no_rounds() -> None:
    description = describe(data(table()[["x"]], booster="gblinear", objective="reg:squarederror"))
    assert (description.booster, description.rounds) == ("gblinear", 0)


@pytest.mark.parametrize("name", ["survival:cox", "reg:logistic", "binary:hinge"])
def test_an_objective_with_other_predictions_is_refused(name: str) -> None:
    with pytest.raises(JobError, match=f"objective {name} is not imported"):
        describe(data(table(), objective=name))


@pytest.mark.variants(2)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.95])
def test_a_truncated_file_is_refused_though_xgboost_dies_of_some(
    suffix: str, share: float, tmp_path: Path
) -> None:
    whole = data(table(), suffix, objective="reg:squarederror")
    (tmp_path / "m").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(FileError, match="the file is damaged"):
        describe_file(tmp_path / "m", "xgboost")


def test_other_json_is_refused() -> None:
    with pytest.raises(JobError, match="is damaged, or is none of XGBoost"):
        describe(b'{"learner": 3}')
