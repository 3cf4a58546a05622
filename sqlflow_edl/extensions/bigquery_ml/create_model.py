"""Statements of BigQuery ML: `CREATE MODEL name [TRANSFORM(…)] OPTIONS(…) AS SELECT …`, as a TRAIN statement.

The options are read as attributes of WITH, at their own places in the text, so that errors point to what is written.
`sqlflow_edl.syntax.predict_calls` reads ML.PREDICT and its like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edl.errors import Span, SQLFlowError, StatementSyntaxError, did_you_mean, raise_all
from edl.extension_loader import load
from sqlflow_edl.extensions.bigquery_ml.transform import column_text
from sqlflow_edl.syntax.ast import (
    Attribute,
    Call,
    ColumnClause,
    Constant,
    ListValue,
    MapValue,
    Name,
    Statement,
    Value,
)
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.foreign_statements import CREATE_MODEL, GAP, read_model_name
from sqlflow_edl.syntax.keywords import LazyTokens
from sqlflow_edl.syntax.lexer import (
    Token,
    clause_tokens,
    code_tokens,
    sql_tokens,
    with_hash_comments,
)

_OPTIONS = re.compile(rf"{GAP}*(?P<word>OPTIONS){GAP}*\(", re.IGNORECASE | re.DOTALL)
# model_type -> model of ours, None for the short form
MODELS: Mapping[str, str | None] = {
    "linear_reg": "LinearRegressor",
    "logistic_reg": "LinearClassifier",
    "dnn_regressor": "DNNRegressor",
    "dnn_classifier": "DNNClassifier",
    "dnn_linear_combined_regressor": "DNNLinearCombinedRegressor",
    "dnn_linear_combined_classifier": "DNNLinearCombinedClassifier",
    "boosted_tree_regressor": "BoostedTreesRegressor",
    "boosted_tree_classifier": "BoostedTreesClassifier",
    "random_forest_regressor": "RandomForestRegressor",
    "random_forest_classifier": "RandomForestClassifier",
    "kmeans": "KMeans",
    "arima_plus": "Forecast",
    "transform_only": "Transform",
    "automl_regressor": None,
    "automl_classifier": None,
}
_INSTEAD = {
    "matrix_factorization": "train a DeepFM with embeddings of users and items, see sqlflow help embeddings",
    "autoencoder": "clusters of codes are those of SELECT … TO TRAIN DeepEmbeddedClustering INTO my_model",
    "contribution_analysis": "write SELECT … TO EXPLAIN my_model",
}
_FILES = ("onnx", "lightgbm", "xgboost", "tensorflow", "tensorflow_lite")  # model types of files
_FORESTS = ("random_forest_regressor", "random_forest_classifier")
_TREES = ("boosted_tree_regressor", "boosted_tree_classifier", *_FORESTS)
_NETWORKS = ("dnn_", "linear", "logistic")
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
    "num_parallel_tree": "model.num_parallel_tree",
    "l1_reg": "model.reg_alpha",
    "l2_reg": "model.reg_lambda",
    "data_split_eval_fraction": "validation.fraction",
    "data_split_test_fraction": "validation.test_fraction",
    "data_split_col": "validation.column",
    "colsample_bylevel": "model.colsample_bylevel",
    "instance_weight_col": "train.weight_column",
    "num_clusters": "model.n_clusters",
    "min_rel_progress": "train.tolerance",
    "time_series_timestamp_col": "forecast.time",
    "time_series_id_col": "forecast.series",
    "horizon": "forecast.horizon",
    "num_trials": "auto.trials",
    "optimization_objective": "auto.metric",
}
_OF_TREES = frozenset(("l1_reg", "l2_reg"))
_WITHOUT_LABEL = (MODELS["transform_only"], MODELS["kmeans"])
# options without an effect here
_IGNORED = frozenset(
    ("enable_global_explain", "model_registry", "vertex_ai_model_id", "vertex_ai_model_version_aliases", "tree_method",
     "auto_arima", "auto_arima_max_order", "data_frequency", "decompose_time_series",
     "ls_init_learn_rate", "learn_rate_strategy", "optimize_strategy", "max_parallel_trials", "warm_start",
     "approx_global_feature_contrib", "hparam_tuning_algorithm", "integrated_gradients_num_steps", "kms_key_name",
     "tf_version", "xgboost_version", "description", "friendly_name", "expiration_timestamp")
)  # fmt: skip
_OTHERS = (
    "model_type",
    "input_label_cols",
    "time_series_data_col",
    "early_stop",
    "data_split_method",
    "auto_class_weights",
    "budget_hours",
    "standardize_features",
    "distance_type",
    "kmeans_init_method",
    "hparam_tuning_objectives",
    "class_weights",
)
_ORDER = "write CREATE MODEL … TRANSFORM(…) OPTIONS(…) AS SELECT …"
_LABELS = ("input_label_cols", "time_series_data_col", "labels")
_HORIZON = 30  # of a forecast without one: BigQuery's 1,000 steps would each need a column of the past
# labels of the resource, pairs of texts, which have no effect here; `labels` also is an older input_label_cols
_RESOURCE_LABELS = re.compile(r"\blabels\s*=\s*(\[\s*\(.*?\)\s*\])", re.IGNORECASE | re.DOTALL)
_QUANTILES = (0.1, 0.9)
_AS_THEY_ARE = "leave it out: values are learned as they are"
_METRICS = {
    "f1_score": "f1",
    "mean_absolute_error": "mae",
    "mean_squared_error": "mse",
    "r2_score": "r2",
    "roc_auc": "auc",
}
_SPLITS = {"RANDOM": "random", "SEQ": "time", "CUSTOM": "column"}
_CALLS = {"HPARAM_RANGE": "RANGE", "HPARAM_CANDIDATES": "CANDIDATES"}


@dataclass(frozen=True, slots=True)
class _Head:
    """Words before AS: the name as it is written, the word OPTIONS, and what stands between the parentheses."""

    name: Name
    word: Span
    options: Span
    transform: Span | None


def read_create_model(text: str, span: Span, dialect: Dialect) -> Statement:
    """Return CREATE MODEL as a TRAIN statement, as the short form, or as an import of a file.

    span: of the statement in the program's text. Raises SQLFlowError with the place for options and models that are not
    here.
    """
    head = CREATE_MODEL.match(text, span.start)
    if head is None:
        raise RuntimeError("the statement creates no model")
    transform = None
    opening, word = head.end() - 1, Span(head.start("word"), head.end("word"))
    if head["word"].upper() == "TRANSFORM":
        transform = Span(opening + 1, find_parenthesis(text, opening, span.end, dialect))
        behind = _OPTIONS.match(text, transform.end + 1)
        if behind is None:
            raise StatementSyntaxError("TRANSFORM stands before OPTIONS", span=word, hint=_ORDER)
        opening, word = behind.end() - 1, Span(behind.start("word"), behind.end("word"))
    end = find_parenthesis(text, opening, span.end, dialect)
    parsed_head = _Head(read_model_name(head), word, Span(opening + 1, end), transform)
    options = _option_attributes(text, span, parsed_head, dialect)
    if _names_file(options):
        if transform is not None:
            raise StatementSyntaxError(
                "TRANSFORM is not available with the model of a file",
                span=transform,
                hint="compute columns in the query that predicts",
            )
        make = load("sqlflow_edl.extensions.imported.statement", "make_statement")
        imported: Statement = make(text, span, parsed_head.name, options, end)
        return replace(imported, if_absent=bool(head["absent"]))
    made = _statement(text, span, parsed_head, options, _query(text, end, span, dialect), dialect)
    return replace(made, if_absent=bool(head["absent"]))


def _names_file(options: Sequence[Attribute]) -> bool:
    """Return True for options that name a file of a model, or a type of such files."""
    kinds = [option_text(option).casefold() for option in options if option.key.casefold() == "model_type"]
    return any(kind in _FILES for kind in kinds) or any(
        option.key.casefold() == "model_path" for option in options
    )


def find_parenthesis(text: str, opening: int, end: int, dialect: Dialect) -> int:
    """Return the place of the parenthesis that closes the opening one of the options or of TRANSFORM."""
    depth = 0
    for token in sql_tokens(text, opening, with_hash_comments(dialect)):
        depth += token.nesting
        if token.start >= end:
            break
        if depth == 0:
            return token.start
    raise StatementSyntaxError(
        "the parenthesis is not closed", span=Span(opening, opening + 1), hint="write )"
    )


def _query(text: str, closing: int, span: Span, dialect: Dialect) -> Span:
    tokens = code_tokens(text, closing + 1, with_hash_comments(dialect))
    word = next(tokens, Token("end", span.end, span.end, ""))
    first = next(tokens, Token("end", span.end, span.end, ""))
    if word.word != "AS" or first.start >= span.end:
        raise StatementSyntaxError(
            "a model needs a query to learn from",
            span=Span(closing, closing + 1),
            hint="write AS SELECT … behind it",
        )
    return Span(first.start, span.end)


def _statement(
    text: str, span: Span, head: _Head, option_list: Sequence[Attribute], select: Span, dialect: Dialect
) -> Statement:
    options = {option.key.casefold(): option for option in option_list}
    errors: list[SQLFlowError] = []
    kind = option_text(options.get("model_type"))
    model = _model(options, head, errors)
    raise_all(errors)  # the options of an unknown model are unknown, too
    attributes = [mapped for option in option_list for mapped in _map_option(option, kind.casefold(), errors)]
    of_label = (option for option in map(options.get, _LABELS) if option and not _is_null(option))
    labels = _labels(next(of_label, None), model, head, errors)
    raise_all(errors)
    if model is not None and model.text == MODELS["arima_plus"]:  # for the intervals of ML.FORECAST
        bounds = tuple(Constant(quantile, model.span) for quantile in _QUANTILES)
        attributes.append(Attribute("forecast.quantiles", ListValue(bounds, model.span), model.span))
        if "horizon" not in options:
            attributes.append(Attribute("forecast.horizon", Constant(_HORIZON, model.span), model.span))
    if head.transform is not None:
        _check_transform(text, head.transform, model, attributes)
    others = {name.text.casefold() for name in labels} | {
        option_text(options.get("data_split_col")).casefold()
    }
    return Statement(
        "auto" if model is None else "train",
        text=text[span.start : span.end],
        span=span,
        select=text[select.start : select.end],
        select_span=select,
        model=model,
        attributes=tuple(attributes),
        columns=_columns(text, span, head.transform, others, dialect),
        labels=labels,
        into=(head.name,),
        warnings=tuple(_warnings(options)),
    )


def _warnings(options: Mapping[str, Attribute]) -> Iterator[str]:
    """Warn of a horizon that is not BigQuery's, and of a number of steps that BigQuery would not look at."""
    if option_text(options.get("model_type")).casefold() == "arima_plus" and "horizon" not in options:
        yield f"the forecast has a horizon of {_HORIZON} steps; horizon = 90 in OPTIONS asks for 90"
    by_steps = option_text(options.get("optimize_strategy")).upper() == "BATCH_GRADIENT_DESCENT"
    if (
        option_text(options.get("model_type")).casefold() == "linear_reg"
        and "max_iterations" in options
        and not by_steps
    ):
        yield (
            "max_iterations asks for a training in steps, where BigQuery solves LINEAR_REG exactly: leave it out to "
            "have the exact solution here, too"
        )


