"""Dense network over all features, and the linear model, which is one without hidden layers."""

from __future__ import annotations

from collections.abc import Mapping

from sqlflow_edl.analysis.models.base import Architecture, Length, Model
from sqlflow_edl.analysis.models.parts import (
    CLASSES,
    HIDDEN_LAYERS,
    deep_feature,
    deep_size,
    linear_feature,
    one_input,
)
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.values import Setting

MEMBERS = AttributeRow(
    "model.members",
    "integer",
    "Networks of an ensemble with shared layers (except for scales of the features and the outputs) "
    "and averaged predictions (TabM, Gorishniy et al., 2024). 1 is a single network, as with "
    "batch_norm.",
    8,
    low=1,
    high=256,
    aliases=("members",),
)

L2 = AttributeRow(
    "model.l2",
    "number",
    "Ridge penalty of the exact solution: of the squared weights, beside the mean squared error in units of the "
    "deviations of the columns and of the label, or beside the mean log loss. By default 0; with fewer rows than "
    "inputs, or more than 20 inputs and fewer than 10 rows for each, the one of the least generalised "
    "cross-validation; of classes half the squared weights beside the sum of the log losses (C = 1 of scikit-learn).",
    low=0,
    aliases=(
        "l2",
        "ridge",
        "model.ridge",
        "l2_reg",
        "model.l2_reg",
        "l2_regularization",
        "model.l2_regularization",
    ),
)

# Chosen on the tables of benchmarks.quality.
_DEFAULTS: Mapping[str, Setting] = {
    "model.hidden_units": (128, 64),
    "model.dropout": 0.1,
    "optimizer": "adamw",
    "optimizer.learning_rate": 0.002,
    "optimizer.weight_decay": 0.02,
    "optimizer.schedule": "cosine",
}
# Dropout changes the variance of the hidden units, and so the numbers that a regression with little noise predicts.
_REGRESSION_DEFAULTS = {**_DEFAULTS, "model.dropout": 0.0}
# Of many columns, most of which are 0 nearly everywhere, some fit noise. Chosen on the table grants of 1,500 columns.
_WIDE: Mapping[str, Setting] = {"optimizer.weight_decay": 0.2}
_WIDE_CLASSES = {**_WIDE, "model.dropout": 0.3}
# Chosen on fifteen tables of 105 to 30,000 rows. With the 0.001 of other networks the weights of small tables are far
# from their ends after the last epoch (a root mean square error of 6.4 in place of 0.07 where the label follows from a
# category); 0.01 comes nearer, and fits noise in tables of many columns (6 % more error on `ames`).
_LINEAR_DEFAULTS: Mapping[str, Setting] = {"optimizer.learning_rate": 0.003}
_LENGTH = Length(3000, (8, 40), 10, ((1_000, 32), (10_000, 64), (100_000, 256)))

_DEEP = Architecture("deep", one_input(deep_feature), size=lambda job: deep_size(job, job.features))
_LINEAR = Architecture("deep", one_input(linear_feature), size=lambda job: deep_size(job, job.features))

MODELS = (
    Model(
        "DNNClassifier",
        "An ensemble of dense networks with a logit per class.",
        (*HIDDEN_LAYERS, MEMBERS, CLASSES),
        task="classification",
        architecture=_DEEP,
        encodes=True,
        defaults=_DEFAULTS,
        length=_LENGTH,
        wide=_WIDE_CLASSES,
    ),
    Model(
        "DNNRegressor",
        "An ensemble of dense networks with one output.",
        (*HIDDEN_LAYERS, MEMBERS),
        task="regression",
        architecture=_DEEP,
        encodes=True,
        defaults=_REGRESSION_DEFAULTS,
        length=_LENGTH,
        wide=_WIDE,
    ),
    Model(
        "LinearClassifier",
        "A linear model with a logit per class, solved for exactly where newton can.",
        (CLASSES, L2),
        task="classification",
        architecture=_LINEAR,
        defaults=_LINEAR_DEFAULTS,
    ),
    Model(
        "LinearRegressor",
        "A linear model with one output, solved for exactly where least_squares can.",
        (L2,),
        task="regression",
        architecture=_LINEAR,
        defaults=_LINEAR_DEFAULTS,
    ),
)
