"""Models of trees in a statement: their names in other systems, and their parameters with the spelling of each library.

A parameter has one name here, XGBoost's where both libraries have it, and the names of other systems as aliases.
A library that lacks it has an empty spelling, and a statement that sets it for that library is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from edl import spec
from edl.errors import Advice, SemanticError, SQLFlowError, did_you_mean
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Resolved
from sqlflow_edl.analysis.settings.values import Setting, Type

FAMILY = "BoostedTrees"
LIBRARIES: Mapping[str, str] = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}
RATES: Mapping[str, float] = {"lightgbm": 0.1, "xgboost": 0.3}  # learning rates of the libraries
# by default: without validation rows; with them, where early stopping ends sooner
ROUNDS, MOST_ROUNDS = 100, 1000
PATIENCE = 25  # rounds, if their number is not given
BLOCK = 65_536  # rows of one call that scores
ENOUGH_ROWS = 400  # for LightGBM's own least number of rows in a leaf, 20


@dataclass(frozen=True, slots=True)
class Named:
    """Model of another system: ours (its family if the label decides), the library and parameters that it implies.

    is_forest: its trees are grown side by side, each from a sample of the rows, in one round.
    """

    model: str
    framework: str = ""
    params: Mapping[str, Setting] = field(default_factory=dict)
    is_forest: bool = False


def find_by_name(name: str) -> Named | None:
    """Return the model of trees that a name of another system means, in any case, or None."""
    key = name.casefold()
    for library in LIBRARIES:
        prefix = f"{library}."
        if key.startswith(prefix) and (
            model_found := _OF_LIBRARIES.get(library, {}).get(key.removeprefix(prefix))
        ):
            return model_found
    return _NAMES.get(key)


def _named_model(library: str, name: str, **params: Setting) -> Named:
    return Named(f"{FAMILY}{name}", library, params)


# A random forest is one round of XGBoost with many trees, each from 80 % of the rows and each split from 80 % of the
# columns, as in XGBRFClassifier and in RANDOM_FOREST_CLASSIFIER of BigQuery ML; the depth is the latter's.
TREES_OF_FOREST = 100
_FOREST: Mapping[str, Setting] = {"subsample": 0.8, "colsample_bynode": 0.8, "reg_lambda": 1e-5}


def _named_forest(name: str, **params: Setting) -> Named:
    return Named(f"{FAMILY}{name}", "xgboost", {**_FOREST, **params}, is_forest=True)


_LIGHTGBM = {
    "lgbmclassifier": _named_model("lightgbm", "Classifier"),
    "lgbmregressor": _named_model("lightgbm", "Regressor"),
    "lgbmranker": _named_model("lightgbm", "Ranker"),
}
_XGBOOST = {
    "xgbclassifier": _named_model("xgboost", "Classifier"),
    "xgbregressor": _named_model("xgboost", "Regressor"),
    "xgbranker": _named_model("xgboost", "Ranker"),
}
_XGBOOST_FORESTS = {
    "xgbrfclassifier": _named_forest("Classifier"),
    "xgbrfregressor": _named_forest("Regressor"),
}
_FORESTS = {
    "randomforests": _named_forest("", max_depth=15),
    "randomforest": _named_forest("", max_depth=15),
    "random_forest": _named_forest("", max_depth=15),
    "randomforestclassifier": _named_forest("Classifier", max_depth=15),
    "randomforestregressor": _named_forest("Regressor", max_depth=15),
    "random_forest_classifier": _named_forest("Classifier", max_depth=15),
    "random_forest_regressor": _named_forest("Regressor", max_depth=15),
}
_XGBOOSTERS = {kind: _named_model("xgboost", "", booster=kind) for kind in ("gbtree", "gblinear", "dart")}
_OF_LIBRARIES: Mapping[str, Mapping[str, Named]] = {
    "lightgbm": {
        **_LIGHTGBM,
        "gbdt": _named_model("lightgbm", ""),
        "dart": _named_model("lightgbm", "", booster="dart"),
        "classifier": _LIGHTGBM["lgbmclassifier"],
        "regressor": _LIGHTGBM["lgbmregressor"],
        "ranker": _LIGHTGBM["lgbmranker"],
    },
    "xgboost": {
        **_XGBOOST,
        **_XGBOOST_FORESTS,
        **_XGBOOSTERS,
        **dict.fromkeys(
            ("multi.softmax", "multi.softprob", "binary.logistic", "binary.logitraw", "reg.logistic"),
            _XGBOOST["xgbclassifier"],
        ),
        **dict.fromkeys(("reg.squarederror", "reg.linear"), _XGBOOST["xgbregressor"]),
        "estimator": _named_model("xgboost", ""),
        "classifier": _XGBOOST["xgbclassifier"],
        "regressor": _XGBOOST["xgbregressor"],
        "ranker": _XGBOOST["xgbranker"],
    },
}
_NAMES: Mapping[str, Named] = {
    **_LIGHTGBM,
    **_XGBOOST,
    **_XGBOOST_FORESTS,
    **_FORESTS,
    **_XGBOOSTERS,
    "lightgbm": _named_model("lightgbm", ""),
    "xgboost": _named_model("xgboost", ""),
    "boosted_tree_classifier": Named(f"{FAMILY}Classifier"),
    "boosted_tree_regressor": Named(f"{FAMILY}Regressor"),
    "boosted_tree": Named(FAMILY),
}


@dataclass(frozen=True, slots=True)
class TreeParameter:
    """Parameter of a model of trees: its attribute, and its keyword in each library; empty if the library lacks it."""

    attribute: AttributeRow
    lightgbm: str = ""
    xgboost: str = ""

    @property
    def name(self) -> str:
        return self.attribute.name.removeprefix("model.")

    def keyword(self, framework: str) -> str:
        return self.lightgbm if framework == "lightgbm" else self.xgboost


def _parameter(
    name: str,
    type_: Type,
    doc: str,
    *,
    lightgbm: str = "",
    xgboost: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
) -> TreeParameter:
    names = (name, *also)
    aliases = (*names, *(f"model.{alias}" for alias in also), *(f"train.{alias}" for alias in names))
    row = AttributeRow(f"model.{name}", type_, doc, None, low, high, choices, aliases)
    return TreeParameter(row, lightgbm, xgboost)


PARAMETERS = (
    _parameter(
        "booster", "text",
        "Content of a round: a tree; a tree while some others are dropped (dart); or a step of a "
        "linear model (gblinear, XGBoost). By default a tree.",
        lightgbm="boosting", xgboost="booster", choices=("gbtree", "gbdt", "dart", "gblinear"),
        also=("boosting", "boosting_type", "booster_type"),
    ),
    _parameter(
        "max_depth", "integer", "Largest depth of a tree; 0 sets no limit. By default 0 in LightGBM, 6 in XGBoost.",
        lightgbm="max_depth", xgboost="max_depth", low=0, high=1000, also=("max_tree_depth",),
    ),
    _parameter(
        "num_leaves", "integer", "Largest number of leaves of a tree. By default 31 in LightGBM, no limit in XGBoost.",
        lightgbm="num_leaves", xgboost="max_leaves", low=2, high=131_072, also=("max_leaves", "max_leaf_nodes"),
    ),
    _parameter(
        "min_child_samples", "integer",
        "Least number of rows in a leaf (LightGBM). By default 20, and fewer for fewer than 400 rows.",
        lightgbm="min_data_in_leaf", low=0, also=("min_data_in_leaf", "min_samples_leaf"),
    ),
    _parameter(
        "min_child_weight", "number",
        "Least sum of second derivatives of the loss in a leaf. By default 0.001 in LightGBM, 1 in XGBoost.",
        lightgbm="min_sum_hessian_in_leaf", xgboost="min_child_weight", low=0,
        also=("min_sum_hessian_in_leaf", "min_node_weight"),
    ),
    _parameter(
        "gamma", "number", "Least improvement of the loss by a split. By default 0.",
        lightgbm="min_gain_to_split", xgboost="gamma", low=0,
        also=("min_split_loss", "min_split_gain", "min_gain_to_split", "tree_complexity"),
    ),
    _parameter(
        "subsample", "number", "Share of the rows drawn for each round. By default 1.",
        lightgbm="bagging_fraction", xgboost="subsample", low=1e-6, high=1, also=("bagging_fraction",),
    ),
    _parameter(
        "colsample_bytree", "number", "Share of the columns drawn for each tree. By default 1.",
        lightgbm="feature_fraction", xgboost="colsample_bytree", low=1e-6, high=1, also=("feature_fraction",),
    ),
    _parameter(
        "colsample_bylevel", "number", "Share of the columns drawn for each level (XGBoost). By default 1.",
        xgboost="colsample_bylevel", low=1e-6, high=1,
    ),
    _parameter(
        "colsample_bynode", "number", "Share of the columns drawn for each split. By default 1.",
        lightgbm="feature_fraction_bynode", xgboost="colsample_bynode", low=1e-6, high=1,
        also=("feature_fraction_bynode",),
    ),
    _parameter(
        "reg_alpha", "number", "L1 penalty of the leaves. By default 0.",
        lightgbm="lambda_l1", xgboost="reg_alpha", low=0, also=("alpha", "lambda_l1", "l1_reg", "l1_regularization"),
    ),
    _parameter(
        "reg_lambda", "number", "L2 penalty of the leaves. By default 0 in LightGBM, 1 in XGBoost.",
        lightgbm="lambda_l2", xgboost="reg_lambda", low=0, also=("lambda", "lambda_l2", "l2_reg", "l2_regularization"),
    ),
    _parameter(
        "max_delta_step", "number", "Largest absolute value of a leaf; 0 sets no limit. By default 0.",
        lightgbm="max_delta_step", xgboost="max_delta_step", low=0,
    ),
    _parameter(
        "max_bin", "integer", "Intervals of a number for the search of splits. By default 255 or 256.",
        lightgbm="max_bin", xgboost="max_bin", low=2, high=65_535,
    ),
    _parameter(
        "max_cat_to_onehot", "integer", "Categories up to this size are split one against the rest. By default 4.",
        lightgbm="max_cat_to_onehot", xgboost="max_cat_to_onehot", low=1,
    ),
    _parameter(
        "extra_trees", "boolean",
        "Extremely randomized trees (LightGBM): a split compares one random threshold of each column. By default "
        "false.",
        lightgbm="extra_trees", also=("extra_tree",),
    ),
    _parameter(
        "scale_pos_weight", "number", "Weight of the second of two classes in training. By default 1.",
        lightgbm="scale_pos_weight", xgboost="scale_pos_weight", low=1e-6,
    ),
    _parameter(
        "tree_method", "text", "Method to find splits (XGBoost). By default hist, in intervals.",
        xgboost="tree_method", choices=("auto", "hist", "approx", "exact"),
    ),
    _parameter(
        "grow_policy", "text", "Next split (XGBoost): nearest to the root, or with the largest improvement.",
        xgboost="grow_policy", choices=("depthwise", "lossguide"),
    ),
    _parameter(
        "base_score", "number", "Prediction before the first round (XGBoost). By default estimated.",
        xgboost="base_score",
    ),
    _parameter(
        "num_parallel_tree", "integer", "Trees of a round (XGBoost). By default 1.",
        xgboost="num_parallel_tree", low=1, high=10_000, also=("tree_num",),
    ),
    _parameter(
        "monotone", "directions",
        "Numbers that the prediction never falls (+) or never rises (-) with, all others being equal: [+price, -age].",
        lightgbm="monotone_constraints", xgboost="monotone_constraints",
        also=("monotone_constraints", "monotonic_cst"),
    ),
    _parameter(
        "interactions", "column groups",
        "Columns that may decide together: a tree splits by columns of one list after one another, and by no others. "
        "Columns in no list are a list of their own. [[price, age], [city, street]].",
        lightgbm="interaction_constraints", xgboost="interaction_constraints",
        also=("interaction_constraints", "interaction_cst"),
    ),
    _parameter(
        "rate_drop", "number", "Share of the trees that DART drops in a round. By default 0.1, in XGBoost 0.",
        lightgbm="drop_rate", xgboost="rate_drop", low=0, high=1, also=("drop_rate",),
    ),
    _parameter(
        "skip_drop", "number", "Share of DART's rounds that drop no tree. By default 0.5, in XGBoost 0.",
        lightgbm="skip_drop", xgboost="skip_drop", low=0, high=1,
    ),
)  # fmt: skip
OF_RANKERS = (
    _parameter(
        "truncation_level", "integer",
        "Lowest rank for learning the order: pairs of rows count if one of them is above it. By "
        "default 30 in LightGBM, 32 in XGBoost.",
        lightgbm="lambdarank_truncation_level", xgboost="lambdarank_num_pair_per_sample", low=1, high=10_000,
        also=("lambdarank_truncation_level", "lambdarank_num_pair_per_sample"),
    ),
    _parameter(
        "pair_method", "text",
        "Pairs of rows of a group that a round compares (XGBoost): pairs above the truncation level "
        "(topk), or as many random ones for each row (mean). By default topk.",
        xgboost="lambdarank_pair_method", choices=("topk", "mean"), also=("lambdarank_pair_method",),
    ),
)  # fmt: skip
GROUP = AttributeRow(
    "train.group_column",
    "text",
    "Selected column that identifies the group of rows ranked against each other, such as the rows of "
    "a query; it is not a feature unless COLUMN names it.",
    aliases=("group_column", "group", "train.group", "query_column", "train.query_column", "qid"),
)
DISK_CACHE = AttributeRow(
    "train.disk_cache",
    "boolean",
    "Keep the training rows on disk, and parts of them in memory (XGBoost): for more rows than memory holds.",
    False,
    aliases=("disk_cache",),
)
ATTRIBUTES = tuple(parameter.attribute for parameter in PARAMETERS)
_BY_NAME = {parameter.name: parameter for parameter in (*PARAMETERS, *OF_RANKERS)}
_BY_ATTRIBUTE = {parameter.attribute.name: parameter for parameter in _BY_NAME.values()}

LENGTH = AttributeRow(
    "train.num_boost_round",
    "integer",
    "Rounds of boosting; a round adds a tree, or one for each of several classes. By default up to "
    "1,000 with validation rows (train.early_stopping ends after 25 rounds without a lower loss), "
    "else 100.",
    low=1,
    high=1_000_000,
    aliases=(
        "num_boost_round", "num_round", "train.num_round", "num_rounds", "n_estimators", "model.n_estimators",
        "n_trees", "model.n_trees", "num_trees", "num_iterations", "max_iterations",
    ),
)  # fmt: skip
RATE = AttributeRow(
    "optimizer.learning_rate",
    "number",
    "Factor of each tree's leaves. By default 0.1 in LightGBM, 0.3 in XGBoost.",
    low=0,
    aliases=(
        "learning_rate", "train.learning_rate", "model.learning_rate", "eta", "model.eta", "train.eta", "shrinkage",
        "shrinkage_rate", "learn_rate",
    ),
)  # fmt: skip

# Attributes of networks, which trees do not have.
OF_NETWORKS = (
    "optimizer", "optimizer.clipnorm", "optimizer.global_clipnorm", "optimizer.clipvalue", "train.local_steps",
    "train.grads_to_wait", "train.checkpoint_copies", "train.durable_updates", "train.max_staleness",
    "train.max_workers", "train.embedding_min_count", "train.embedding_max_rows", "train.embedding_ttl_steps",
    "train.device", "train.precision", "train.unseen_rate",
)  # fmt: skip
_ALL_ROWS = "a round takes all training rows; train.num_boost_round is the number of rounds"
_THREADS = "a job uses the cores that it is given"
WITHOUT_EFFECT: Mapping[str, str] = {
    **dict.fromkeys(("train.epoch", "train.epochs", "epoch", "epochs"), _ALL_ROWS),
    **dict.fromkeys(
        ("train.batch_size", "batch_size", "batchsize", "train.minibatch_size", "minibatch_size"), _ALL_ROWS
    ),
    **dict.fromkeys(("nthread", "n_jobs", "num_threads", "train.nthread", "train.n_jobs"), _THREADS),
    **dict.fromkeys(
        ("verbosity", "silent", "verbose", "train.silent", "train.verbosity"), "progress is always shown"
    ),
    **dict.fromkeys(("sketch_eps", "train.sketch_eps"), "max_bin is the number of intervals"),
    **dict.fromkeys(
        ("aft_loss_distribution", "aft_loss_distribution_scale"),
        "they belong to the objective survival:aft alone",
    ),
    "importance_type": "a model has both kinds of importance, gain and split",
}


_BY_PARTS = "only tree_method hist reads its rows by parts"
# attribute, the values of it (none: all) with which the library needs all rows in memory, and the reason
_IN_MEMORY: Sequence[tuple[str, Sequence[object], str]] = (
    ("framework", ("lightgbm",), "LightGBM holds all training rows in memory"),
    ("model.booster", ("gblinear",), _BY_PARTS),
    ("model.tree_method", ("exact", "approx"), _BY_PARTS),
    (GROUP.name, (), "the rows of a ranking are sorted by their groups in memory"),
)


_ALPHA = ("alpha", "model.alpha")
# Loss -> the parameter that LightGBM calls alpha, and its meaning.
_ALPHAS = {
    "quantile": ("loss.quantile", "the share of the labels below the prediction"),
    "huber": (
        "loss.delta",
        "the error at which the loss becomes linear, in standard deviations of the label",
    ),
}


def check(
    resolved: Mapping[str, Resolved], framework: str, errors: list[SQLFlowError], loss: str = ""
) -> None:
    """Add an error for each written parameter that the library lacks, and for a name that means two with the loss."""
    penalty = resolved.get("model.reg_alpha")
    if penalty and framework == "lightgbm" and loss in _ALPHAS and penalty.written.key.lower() in _ALPHA:
        name, meaning = _ALPHAS[loss]
        errors.append(
            SemanticError(
                f"{penalty.written.key} may be {name} of the loss {loss}, or the penalty model.reg_alpha",
                span=penalty.key_span,
                hint=Advice(f"write {name} for {meaning}, or model.reg_alpha", name),
            )
        )
    for name, attribute in resolved.items():
        row = _BY_ATTRIBUTE.get(name)
        linear = name == "model.booster" and attribute.value == "gblinear"
        if row and (not getattr(row, framework) or (linear and framework == "lightgbm")):
            what = "model.booster = gblinear" if linear else name
            other = next(library for library in LIBRARIES if library != framework)
            errors.append(
                SemanticError(
                    f"{LIBRARIES[framework]} has no {what}",
                    span=attribute.key_span,
                    hint=f"leave it out, or write model.framework = {other}",
                )
            )
    disk_cache = resolved.get(DISK_CACHE.name)
    if disk_cache is None or not disk_cache.value:
        return
    given = {"framework": framework, **{name: attribute.value for name, attribute in resolved.items()}}
    reasons = (
        why for name, values, why in _IN_MEMORY if name in given and given[name] in (values or [given[name]])
    )
    for reason in itertools.islice(reasons, 1):
        message = f"{reason}, so there is no {DISK_CACHE.name}"
        errors.append(SemanticError(message, span=disk_cache.key_span, hint="leave it out"))


def parameters(
    params: Mapping[str, spec.job.Parameter], framework: str, rows: int
) -> dict[str, spec.job.Parameter]:
    """Return the parameters with those defaults that depend on the number of training rows."""
    result = {name: "gbtree" if value == "gbdt" else value for name, value in params.items()}
    if framework == "lightgbm" and rows < ENOUGH_ROWS:
        result.setdefault("min_child_samples", max(1, rows // 20))
    return result


def check_columns(
    resolved: Mapping[str, Resolved], features: Iterable[spec.Feature], label: spec.Label, booster: object
) -> Iterator[SQLFlowError]:
    """Yield errors for parameters that name columns, if the model does not read them or cannot heed them, and for a
    weight of a class where there are not two.
    """
    features = list(features)
    weight = resolved.get("model.scale_pos_weight")
    if weight and weight.value != 1 and not label.is_binary:
        is_other = f"has {len(label.classes):,} classes" if label.has_classes else "is a number"
        yield SemanticError(
            f"model.scale_pos_weight is of the second of two classes, and {label.column} {is_other}",
            span=weight.key_span,
            hint="leave it out",
        )
    for name, check in _CHECKS.items():
        written = resolved.get(f"model.{name}")
        if written is None:
            continue
        yield from check(written, features, label)
        if booster == "gblinear":
            yield SemanticError(
                f"model.{name} is for trees, and gblinear is a linear model",
                span=written.span,
                hint="leave it out",
            )


def _check_monotone(
    written: Resolved, features: Sequence[spec.Feature], label: spec.Label
) -> Iterator[SQLFlowError]:
    numbers = {name for feature in features for name in _number_columns(feature)}
    names = [str(text)[1:] for text in written.value] if isinstance(written.value, tuple) else []
    yield from _check_names("model.monotone", written, names, numbers, "no number of the model")
    if label.has_classes and not label.is_binary:
        yield SemanticError(
            f"model.monotone needs a number or two classes, and {label.column} has {len(label.classes):,} classes",
            span=written.span,
            hint="leave it out",
        )


def _check_interactions(
    written: Resolved, features: Sequence[spec.Feature], label: spec.Label
) -> Iterator[SQLFlowError]:
    groups: tuple[tuple[str, ...], ...] = written.value  # type: ignore[assignment]
    columns = {name for feature in features for name in spec.source_columns(feature)}
    errors = [*_check_names("model.interactions", written, chain(*groups), columns, "no column of the model")]
    yield from errors
    if errors:
        return
    sets = _group_columns(features, groups)
    for feature in features:
        sources = {name.casefold() for name in spec.source_columns(feature)}
        if not any(sources <= group for group in sets):
            named = ", ".join(spec.source_columns(feature))
            yield SemanticError(
                f"model.interactions has no list with {named}, which one feature reads together",
                span=written.span,
                hint="add a list of them",
            )


def _check_names(
    parameter: str, written: Resolved, names: Iterable[str], known: Iterable[str], what: str
) -> Iterator[SemanticError]:
    known = set(known)
    folded = {name.casefold() for name in known}
    for name in names:
        if name.casefold() not in folded:
            yield SemanticError(
                f"{parameter} names {name}, which is {what}",
                span=written.span,
                hint=did_you_mean(name, known, list_up_to=12),
            )


def _number_columns(feature: spec.Feature) -> Iterator[str]:
    """Yield the column of a feature that is the number itself."""
    if feature.is_for_trees and feature.is_unchanged and not feature.part:
        yield from (source for source in spec.sources(feature) if isinstance(source, str))


def _group_columns(features: Iterable[spec.Feature], groups: Iterable[Iterable[str]]) -> list[frozenset[str]]:
    """Return the sets of columns that may decide together; columns in no group are the last set."""
    sets = [frozenset(name.casefold() for name in group) for group in groups]
    columns = {name.casefold() for feature in features for name in spec.source_columns(feature)}
    others = columns.difference(*sets)
    return [*sets, frozenset(others)] if others else sets


def _spell_signs(framework: str, features: Iterable[spec.Feature], directions: Iterable[str]) -> str:
    """Return the direction of each column of the matrix: 1, -1, or 0 for none."""
    signs = {text[1:].casefold(): 1 if text[0] == "+" else -1 for text in directions}
    result: list[int] = []
    for feature in features:
        [*names] = _number_columns(feature)
        result += [signs.get(names[0].casefold(), 0)] if names else [0] * spec.width(feature)
    listed = ",".join(map(str, result))
    return listed if framework == "lightgbm" else f"({listed})"


def _spell_groups(framework: str, features: Iterable[spec.Feature], groups: Iterable[Iterable[str]]) -> str:
    """Return the numbers of the columns of the matrix that may decide together: [0,2],[1]."""
    features = list(features)
    numbers: list[list[int]] = []
    for group in _group_columns(features, groups):
        numbers.append([])
        first = 0
        for feature in features:
            if {name.casefold() for name in spec.source_columns(feature)} <= group:
                numbers[-1] += range(first, first + spec.width(feature))
            first += spec.width(feature)
    listed = ",".join(f"[{','.join(map(str, group))}]" for group in numbers)
    return listed if framework == "lightgbm" else f"[{listed}]"


# Parameters that name columns: their checks, and their values in the libraries.
_CHECKS = {"monotone": _check_monotone, "interactions": _check_interactions}
_SPELLINGS: Mapping[str, Callable[[str, Iterable[spec.Feature], Any], str]] = {
    "monotone": _spell_signs,
    "interactions": _spell_groups,
}


def keywords(
    framework: str, params: Mapping[str, Any], features: Iterable[spec.Feature] = ()
) -> dict[str, Any]:
    """Return parameters in the spelling of the library. features: of the matrix, for their columns."""
    result: dict[str, Any] = {}
    for name, value in params.items():
        keyword = getattr(_BY_NAME[name], framework)
        if name in _SPELLINGS:
            result[keyword] = _SPELLINGS[name](framework, features, value)
        elif name == "booster":
            if value != "gbtree":
                result[keyword] = value
        elif keyword:
            result[keyword] = value
    if framework == "lightgbm" and result.get("bagging_fraction", 1) < 1:
        result["bagging_freq"] = 1
    if framework == "xgboost" and "max_leaves" in result:
        result.setdefault("grow_policy", "lossguide")
        result.setdefault("max_depth", 0)
    return result
