"""Models of other systems that a statement may name: why they are missing, and which model to use instead.

They are matched by a part of their names, as every system spells them in its own way: LogisticRegression, LOGISTIC_REG,
logit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from edl.errors import Advice, suggest_name

HINT = (
    "there are DNN, Linear, DNNLinearCombined, DeepFM, RealMLP and BoostedTrees, each as Classifier and Regressor, and "
    "BoostedTreesRanker, KMeans, IsolationForest, PCA, Autoencoder, MatrixFactorization, Forecast and TiDE; "
    "a model of your own is written with its module: my_module.MyModel"
)
_REGRESSION = re.compile(
    r"regressor|svr$|linear_?reg(ression)?$|^ols|ridge|lasso|elastic_?net", re.IGNORECASE
)
_CLASSIFICATION = re.compile(r"classif|logistic|logit|svc|naive_?bayes", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Replacement:
    """Model to train in place of a model of another system.

    model: its name, empty for a search. settings: attributes of it -> the attributes of the other model that have the
    value, and the value without them. has_label: it predicts a label. needs_time: of a forecast.
    """

    model: str
    settings: Mapping[str, tuple[tuple[str, ...], object]] = field(default_factory=dict)
    has_label: bool = True
    needs_time: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """Model of another system: the sentence on it, what to write today, and the model that does its work."""

    message: str
    hint: str
    replacement: Replacement | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """Group of similar models: `names` matches a part of their names, the models of `family` replace them.

    missing: the reason why there is no such model, a clause; empty for models of another name. hint, replacement: for
    models that no family replaces.
    """

    names: str
    missing: str
    family: str = ""
    hint: str = ""
    replacement: Replacement | None = None


_CLUSTERS = {"model.n_clusters": (("n_clusters", "k", "num_clusters", "n_components"), 3)}
_COMPONENTS = {"model.num_components": (("n_components", "num_components", "k"), 2)}
_CODES = {"model.hidden_units": (("hidden_units", "hidden_layer_sizes", "units"), "[32, 8, 32]")}
_RENAMED = ""  # the family has the same models
_KINDS = (
    _Kind(
        "rank|lambda_?mart",
        "trees rank here",
        hint="train a BoostedTreesRanker WITH train.group_column = query_id",
    ),
    _Kind(
        "auto_?ml|auto_?gluon|auto_?sklearn|^auto_?(classifier|regressor|model)$|tpot",
        "a search chooses the model",
        hint="name no model: SELECT … LABEL my_label INTO my_model",
        replacement=Replacement(""),
    ),
    _Kind(
        "isolation|anomaly|one_?class_?svm|outlier_?factor",
        "anomalies are those of IsolationForest here",
        hint="train an IsolationForest WITH model.contamination = 0.05, without a LABEL",
        replacement=Replacement(
            "IsolationForest", {"model.contamination": (("nu", "contamination"), 0.05)}, has_label=False
        ),
    ),
    _Kind("forest|extra_?tree", "its trees are boosted here", "BoostedTrees"),
    _Kind("xgb|lgbm|light_?gbm|catboost|gbdt|gbtree|boost|tree|^gbm", _RENAMED, "BoostedTrees"),
    _Kind(
        "k_?means|k_?medoids|dbscan|cluster|gaussian_?mixture|^gmm",
        "clusters are those of KMeans here",
        hint="train a KMeans WITH model.n_clusters = 3, without a LABEL",
        replacement=Replacement("KMeans", _CLUSTERS, has_label=False),
    ),
    _Kind(
        "pca$|^pca|principal_?comp|truncated_?svd|^svd$|factor_?analysis|^nmf$",
        "components come from PCA here",
        hint="train a PCA WITH model.num_components = 2, without a LABEL",
        replacement=Replacement("PCA", _COMPONENTS, has_label=False),
    ),
    _Kind(
        "auto_?encoder|^vae$",
        "codes come from Autoencoder here",
        hint="train an Autoencoder WITH model.hidden_units = [32, 8, 32], without a LABEL",
        replacement=Replacement("Autoencoder", _CODES, has_label=False),
    ),
    _Kind(
        "matrix_?factori|collaborative|recommend|^svd_?(pp|plus_?plus)$|^funk_?svd|^bpr|^w?als",
        "users and items are factors of MatrixFactorization here",
        hint="train a MatrixFactorization with COLUMN VOCABULARIZE(user), VOCABULARIZE(item) LABEL rating",
    ),
    _Kind(
        "arima|prophet|forecast|time_?series|holt|^ets$|exponential_?smoothing|n_?hits|n_?beats|tide",
        "series are forecast by Forecast and TiDE here",
        hint="write TO TRAIN Forecast, or the network TiDE, WITH forecast.time = day, forecast.series = store, "
        "forecast.horizon = 14",
        replacement=Replacement("Forecast", {"forecast.horizon": (("horizon", "n_out"), 14)}, needs_time=True),
    ),
    _Kind("score_?card", "a score card is a linear model of bins here", "Linear"),
    _Kind("elastic_?dl", "every model is trained elastically here, WITH train.num_workers = 2", "DNN"),
    _Kind("factori[sz]ation|^fm$", _RENAMED, "DeepFM"),
    _Kind("^svc|^svm|svr|linear_?svc|naive_?bayes", "a linear model does its work here", "Linear"),
    _Kind("logistic|logit|^perceptron$", _RENAMED, "Linear"),
    _Kind("linear_?reg(ression)?$|^ols|ridge|lasso|elastic_?net", _RENAMED, "Linear"),
    _Kind("neighbo|^knn", "a network does its work here", "DNN"),
    _Kind("mlp|multi_?layer|neural|sequential", _RENAMED, "DNN"),
    _Kind("lstm|rnn|^gru|seq2|attention", "sequences are read by bidirectional LSTMs or attention here", "Sequence"),
    _Kind(
        "cnn|gcn|transformer|resnet|bert",
        "models of images, texts, graphs and sequences are your own",
        hint="write it in Keras or PyTorch, and name it with its module: my_module.MyModel",
    ),
)  # fmt: skip


def find_alternative(name: str, written: str = "") -> Alternative | None:
    """Return the alternative to a model of another system, or None if the name is of no known system.

    written: the name with its module, as the statement has it.
    """
    kind_found = next((kind for kind in _KINDS if re.search(kind.names, name, re.IGNORECASE)), None)
    if kind_found is None:
        return None
    family = kind_found.family
    hint = kind_found.hint or _train(family, name)
    if family == "BoostedTrees" and _letters(name).startswith(_letters(family)[:-1]):  # BoostedTreeClassifier
        hint = suggest_name(_model(family, name) or family)
    return Alternative(_explain(kind_found, name, written or name), hint, kind_found.replacement)


def _explain(kind: _Kind, name: str, written: str) -> str:
    if kind.missing:
        return f"there is no model {written}: {kind.missing}"
    if model := _model(kind.family, name):
        return f"unknown model {written}; its name here is {model}"
    return f"unknown model {written}; such models are named {kind.family} here"


def _train(family: str, name: str) -> str:
    """Return a hint to train the model of the family that predicts numbers or classes, as the name says."""
    if model := _model(family, name):
        return Advice(f"train a {model}", model)
    return Advice(f"train a {family}Classifier, or a {family}Regressor for a label that is a number", family)


def _letters(name: str) -> str:
    return name.replace("_", "").casefold()


def _model(family: str, name: str) -> str:
    """Return the model of the family that predicts what the name says, or empty."""
    if _REGRESSION.search(name):
        return f"{family}Regressor"
    return f"{family}Classifier" if _CLASSIFICATION.search(name) else ""
