"""Options of BigQuery ML's CREATE MODEL, as attributes of WITH at their own places in the text.

An option that no model here has is an error with the statement without it. An option that only tunes how BigQuery finds
the same model is accepted, and the statement warns that it has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edl.errors import Advice, Span, SQLFlowError, StatementSyntaxError, did_you_mean
from sqlflow_edl.syntax.ast import Attribute, Call, Constant, ListValue, MapValue, Name, Value

FORESTS = ("random_forest_regressor", "random_forest_classifier")
TREES = ("boosted_tree_regressor", "boosted_tree_classifier", *FORESTS)
FORECASTS = ("arima_plus", "arima_plus_xreg")
KMEANS = "kmeans"
FACTORS = "matrix_factorization"
PCA = "pca"
LABELS = ("input_label_cols", "time_series_data_col", "labels", "rating_col")
INITIAL_CENTRES = "kmeans_init_col"
PAIR = ("user_col", "item_col")  # of a matrix factorization
# option -> attribute of WITH
_ATTRIBUTES = {
    "learn_rate": "optimizer.learning_rate",
    "max_iterations": "train.epochs",
    "batch_size": "train.batch_size",
    "hidden_units": "model.hidden_units",
    "dropout": "model.dropout",
    "activation_fn": "model.activation",
    "optimizer": "optimizer",
    "subsample": "model.subsample",
    "max_tree_depth": "model.max_depth",
    "min_tree_child_weight": "model.min_child_weight",
    "colsample_bytree": "model.colsample_bytree",
    "colsample_bynode": "model.colsample_bynode",
    "min_split_loss": "model.gamma",
    "data_split_eval_fraction": "validation.fraction",
    "data_split_test_fraction": "validation.test_fraction",
    "data_split_col": "validation.column",
    "instance_weight_col": "train.weight_column",
    "num_clusters": "model.n_clusters",
    "min_rel_progress": "train.tolerance",
    "time_series_timestamp_col": "forecast.time",
    "time_series_id_col": "forecast.series",
    "horizon": "forecast.horizon",
    "num_trials": "auto.trials",
    "num_factors": "model.num_factors",
    "wals_alpha": "model.wals_alpha",
    "num_principal_components": "model.num_components",
    "pca_explained_variance_ratio": "model.explained_variance_ratio",
    "scale_features": "model.scale_features",
    "standardize_features": "model.scale_features",
}
# options of BigQuery's services and of its way to train, without an effect here
_IGNORED = frozenset(
    ("enable_global_explain", "model_registry", "vertex_ai_model_id", "vertex_ai_model_version_aliases", "tree_method",
     "auto_arima", "auto_arima_max_order", "auto_arima_min_order", "data_frequency", "decompose_time_series",
     "ls_init_learn_rate", "learn_rate_strategy", "optimize_strategy", "max_parallel_trials", "warm_start",
     "approx_global_feature_contrib", "hparam_tuning_algorithm", "integrated_gradients_num_steps", "kms_key_name",
     "tf_version", "xgboost_version", "description", "friendly_name", "expiration_timestamp")
)  # fmt: skip
_OF_ARIMA = "a forecast is learned by trees from all rows, which find seasons and steps by themselves"
# options of a forecast that BigQuery's way to train needs -> why they have no effect
_TUNING = {
    **dict.fromkeys(("clean_spikes_and_dips", "adjust_step_changes"), "values are learned as they are"),
    **dict.fromkeys(
        ("non_seasonal_order", "include_drift", "trend_smoothing_window_size", "seasonalities",
         "time_series_length_fraction", "min_time_series_length", "max_time_series_length"), _OF_ARIMA,
    ),
}  # fmt: skip
# values that cannot be read as attributes of WITH, and stand for an option without effect: (1, 1, 0), TIMESTAMP '…'
UNREAD = frozenset(("expiration_timestamp", "non_seasonal_order"))
_METRICS = {
    "f1_score": "f1",
    "mean_absolute_error": "mae",
    "mean_squared_error": "mse",
    "r2_score": "r2",
    "roc_auc": "auc",
    "maximize_au_roc": "auc",
    "maximize_au_prc": "pr_auc",
    "minimize_log_loss": "log_loss",
    "minimize_rmse": "rmse",
    "minimize_mae": "mae",
    "minimize_rmsle": "rmsle",
}
_SPLITS = {"RANDOM": "random", "SEQ": "time", "CUSTOM": "column"}
_CALLS = {"HPARAM_RANGE": "RANGE", "HPARAM_CANDIDATES": "CANDIDATES"}
_ENCODINGS = ("ONE_HOT_ENCODING", "DUMMY_ENCODING", "LABEL_ENCODING", "TARGET_ENCODING")
_COUNTRY = re.compile("[A-Z]{2}")


@dataclass(slots=True)
class OptionReader:
    """Options of a model of this kind, in lower case, with what reading them finds."""

    kind: str
    options: Sequence[Attribute]
    errors: list[SQLFlowError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def find(self, key: str) -> Attribute | None:
        """Return the option of this name, of several the last one."""
        return next((option for option in reversed(self.options) if option.key.casefold() == key), None)

    def attributes(self) -> list[Attribute]:
        """Return the attributes of all options. Errors and warnings are collected."""
        attributes = [attribute for option in self.options for attribute in self._map(option)]
        return _one_framework(_with_penalties(attributes))

    def refuse(self, option: Attribute, message: str, hint: str, *, at_key: bool = False) -> None:
        """Add the error of an option that is not available, with the advice to leave it out."""
        at = self.options.index(option)
        start = self.options[at - 1].value.span.end if at else option.key_span.start
        is_first_of_several = not at and len(self.options) > 1
        end = self.options[1].key_span.start if is_first_of_several else option.value.span.end
        span = option.key_span if at_key else option.value.span
        advice = Advice(hint, "", Span(start, end))
        self.errors.append(StatementSyntaxError(message, span=span, hint=advice))

    def warn_of(self, what: str) -> None:
        self.warnings.append(what)

    def warn(self, option: Attribute, why: str) -> None:
        self.warnings.append(f"{option.key} has no effect: {why}")

    def _map(self, option: Attribute) -> Iterator[Attribute]:
        """Yield the attributes of an option; add an error for an option that is not available here."""
        key = option.key.casefold()
        if key in _SPECIAL:
            yield from _SPECIAL[key](self, option)
        elif (
            key in ("model_type", *LABELS, *PAIR)
            or key in _IGNORED
            or (key == "min_rel_progress" and self.kind != KMEANS)
        ):
            return
        elif key in _TUNING and self.kind in FORECASTS:
            if getattr(option.value, "value", None) is not False:
                self.warn(option, _TUNING[key])
        elif key in _ATTRIBUTES:
            name = _ATTRIBUTES[key]
            if key == "max_iterations" and self.kind in (*TREES, FACTORS):
                name = "model.iterations" if self.kind == FACTORS else "train.num_boost_round"
            yield replace(
                option,
                key=name,
                value=convert_value(option.value),
            )
        else:
            near = did_you_mean(key, (*_ATTRIBUTES, *_SPECIAL))
            hint = near or "sqlflow help bigquery-ml lists the options; TRAIN has attributes of its own"
            self.errors.append(
                StatementSyntaxError(f"unknown option {option.key}", span=option.key_span, hint=hint)
            )


def option_text(option: Attribute | None) -> str:
    """Return the text or the word that an option has, or an empty text."""
    value = option.value if option else None
    if isinstance(value, Constant) and isinstance(value.value, str):
        return value.value
    return value.text if isinstance(value, Name) else ""


def is_null(option: Attribute) -> bool:
    return isinstance(option.value, Constant) and option.value.value is None


def convert_value(value: Value) -> Value:
    """Return the value with calls of ours in place of HPARAM_RANGE and HPARAM_CANDIDATES."""
    if isinstance(value, Call) and value.function.upper() in _CALLS:
        return replace(value, function=_CALLS[value.function.upper()], args=tuple(_candidates(value)))
    return value


def _candidates(value: Call) -> Sequence[Value]:
    """Return the arguments of a call, or the items of the list that is its only one."""
    if len(value.args) == 1 and isinstance(value.args[0], ListValue):
        return tuple(map(_plain_list, value.args[0].items))
    return value.args


def _plain_list(value: Value) -> Value:
    """Return the list of STRUCT([64, 32]), a candidate of a search, or another value as it is."""
    is_struct = isinstance(value, Call) and value.function.upper() == "STRUCT" and len(value.args) == 1
    return value.args[0] if is_struct and isinstance(value.args[0], ListValue) else value  # type: ignore[union-attr]


def _constant(option: Attribute) -> object:
    return option.value.value if isinstance(option.value, Constant) else option_text(option)


# Readers of options ----------------------------------------------------------------------------------------


def _early_stop(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    if _constant(option) is False and reader.kind not in (FACTORS, PCA):
        yield replace(option, key="train.early_stopping", value=Constant(0, option.value.span))


def _split(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    method = option_text(option).upper()
    if method == "NO_SPLIT":
        yield replace(option, key="validation.fraction", value=Constant(0, option.value.span))
    elif method in _SPLITS:
        yield replace(option, key="validation.split", value=Constant(_SPLITS[method], option.value.span))
    elif method != "AUTO_SPLIT":
        reader.errors.append(
            StatementSyntaxError(
                f"there is no data_split_method {method or 'of that kind'}",
                span=option.value.span,
                hint="AUTO_SPLIT, RANDOM, SEQ, CUSTOM and NO_SPLIT are possible; TRAIN has VALIDATE ON (query)",
            )
        )


def _class_weights(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    if _constant(option) is True:
        yield replace(option, key="train.class_weights", value=Constant("balanced", option.value.span))


def _weights_of_classes(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield the weights that are written as STRUCT(class, weight)."""
    items = option.value.items if isinstance(option.value, ListValue) else ()
    pairs = [item.args for item in items if isinstance(item, Call) and item.function.upper() == "STRUCT"]
    weights = tuple(
        (_class_name(pair[0].value), pair[1])
        for pair in pairs
        if len(pair) == 2 and isinstance(pair[0], Constant)
    )
    if not weights or len(weights) != len(items):
        hint = "write class_weights = [STRUCT('a', 0.2), STRUCT('b', 0.8)]"
        reader.errors.append(
            StatementSyntaxError("these are not weights of classes", span=option.value.span, hint=hint)
        )
        return
    yield replace(option, key="train.class_weights", value=MapValue(weights, option.value.span))


