"""Descriptions of files of LightGBM."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest

from edl.errors import JobError
from edl.extensions.imported.reading_lightgbm import describe, level_values

ROWS = 80


def table() -> pd.DataFrame:
    draw = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "x": draw.normal(size=ROWS),
            "city": pd.Categorical(draw.choice(["rome", "oslo"], ROWS)),
            "zone": pd.Categorical(draw.choice([9, 4], ROWS)),
        }
    )


def text(frame: Any, **params: Any) -> bytes:
    labels = np.arange(ROWS) % params.get("num_class", 2)
    settings = {"verbosity": -1, "min_data_in_leaf": 2, **params}
    booster = lightgbm.train(settings, lightgbm.Dataset(frame, labels), 3)
    return booster.model_to_string().encode()


def test_the_categories_of_pandas_belong_to_their_columns() -> None:
    description = describe(text(table(), objective="binary"))
    assert [(column.name, column.categories) for column in description.columns] == [
        ("x", ()),
        ("city", ("oslo", "rome")),
        ("zone", (4, 9)),
    ]
    assert (description.gives, description.outputs_of_trees, description.rounds) == ("logits", 1, 3)


def test_columns_without_names_have_none() -> None:
    description = describe(text(table()[["x"]].to_numpy(), objective="regression"))
    assert [column.name for column in description.columns] == [""]
    assert description.objective == "mean_squared_error"


def test_ordered_categories_are_refused_because_their_column_is_unknown() -> None:
    frame = table()
    frame["zone"] = frame["zone"].cat.as_ordered()
    with pytest.raises(JobError, match="values of 2 categories of pandas, and 1 columns of categories"):
        describe(text(frame, objective="binary"))


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([3, 5], (3, 5)),
        (["a", "b"], ("a", "b")),
        ([False, True], ("false", "true")),
        ([1.0, 2.5], ("1", "2.5")),
    ],
)
def test_values_of_categories_are_written_as_columns_of_tables_are(values: list[Any], levels: Any) -> None:
    assert level_values(values) == levels


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "cross_entropy"}, "objective cross_entropy is not imported"),
        ({"objective": "multiclassova", "num_class": 3}, "objective multiclassova is not imported"),
        ({"objective": "binary", "sigmoid": 2.0}, "objective binary with sigmoid:2 is not imported"),
        ({"objective": "regression", "reg_sqrt": True}, "objective regression with sqrt is not imported"),
        ({"objective": lambda guess, rows: (guess, guess * 0 + 1)}, "objective of a function of its own"),
    ],
)
def test_an_objective_with_other_predictions_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        describe(text(table(), **params))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.8])
def test_a_truncated_file_is_refused(share: float) -> None:
    data = text(table(), objective="binary")
    end = data.index(b"end of trees")
    with pytest.raises(JobError, match="is damaged, or is none of LightGBM"):
        describe(data[: int(end * share)])


def test_a_tree_that_is_missing_is_noticed() -> None:
    data = text(table(), objective="binary")
    first, second = data.index(b"Tree=1"), data.index(b"Tree=2")
    with pytest.raises(JobError, match="announces 3 trees and has 2"):
        describe(data[:first] + data[second:])
