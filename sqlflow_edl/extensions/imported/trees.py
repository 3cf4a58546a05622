"""Files of LightGBM and XGBoost as models of trees: their columns, categories, loss and weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edl import features as fc
from edl import spec
from edl.arrays import Array
from edl.extensions.imported.description import FileDescription, MatrixColumn
from sqlflow_edl.analysis.settings.trees import RATES
from sqlflow_edl.extensions.imported.binding import BoundModel, check_count
from sqlflow_edl.extensions.imported.labels import class_label, label_column
from sqlflow_edl.extensions.imported.options import ImportOptions

_DEFAULTS = {"huber": {"delta": 1.0}, "quantile": {"quantile": 0.5}, "tweedie": {"power": 1.5}}


def bind_trees(description: FileDescription, options: ImportOptions) -> BoundModel:
    """Bind the columns of the matrix to columns of tables by name. Raises SemanticError if some have no name."""
    names = options.columns or tuple(column.name for column in description.columns)
    check_count(names, description.width, "the file", options)
    features = tuple(_feature(name, column) for name, column in zip(names, description.columns, strict=True))
    label: spec.Label
    if description.gives == "logits":
        label = class_label(options, (), description.outputs_of_trees)
    elif options.classes:
        raise options.error(
            "classes", "the file predicts a number, which has no classes", "leave classes out"
        )
    else:
        label = spec.RegressionLabel(label_column(options))
    rounds = _rounds(description, options)
    return BoundModel(
        inputs={"features": features},
        label=label,
        fields=tuple(
            spec.job.Field(name, _type(column))
            for name, column in zip(names, description.columns, strict=True)
        ),
        loss=spec.Component(description.objective, dict(_DEFAULTS.get(description.objective, {}))),
        optimizer=spec.Component("boosting", {"learning_rate": RATES[description.format]}),
        params={"booster": description.booster} if description.booster != "gbtree" else {},
        rounds=rounds,
        notes=tuple(_notes(description, options, rounds)),
    )


def _feature(name: str, column: MatrixColumn) -> spec.Feature:
    return fc.codes(fc.vocabulary(name, column.categories)) if column.categories else fc.raw(name)


def _type(column: MatrixColumn) -> str:
    if not column.categories:
        return "double"
    return "string" if isinstance(column.categories[0], str) else "int64"


def _rounds(description: FileDescription, options: ImportOptions) -> int:
    """Return the number of rounds that predict, 0 for all. Raises SemanticError for more than there are."""
    if options.rounds > description.rounds or (options.rounds and description.format == "lightgbm"):
        has = f"the file has {description.rounds:,} rounds"
        hint = (
            "LightGBM writes those that predict: save_model(num_iteration=…)"
            if description.format == "lightgbm"
            else None
        )
        raise options.error("rounds", f"rounds is {options.rounds:,}, and {has}", hint)
    rounds = options.rounds or description.best
    return 0 if rounds == description.rounds else rounds


def _notes(description: FileDescription, options: ImportOptions, rounds: int) -> Iterator[str]:
    if rounds and not options.rounds:
        total = description.rounds
        yield (
            f"early stopping found the first {rounds:,} of {total:,} rounds best, and only they predict, as in "
            f"XGBClassifier and XGBRegressor; with rounds = {total} all do, as in Booster.predict"
        )


def weights_of(description: FileDescription, data: bytes, rounds: int) -> dict[str, Array]:
    """Return the weights of the archive: the file as it is, and the importances."""
    importances = {kind: np.array(values) for kind, values in description.importances.items()}
    last = {"rounds": np.array(rounds, dtype=np.int64)} if rounds else {}
    return {"booster": np.frombuffer(data, dtype=np.uint8), **last, **importances}
