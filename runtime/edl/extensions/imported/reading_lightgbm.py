"""Description of a text file of LightGBM: the names of its columns, the values of its categories, its objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import lightgbm
import msgspec

from edl.errors import JobError
from edl.extensions.imported.description import FileDescription, MatrixColumn, damaged_file_error
from edl.frameworks.trees.engine import first_line

_PANDAS = "pandas_categorical:"
# Objective of the file -> the loss of ours with the same predictions, and with two or more scores of classes.
OBJECTIVES: Mapping[str, str] = {
    "regression": "mean_squared_error",
    "regression_l1": "mean_absolute_error",
    "mape": "mean_absolute_error",
    "fair": "mean_absolute_error",
    "huber": "huber",
    "quantile": "quantile",
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": "tweedie",
    "lambdarank": "mean_squared_error",  # a score, which orders the rows
    "rank_xendcg": "mean_squared_error",
    "binary": "cross_entropy",
    "multiclass": "cross_entropy",
}


def describe(data: bytes) -> FileDescription:
    """Return the description of a file. Raises JobError if LightGBM cannot read it, or for what is not imported."""
    text = data.decode()
    if not text.startswith("tree\n"):
        raise damaged_file_error("lightgbm", "it does not begin with `tree`")
    header = dict(line.partition("=")[::2] for line in text.partition("\nTree=")[0].splitlines())
    _check_complete(text, header)
    try:
        booster = lightgbm.Booster(model_str=text)
    except lightgbm.basic.LightGBMError as error:
        raise damaged_file_error("lightgbm", first_line(error)) from None
    name, *settings = header.get("objective", "").split() or [""]
    _check_objective(name, settings, text)
    width = booster.num_feature()
    return FileDescription(
        "lightgbm",
        f"LightGBM {header.get('version', '')}".strip(),
        width=width,
        columns=_columns(booster.feature_name(), text, header),
        objective=OBJECTIVES[name],
        outputs_of_trees=int(header.get("num_tree_per_iteration", "1")),
        rounds=int(booster.current_iteration()),
        importances={
            kind: tuple(map(float, booster.feature_importance(kind, iteration=-1)))
            for kind in ("gain", "split")
        },
        gives="logits" if name in ("binary", "multiclass") else "number",
    )


def _check_complete(text: str, header: Mapping[str, str]) -> None:
    """Raise JobError for a file without its end, at which LightGBM may read trees that are none."""
    trees = text.count("\nTree=")
    announced = len(header.get("tree_sizes", "").split())
    if "\nend of trees" not in text or trees != announced:
        raise damaged_file_error(
            "lightgbm", f"it announces {announced:,} trees and has {trees:,}, or its end is missing"
        )


def _check_objective(name: str, settings: list[str], text: str) -> None:
    """Raise JobError for an objective that predicts another function of the sum of the leaves than the known ones."""
    hint = "export the model to ONNX where it was trained (onnxmltools.convert_lightgbm), and import that"
    if name not in OBJECTIVES:
        raise JobError(
            f"LightGBM's objective {name or 'of a function of its own'} is not imported", hint=hint
        )
    for setting in settings:
        key, _, value = setting.partition(":")
        if setting == "sqrt" or (key == "sigmoid" and float(value) != 1.0):
            raise JobError(f"LightGBM's objective {name} with {setting} is not imported", hint=hint)


def _columns(names: list[str], text: str, header: Mapping[str, str]) -> tuple[MatrixColumn, ...]:
    """Return the columns with the values of their categories, which pandas had in training.

    Raises JobError if the file does not tell which column has which values.
    """
    values = _categories_of_pandas(text)
    generic = [f"Column_{number}" for number in range(len(names))]
    column_names = ["" if names == generic else name for name in names]
    places = _categorical_places(text, header)
    if not values:
        return tuple(map(MatrixColumn, column_names))
    if len(places) != len(values):
        raise JobError(
            f"the file has the values of {len(values)} categories of pandas, and {len(places)} columns of categories",
            hint="an ordered category enters as a number: train with its codes (.cat.codes), or unordered",
        )
    by_place = dict(zip(places, values, strict=True))
    return tuple(MatrixColumn(name, by_place.get(place, ())) for place, name in enumerate(column_names))


def _categories_of_pandas(text: str) -> list[tuple[str | int, ...]]:
    line = next((line for line in reversed(text.splitlines()) if line.startswith(_PANDAS)), _PANDAS + "null")
    lists: list[list[Any]] | None = msgspec.json.decode(line.removeprefix(_PANDAS))
    return [level_values(values) for values in lists or ()]


def level_values(values: list[Any]) -> tuple[str | int, ...]:
    """Return the values of a category as a vocabulary has them: all whole numbers, or all texts."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return tuple(values)
    return tuple(_level_text(value) for value in values)


def _level_text(value: object) -> str:
    """Return the text that a column with this value has here: true, 2.5, 3 of 3.0."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return str(int(value))
    return str(value)


def _categorical_places(text: str, header: Mapping[str, str]) -> list[int]:
    """Return the positions of the columns of categories, by the parameters or else by the bins of the file."""
    for line in text.splitlines():
        if line.startswith("[categorical_feature: "):
            listed = line.removeprefix("[categorical_feature: ").removesuffix("]")
            return sorted(int(number) for number in listed.split(",") if number.strip().isdigit())
    infos = header.get("feature_infos", "").split()
    return [place for place, info in enumerate(infos) if ":" in info and not info.startswith("[")]
