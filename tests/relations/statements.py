"""Random TRAIN statements as data, which a failing check can make shorter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.relations.kinds import Dialect, quoted
from tests.relations.tables import LABEL, Table


@dataclass(frozen=True)
class Model:
    """labels: kinds of labels that it may be trained on, see `draw_table`. family: of its tolerances."""

    spelling: str
    options: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    family: str

    @property
    def regresses(self) -> bool:
        return "number" in self.labels


_QUICK_TREES = (("train.num_boost_round", "4"),)
_QUICK_NETWORK = (("model.framework", "torch"), ("epochs", "2"))
_CLASSES = ("classes", "yes or no")
MODELS: dict[str, Model] = {
    "lightgbm_number": Model("BoostedTreesRegressor", _QUICK_TREES, ("number",), "trees"),
    "lightgbm_classes": Model("BoostedTreesClassifier", _QUICK_TREES, _CLASSES, "trees"),
    "xgboost_number": Model("xgboost.gbtree", _QUICK_TREES, ("number",), "trees"),
    "xgboost_classes": Model("xgboost.gbtree", _QUICK_TREES, _CLASSES, "trees"),
    "linear_number": Model("LinearRegressor", _QUICK_NETWORK, ("number",), "networks"),
    "linear_classes": Model("LinearClassifier", _QUICK_NETWORK, _CLASSES, "networks"),
    "dense_number": Model(
        "DNNRegressor",
        (*_QUICK_NETWORK, ("model.hidden_units", "[4]"), ("model.members", "1")),
        ("number",),
        "networks",
    ),
    "dense_classes": Model(
        "DNNClassifier",
        (*_QUICK_NETWORK, ("model.hidden_units", "[4]"), ("model.members", "2")),
        _CLASSES,
        "networks",
    ),
}
TREES = tuple(name for name, model in MODELS.items() if model.family == "trees")
NUMBERS = tuple(name for name, model in MODELS.items() if model.regresses)
EVERY = tuple(MODELS)

# Options that change no promise, drawn in addition.
_OPTIONS = {
    "trees": (
        ("train.seed", ("1", "77")),
        ("validation.fraction", ("0.2", "0.5", "0.05")),
        ("model.max_depth", ("2", "3")),
        ("validation.split", ("random",)),
    ),
    "networks": (
        ("train.seed", ("1", "77")),
        ("validation.fraction", ("0.2", "0.5")),
        ("train.batch_size", ("16", "64")),
        ("validation.split", ("random",)),
    ),
}


@dataclass(frozen=True)
class Train:
    """model: a key of MODELS. items: of COLUMN; none leaves the features to the compiler."""

    model: str
    options: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ()
    label: str = LABEL

    def text(self, select: str, into: str, dialect: Dialect) -> str:
        known = MODELS[self.model]
        options = dict((*known.options, *self.options))
        attributes = ", ".join(f"{name} = {value}" for name, value in options.items())
        columns = f" COLUMN {', '.join(self.items)}" if self.items else ""
        label = quoted(self.label, dialect)
        return f"{select} TO TRAIN {known.spelling} WITH {attributes}{columns} LABEL {label} INTO {into}"

    def with_options(self, **options: str) -> Train:
        """Set options; `__` stands for a dot."""
        new = {name.replace("__", "."): value for name, value in options.items()}
        return replace(self, options=tuple({**dict(self.options), **new}.items()))

    @property
    def in_order(self) -> Train:
        """The statement that trains in the order of its query, validated on the last rows of it."""
        kept = tuple(each for each in self.options if each[0] != "validation.split")
        return replace(self, options=(*kept, ("train.shuffle", "FALSE")))


def draw_train(draw: Random, model: str, table: Table) -> Train:
    options = tuple(
        (name, draw.choice(values)) for name, values in _OPTIONS[MODELS[model].family] if draw.random() < 0.3
    )
    return Train(model, options)