def _check_transform(text: str, transform: Span, model: Name | None, attributes: Sequence[Attribute]) -> None:
    """Raise StatementSyntaxError for a search or a forecast, which take no such clause."""
    searches = any(isinstance(attribute.value, Call) for attribute in attributes)
    if model is None or searches or model.text == MODELS["arima_plus"]:
        what = "a search" if model is None or searches else "a forecast"
        raise StatementSyntaxError(
            f"TRANSFORM is not available with {what}", span=transform, hint="compute columns in the SELECT"
        )


def _columns(
    text: str, span: Span, transform: Span | None, others: set[str], dialect: Dialect
) -> tuple[ColumnClause, ...]:
    """Return the items of TRANSFORM as items of COLUMN, at their places."""
    if transform is None:
        return ()
    items = column_text(text, transform, others, dialect)
    return tuple(
        replace(clause, only=True)
        for clause in parse_clause(span, transform.start, "COLUMN", items, dialect).columns
    )


def _option_attributes(text: str, span: Span, head: _Head, dialect: Dialect) -> tuple[Attribute, ...]:
    """Return the options as attributes of WITH, at their places."""
    inside = text[head.options.start : head.options.end]
    inside = _RESOURCE_LABELS.sub(
        lambda match: match[0].replace(match[1], "NULL".ljust(len(match[1]))), inside
    )
    return parse_clause(span, head.options.start, "WITH", inside, dialect).attributes


