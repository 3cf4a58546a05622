"""Description of a file of XGBoost, JSON or UBJSON: the names and types of its columns, its objective, its rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import xgboost

from edl.errors import JobError
from edl.extensions.imported.description import FileDescription, MatrixColumn, damaged_file_error
from edl.extensions.imported.reading_lightgbm import level_values
from edl.frameworks.trees.engine import first_line

# Objective of the file -> the loss of ours with the same predictions.
OBJECTIVES: Mapping[str, str] = {
    "reg:squarederror": "mean_squared_error",
    "reg:linear": "mean_squared_error",
    "reg:squaredlogerror": "mean_squared_error",
    "reg:absoluteerror": "mean_absolute_error",
    "reg:pseudohubererror": "huber",
    "reg:quantileerror": "quantile",
    "count:poisson": "poisson",
    "reg:gamma": "gamma",
    "reg:tweedie": "tweedie",
    "rank:ndcg": "mean_squared_error",  # a score, which orders the rows
    "rank:pairwise": "mean_squared_error",
    "rank:map": "mean_squared_error",
    "binary:logistic": "cross_entropy",
    "binary:logitraw": "cross_entropy",
    "multi:softprob": "cross_entropy",
    "multi:softmax": "cross_entropy",
}
_CATEGORY = "c"  # type of a column


def describe(data: bytes) -> FileDescription:
    """Return the description of a file. Raises JobError if XGBoost cannot read it, or for what is not imported."""
    if not data.startswith(b"{"):
        raise damaged_file_error(
            "xgboost", "it is neither JSON nor UBJSON; save_model('m.json') writes such a file"
        )
    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(data))
    except (xgboost.core.XGBoostError, ValueError) as error:
        raise damaged_file_error("xgboost", first_line(error)) from None
    model = json.loads(bytes(booster.save_raw("json")))
    learner = model["learner"]
    name, parameters = learner["objective"]["name"], learner["learner_model_param"]
    classes, targets = int(parameters["num_class"]), int(parameters.get("num_target", "1"))
    _check_objective(name, targets)
    kind = learner["gradient_booster"]["name"]
    rounds = booster.num_boosted_rounds() if kind != "gblinear" else 0
    best = learner.get("attributes", {}).get("best_iteration")
    width = int(parameters["num_feature"])
    columns = _columns(learner, width)
    booster.feature_names = booster.feature_types = None
    measures = {"gain": "weight"} if kind == "gblinear" else {"gain": "total_gain", "split": "weight"}
    return FileDescription(
        "xgboost",
        f"XGBoost {'.'.join(map(str, model.get('version', ())))}".strip(),
        width=width,
        columns=columns,
        objective=OBJECTIVES[name],
        outputs_of_trees=max(classes, 1),
        rounds=rounds,
        best=int(best) + 1 if best is not None and kind == "gbtree" else 0,
        booster=kind,
        importances={ours: _by_column(booster, measure, width) for ours, measure in measures.items()},
        gives="logits" if OBJECTIVES[name] == "cross_entropy" else "number",
    )


def _check_objective(name: str, targets: int) -> None:
    hint = "export the model to ONNX where it was trained (onnxmltools.convert_xgboost), and import that"
    if name not in OBJECTIVES:
        raise JobError(f"XGBoost's objective {name} is not imported", hint=hint)
    if targets > 1:
        raise JobError(f"XGBoost's model predicts {targets} numbers, and one is imported", hint=hint)


def _columns(learner: Mapping[str, Any], width: int) -> tuple[MatrixColumn, ...]:
    """Return the columns with the values of their categories, which XGBoost stores from version 3.1 on."""
    names = learner.get("feature_names") or [""] * width
    levels = _levels(learner, width)
    return tuple(MatrixColumn(name, values) for name, values in zip(names, levels, strict=True))


def _levels(learner: Mapping[str, Any], width: int) -> list[tuple[str | int, ...]]:
    """Return the values of each column's category; empty for numbers, and for codes without values."""
    booster = learner["gradient_booster"]
    model = booster.get("model") or booster.get("gbtree", {}).get("model") or {}
    stored = model.get("cats", {}).get("enc", [])
    if not stored:
        return [()] * width
    return [_decode(values) for values in stored]


def _decode(stored: Mapping[str, Any]) -> tuple[str | int, ...]:
    """Return values that are stored as numbers, or as the bytes of texts side by side with their offsets.

    Raises JobError for letters beyond ASCII: of pandas' texts, XGBoost 3.2 counts characters where it means bytes, and
    cuts the end off. Such a file looks like a right one.
    """
    values = stored.get("values", [])
    if "offsets" not in stored:
        return level_values(values)
    if any(not 0 <= byte < 128 for byte in values):
        raise JobError(
            "XGBoost writes the values of categories damaged if they have letters beyond a to z, and so are those here",
            hint="train with the codes of the category, or with values of plain letters",
        )
    text = bytes(values).decode()
    return tuple(text[first:last] for first, last in pairwise(stored["offsets"]))


def _by_column(booster: Any, measure: str, width: int) -> tuple[float, ...]:
    sums = np.zeros(width)
    for name, value in booster.get_score(importance_type=measure).items():
        sums[int(name[1:])] = np.abs(value).sum()
    return tuple(sums.tolist())
