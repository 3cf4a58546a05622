"""Models of other systems that statements may name: why there are none here, and the model that does the job.

They are recognised by a part of their names, as every system spells them its own way: XGBClassifier,
BOOSTED_TREE_CLASSIFIER, BoostedTreesRegressor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HINT = (
    "there are DNN, Linear, DNNLinearCombined and DeepFM, each as Classifier and Regressor; "
    "a model of your own is written with its module: my_module.MyModel"
)
_REGRESSION = re.compile(
    r"regressor|svr$|ranker$|linear_?reg(ression)?$|^ols|ridge|lasso|elastic_?net", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Alternative:
    """missing: the reason, a clause. hint: what to write today."""

    missing: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """Models that are alike: `names` matches a part of their names, the models of `family` do their job.

    hint: of models whose job no family does.
    """

    names: str
    missing: str
    family: str = ""
    hint: str = ""


_RENAMED = "it has another name here"
_KINDS = (
    _Kind("xgb|lgbm|light_?gbm|catboost|gbdt|gbtree|boost|tree|forest|^gbm", "trees are planned", "DNN"),
    _Kind(
        "k_?means|k_?medoids|dbscan|cluster|gaussian_?mixture|^gmm",
        "clustering is planned",
        hint="models predict a label: train a DNNClassifier with LABEL my_group, or group the rows in the SELECT",
    ),
    _Kind(
        "^pca|autoencoder|isolation|anomaly",
        "models predict a label",
        hint="train a DNNClassifier or a DNNRegressor with LABEL my_column",
    ),
    _Kind("arima|prophet|forecast|time_?series", "forecasts of time series are planned", "DNN"),
    _Kind("factori[sz]ation|^fm$", _RENAMED, "DeepFM"),
    _Kind("logistic|logit|^svc|^svm|svr|linear_?svc|naive_?bayes|perceptron$", _RENAMED, "Linear"),
    _Kind("linear_?reg(ression)?$|^ols|ridge|lasso|elastic_?net", _RENAMED, "Linear"),
    _Kind("mlp|multi_?layer|neural|sequential|neighbo|^knn", _RENAMED, "DNN"),
    _Kind(
        "cnn|rnn|lstm|gru|transformer|resnet|bert",
        "models of images, texts and sequences are your own",
        hint="write it in Keras or PyTorch, and name it with its module: my_module.MyModel",
    ),
)  # fmt: skip


def alternative(name: str) -> Alternative | None:
    """The alternative to a model of another system; None where no system is known that has one of that name."""
    found = next((kind for kind in _KINDS if re.search(kind.names, name, re.IGNORECASE)), None)
    return Alternative(found.missing, found.hint or _train(found.family, name)) if found else None


def _train(family: str, name: str) -> str:
    """A hint to train the model of the family that predicts what the name says: numbers or classes."""
    if _REGRESSION.search(name):
        return f"train a {family}Regressor"
    return f"train a {family}Classifier, or a {family}Regressor for a label that is a number"