def parse_clause(span: Span, place: int, word: str, inside: str, dialect: Dialect) -> Statement:
    """Parse a clause of TRAIN from its text at `place`: TRAIN x and its word stand in the places of other words."""
    from sqlflow_edl.syntax.ast_builder import build_statement
    from sqlflow_edl.syntax.clauses import parse_clauses

    same = f"{' ' * span.start}TRAIN x {word}".ljust(place) + inside
    tree = parse_clauses(LazyTokens(clause_tokens(same, span.start, dialect)), dialect)
    statement = build_statement(tree, same, dialect)
    if (
        statement.labels
        or statement.into
        or statement.using
        or statement.validate
        or (statement.columns and statement.attributes)
    ):
        raise StatementSyntaxError(
            "the clauses of TRAIN do not stand here",
            span=Span(place, place + len(inside)),
            hint="OPTIONS have the label, and the name of the model stands before them",
        )
    return statement


def _is_null(option: Attribute) -> bool:
    return isinstance(option.value, Constant) and option.value.value is None


def option_text(option: Attribute | None) -> str:
    value = option.value if option else None
    if isinstance(value, Constant) and isinstance(value.value, str):
        return value.value
    return value.text if isinstance(value, Name) else ""


def _model(options: Mapping[str, Attribute], head: _Head, errors: list[SQLFlowError]) -> Name | None:
    option = options.get("model_type")
    kind = option_text(option)
    if kind.casefold() in MODELS:
        model_name = MODELS[kind.casefold()]
        return Name((model_name,), model_name, option.value.span) if model_name and option else None
    if option is None:
        place, message = head.word, "the options name no model_type"
    else:
        place, message = option.value.span, f"there is no model_type {kind or 'of that kind'}"
    hint = _INSTEAD.get(kind.casefold()) or did_you_mean(kind.casefold(), list(MODELS))
    errors.append(StatementSyntaxError(message, span=place, hint=hint))
    return None