def _class_name(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _budget(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    hours = option.value.value if isinstance(option.value, Constant) else None
    if isinstance(hours, int | float) and not isinstance(hours, bool):
        yield replace(option, key="train.time_limit", value=Constant(hours * 3600, option.value.span))
    else:
        reader.errors.append(StatementSyntaxError("budget_hours is a number", span=option.value.span))


def _objective(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield the metric of a search by its name here."""
    items = option.value.items if isinstance(option.value, ListValue) else (option.value,)
    names = [item.value if isinstance(item, Constant) else None for item in items]
    if len(names) != 1 or not isinstance(names[0], str):
        hint = "write hparam_tuning_objectives = ['roc_auc']"
        reader.errors.append(
            StatementSyntaxError("a search has one objective", span=option.value.span, hint=hint)
        )
        return
    name = names[0].casefold()
    yield replace(option, key="auto.metric", value=Constant(_METRICS.get(name, name), option.value.span))


def _penalty(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield a penalty: of the leaves of trees, of the exact solution, or of the optimizer of a network."""
    is_l1, name = option.key.casefold() == "l1_reg", option.key.casefold()
    if reader.kind in TREES:
        yield replace(
            option, key="model.reg_alpha" if is_l1 else "model.reg_lambda", value=convert_value(option.value)
        )
    elif reader.kind == FACTORS and not is_l1:
        yield replace(option, key="model.l2_reg", value=convert_value(option.value))
    elif _constant(option) == 0:
        return
    elif not is_l1 and reader.kind in ("linear_reg", "logistic_reg") and _is_zero(reader.find("l1_reg")):
        yield replace(option, key="model.l2", value=convert_value(option.value))
    elif (optimizer := option_text(reader.find("optimizer")).upper()) in ("", "FTRL"):
        key = f"optimizer.{'l1' if is_l1 else 'l2'}_regularization_strength"
        yield replace(option, key=key, value=convert_value(option.value))
    elif optimizer == "ADAM" and not is_l1:
        yield replace(option, key="optimizer.weight_decay", value=convert_value(option.value))
    else:
        hint = f"leave it out, or write optimizer = 'FTRL', which has {name}"
        reader.refuse(option, f"{option.key} needs another optimizer than {optimizer}", hint, at_key=True)


def _is_zero(option: Attribute | None) -> bool:
    return option is None or _constant(option) == 0


def _with_penalties(attributes: Sequence[Attribute]) -> list[Attribute]:
    """Return the attributes with the optimizer that their penalties need: FTRL, or Adam with a decay of weights."""
    for key, optimizer in (("_regularization_strength", "ftrl"), ("optimizer.weight_decay", "adamw")):
        if of := next((attribute for attribute in attributes if attribute.key.endswith(key)), None):
            needed = Attribute("optimizer", Constant(optimizer, of.value.span), of.key_span)
            return [needed, *(attribute for attribute in attributes if attribute.key != "optimizer")]
    return list(attributes)


def _booster(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield the booster: DART drops trees; GBTREE is what trees are without it."""
    if isinstance(option.value, Call):
        names = [str(getattr(item, "value", "")).lower() for item in _candidates(option.value)]
        values = tuple(Constant(name, option.value.span) for name in names)
        if names != ["gbtree"]:
            yield replace(
                option, key="model.booster", value=replace(option.value, function="CANDIDATES", args=values)
            )
        return
    booster = option_text(option).upper()
    if booster == "DART":
        yield replace(option, key="model.booster", value=Constant("dart", option.value.span))
    elif booster != "GBTREE":
        reader.errors.append(
            StatementSyntaxError(
                f"there is no booster_type {booster or 'of that kind'}",
                span=option.value.span,
                hint=Advice("write GBTREE or DART", "'GBTREE'"),
            )
        )


def _of_xgboost(name: str) -> Callable[[OptionReader, Attribute], Iterator[Attribute]]:
    """Return a reader of a parameter of trees that XGBoost alone has; 1 is its default."""

    def read(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
        is_forest = reader.kind in FORESTS  # which is XGBoost's
        if _constant(option) != 1 or is_forest:
            yield replace(option, key=name, value=convert_value(option.value))
        if _constant(option) != 1 and not is_forest:
            yield Attribute("model.framework", Constant("xgboost", option.value.span), option.key_span)

    return read


def _one_framework(attributes: Sequence[Attribute]) -> list[Attribute]:
    """Return the attributes with the library of trees named once."""
    first = next((attribute for attribute in attributes if attribute.key == "model.framework"), None)
    return [one for one in attributes if one.key != "model.framework" or one is first]


def _clusters(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield the number of clusters; a search for it is an error with its least number."""
    if not isinstance(option.value, Call):
        yield replace(option, key=_ATTRIBUTES["num_clusters"])
        return
    least = getattr(next(iter(_candidates(option.value)), None), "value", 3)
    reader.errors.append(
        StatementSyntaxError(
            "a number of clusters is not searched for, as clusters have no label to be measured by",
            span=option.value.span,
            hint=Advice(f"write one number, such as {least}, and compare models by ML.EVALUATE", str(least)),
        )
    )
    for key in ("num_trials", "max_parallel_trials", "hparam_tuning_objectives", "hparam_tuning_algorithm"):
        if (other := reader.find(key)) is not None:
            reader.refuse(other, f"{other.key} belongs to a search", "leave it out", at_key=True)


def _distance(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    kind = option_text(option).upper()
    if kind in ("EUCLIDEAN", "COSINE"):
        yield replace(option, key="model.distance", value=Constant(kind.lower(), option.value.span))
    else:
        reader.errors.append(
            StatementSyntaxError(
                f"there is no distance_type {kind or 'of that kind'}",
                span=option.value.span,
                hint=Advice("write EUCLIDEAN or COSINE", "'COSINE'"),
            )
        )


def _initial_centres(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    method = option_text(option).upper()
    if method == "CUSTOM" and reader.find(INITIAL_CENTRES) is None:
        reader.errors.append(
            StatementSyntaxError(
                f"{option.key} = 'CUSTOM' needs the column that marks the first centres",
                span=option.value.span,
                hint=f"{INITIAL_CENTRES} names it; it is true in one row for each cluster",
            )
        )
    elif method not in ("CUSTOM", "KMEANS++", "RANDOM"):
        reader.refuse(
            option,
            f"{option.key} = {method} is not available",
            "leave it out: the start is k-means++",
        )
    yield from ()


def _initial_column(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    if option_text(reader.find("kmeans_init_method")).upper() == "CUSTOM":
        yield replace(option, key="model.init_column")
    else:
        hint = "leave it out, or write kmeans_init_method = 'CUSTOM'"
        reader.refuse(option, f"{option.key} needs kmeans_init_method = 'CUSTOM'", hint, at_key=True)


def _feedback(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield the kind of feedback in our words; `factorization.check_feedback` has checked it."""
    if kind := option_text(option).casefold():
        yield replace(option, key="model.feedback_type", value=Constant(kind, option.value.span))


def _no_penalty_of_codes(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    if _constant(option) != 0:
        reader.warn(option, "the codes have no penalty")
    yield from ()


def _holidays(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    items = option.value.items if isinstance(option.value, ListValue) else (option.value,)
    names = [str(getattr(item, "value", "")) for item in items]
    if len(names) == 1 and _COUNTRY.fullmatch(names[0]):
        yield replace(option, key="forecast.holidays", value=Constant(names[0], option.value.span))
    else:
        reader.warn(option, "holidays are of one country, such as US")


def _limit(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
    """Yield the lower limit 0; other limits are errors."""
    if option.key.casefold() == "forecast_limit_lower_bound" and _constant(option) == 0:
        yield replace(option, key="forecast.non_negative", value=Constant(True, option.value.span))
        return
    bound = "GREATEST" if "lower" in option.key.casefold() else "LEAST"
    shown = _constant(option)
    reader.refuse(
        option,
        f"{option.key} = {shown} is not available",
        f"leave it out, and write {bound}(forecast_value, {shown}) in the query with ML.FORECAST",
    )


def _allow_only(
    *usual: str | bool | int, hint: str
) -> Callable[[OptionReader, Attribute], Iterator[Attribute]]:
    """Return a reader of an option with these values, which are what the model does, and no other ones."""

    def read(reader: OptionReader, option: Attribute) -> Iterator[Attribute]:
        value = _constant(option)
        if (value.upper() if isinstance(value, str) else value) not in usual:
            shown = str(value).upper() if isinstance(value, bool) else value
            reader.refuse(option, f"{option.key} = {shown} is not available", hint)
        yield from ()

    return read


_SPECIAL: Mapping[str, Callable[[OptionReader, Attribute], Iterator[Attribute]]] = {
    "early_stop": _early_stop,
    "data_split_method": _split,
    "auto_class_weights": _class_weights,
    "budget_hours": _budget,
    "distance_type": _distance,
    "booster_type": _booster,
    "calculate_p_values": _allow_only(False, True, hint="leave it out"),
    "category_encoding_method": _allow_only(
        *_ENCODINGS, hint="leave it out: a category has a weight for each value"
    ),
    "fit_intercept": _allow_only(True, hint="leave it out: a model has an intercept"),
    "class_weights": _weights_of_classes,
    "hparam_tuning_objectives": _objective,
    "optimization_objective": _objective,
    "num_parallel_tree": _of_xgboost("model.num_parallel_tree"),
    "colsample_bylevel": _of_xgboost("model.colsample_bylevel"),
    "dart_normalize_type": _allow_only(
        "TREE", hint="leave it out: a new tree weighs as much as each dropped one"
    ),
    "l1_reg": _penalty,
    "l2_reg": _penalty,
    "kmeans_init_method": _initial_centres,
    INITIAL_CENTRES: _initial_column,
    "num_clusters": _clusters,
    "holiday_region": _holidays,
    "feedback_type": _feedback,
    "pca_solver": _allow_only(
        "AUTO", "FULL", "RANDOMIZED", hint="leave it out: the components are exact, as with FULL"
    ),
    "l1_reg_activation": _no_penalty_of_codes,
    "forecast_limit_lower_bound": _limit,
    "forecast_limit_upper_bound": _limit,
}