def _labels(
    option: Attribute | None, model: Name | None, head: _Head, errors: list[SQLFlowError]
) -> tuple[Name, ...]:
    """Return the label; without the option it is the column `label`. Transforms and clusters have none."""
    if option is None and model is not None and model.text in _WITHOUT_LABEL:
        return ()
    if option is None:
        return (Name(("label",), "label", head.name.span, implied=True),)
    items = option.value.items if isinstance(option.value, ListValue) else (option.value,)
    names = [item.value for item in items if isinstance(item, Constant) and isinstance(item.value, str)]
    if len(names) != 1 or len(items) != 1:
        errors.append(
            StatementSyntaxError(
                "a model has one label", span=option.value.span, hint="write input_label_cols = ['my_column']"
            )
        )
        return ()
    return (Name((names[0],), names[0], option.value.span),)


def _map_option(option: Attribute, kind: str, errors: list[SQLFlowError]) -> Iterator[Attribute]:
    """Yield the attributes of an option; add an error for an option that is not available here."""
    key = option.key.casefold()
    is_number_of_trees = key == "num_parallel_tree" and kind in _FORESTS
    if key in _SPECIAL and not is_number_of_trees:
        yield from _SPECIAL[key](option, errors)
    elif (
        key in ("model_type", *_LABELS) or key in _IGNORED or (key == "min_rel_progress" and kind != "kmeans")
    ):
        return
    elif key in _OF_TREES and kind not in _TREES:
        if isinstance(option.value, Constant) and option.value.value == 0:
            return
        if key == "l2_reg" and kind == "linear_reg":
            yield replace(option, key="model.l2")
            return
        errors.append(
            StatementSyntaxError(
                f"{option.key} is for boosted trees",
                span=option.key_span,
                hint="leave it out; networks have dropout; TRAIN has optimizer = adamw, optimizer.weight_decay = 0.1",
            )
        )
    elif key in _ATTRIBUTES:
        name = "train.num_boost_round" if key == "max_iterations" and kind in _TREES else _ATTRIBUTES[key]
        yield replace(option, key=name, value=_value(option.value))
    else:
        names = (*_ATTRIBUTES, *_OTHERS)
        hint = (
            did_you_mean(key, names)
            or "sqlflow help bigquery-ml lists the options; TRAIN has attributes of its own"
        )
        errors.append(StatementSyntaxError(f"unknown option {option.key}", span=option.key_span, hint=hint))


def _value(value: Value) -> Value:
    """Return the value with calls of ours in place of HPARAM_RANGE and HPARAM_CANDIDATES."""
    if isinstance(value, Call) and value.function.upper() in _CALLS:
        arguments: Sequence[Value] = value.args
        if len(arguments) == 1 and isinstance(arguments[0], ListValue):
            arguments = arguments[0].items
        return replace(value, function=_CALLS[value.function.upper()], args=tuple(arguments))
    return value


def _early_stop(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
    if isinstance(option.value, Constant) and option.value.value is False:
        yield replace(option, key="train.early_stopping", value=replace(option.value, value=0))


def _split(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
    method = option_text(option).upper()
    if method == "NO_SPLIT":
        yield replace(option, key="validation.fraction", value=Constant(0, option.value.span))
    elif method in _SPLITS:
        yield replace(option, key="validation.split", value=Constant(_SPLITS[method], option.value.span))
    elif method != "AUTO_SPLIT":
        errors.append(
            StatementSyntaxError(
                f"there is no data_split_method {method or 'of that kind'}",
                span=option.value.span,
                hint="AUTO_SPLIT, RANDOM, SEQ, CUSTOM and NO_SPLIT are possible; TRAIN has VALIDATE ON (query)",
            )
        )


def _class_weights(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
    if isinstance(option.value, Constant) and option.value.value is True:
        yield replace(option, key="train.class_weights", value=Constant("balanced", option.value.span))


def _weights_of_classes(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
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
        errors.append(
            StatementSyntaxError("these are not weights of classes", span=option.value.span, hint=hint)
        )
        return
    yield replace(option, key="train.class_weights", value=MapValue(weights, option.value.span))


def _class_name(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _budget(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
    hours = option.value.value if isinstance(option.value, Constant) else None
    if isinstance(hours, int | float) and not isinstance(hours, bool):
        yield replace(option, key="train.time_limit", value=Constant(hours * 3600, option.value.span))
    else:
        errors.append(StatementSyntaxError("budget_hours is a number", span=option.value.span))


def _objectives(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
    """Yield the metric of a search by its name here."""
    items = option.value.items if isinstance(option.value, ListValue) else (option.value,)
    names = [item.value if isinstance(item, Constant) else None for item in items]
    if len(names) != 1 or not isinstance(names[0], str):
        hint = "write hparam_tuning_objectives = ['roc_auc']"
        errors.append(StatementSyntaxError("a search has one objective", span=option.value.span, hint=hint))
        return
    name = names[0].casefold()
    yield replace(option, key="auto.metric", value=Constant(_METRICS.get(name, name), option.value.span))


def _allow_only(
    *usual: str | bool | int, hint: str
) -> Callable[[Attribute, list[SQLFlowError]], Iterator[Attribute]]:
    """Return a function that takes an option with these values, which are what the model does, and no other ones."""

    def check(option: Attribute, errors: list[SQLFlowError]) -> Iterator[Attribute]:
        value = option.value.value if isinstance(option.value, Constant) else option_text(option)
        if (value.upper() if isinstance(value, str) else value) not in usual:
            shown = str(value).upper() if isinstance(value, bool) else value
            message = f"{option.key} = {shown} is not available"
            errors.append(StatementSyntaxError(message, span=option.value.span, hint=hint))
        yield from ()

    return check


_SPECIAL: Mapping[str, Callable[[Attribute, list[SQLFlowError]], Iterator[Attribute]]] = {
    "early_stop": _early_stop,
    "data_split_method": _split,
    "auto_class_weights": _class_weights,
    "budget_hours": _budget,
    "standardize_features": _allow_only(True, hint="write SELECT … TO TRAIN KMeans … COLUMN NUMERIC(x)"),
    "distance_type": _allow_only("EUCLIDEAN", hint="leave it out: distances are Euclidean"),
    "adjust_step_changes": _allow_only(False, hint=_AS_THEY_ARE),
    "booster_type": _allow_only("GBTREE", hint="leave it out: trees are boosted by their gradients"),
    "calculate_p_values": _allow_only(
        False, hint="leave it out: a training by steps has no errors of its weights"
    ),
    "category_encoding_method": _allow_only(
        "ONE_HOT_ENCODING", hint="leave it out: a category has a weight for each value"
    ),
    "clean_spikes_and_dips": _allow_only(False, hint=_AS_THEY_ARE),
    "fit_intercept": _allow_only(True, hint="leave it out: a model has an intercept"),
    "class_weights": _weights_of_classes,
    "hparam_tuning_objectives": _objectives,
    "num_parallel_tree": _allow_only(1, hint="leave it out: each round adds one tree"),
    "kmeans_init_method": _allow_only(
        "KMEANS++", "RANDOM", hint="leave it out: the start is that of k-means++"
    ),
}
