"""Statements of BigQuery ML: `CREATE MODEL name [TRANSFORM(…)] OPTIONS(…) AS SELECT …`, as a TRAIN statement.

The options are read as attributes of WITH, at their own places in the text, so that errors point to what is written.
`sqlflow_edl.syntax.predict_calls` reads ML.PREDICT and its like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edl.data.names import quote_part
from edl.errors import Span, SQLFlowError, StatementSyntaxError, did_you_mean, raise_all
from edl.extension_loader import load
from sqlflow_edl.extensions.bigquery_ml.factorization import (
    check_feedback,
    find_pair,
    write_columns,
)
from sqlflow_edl.extensions.bigquery_ml.model_facts import facts_among, is_pairs
from sqlflow_edl.extensions.bigquery_ml.options import (
    FACTORS,
    FORECASTS,
    INITIAL_CENTRES,
    LABELS,
    PAIR,
    UNREAD,
    OptionReader,
    is_null,
    option_text,
)
from sqlflow_edl.extensions.bigquery_ml.transform import (
    TransformItems,
    move_to,
    read_transform,
    split_at_commas,
)
from sqlflow_edl.syntax.ast import (
    Attribute,
    Call,
    ColumnClause,
    Constant,
    ListValue,
    Name,
    Statement,
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
from sqlflow_edl.syntax.predict_calls import replace_parts

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
    FACTORS: "MatrixFactorization",
    "pca": "PCA",
    "autoencoder": "Autoencoder",
    "arima_plus": "Forecast",
    "arima_plus_xreg": "Forecast",
    "transform_only": "Transform",
    "automl_regressor": None,
    "automl_classifier": None,
}
_INSTEAD = {
    "contribution_analysis": "write SELECT … TO EXPLAIN my_model",
}
_FILES = ("onnx", "lightgbm", "xgboost", "tensorflow", "tensorflow_lite")  # model types of files
_WITHOUT_LABEL = tuple(map(MODELS.get, ("transform_only", "kmeans", "pca", "autoencoder")))
_ORDER = "write CREATE MODEL … TRANSFORM(…) OPTIONS(…) AS SELECT …"
_COLUMNS_OF_FILE = "INPUT and OUTPUT have no effect: the file names its columns"
_HORIZON = 30  # of a forecast without one: BigQuery's 1,000 steps would each need a column of the past
_QUANTILES = (0.1, 0.9)


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
    options = read_options(text, span, parsed_head.options, dialect)
    tokens = list(code_tokens(text[:end], parsed_head.options.start, with_hash_comments(dialect)))
    facts = tuple(facts_among(tokens, parsed_head.name))
    if _names_file(options):
        if transform is not None:
            raise StatementSyntaxError(
                "TRANSFORM is not available with the model of a file",
                span=transform,
                hint="compute columns in the query that predicts",
            )
        make = load("sqlflow_edl.extensions.imported.statement", "make_statement")
        imported: Statement = make(text, span, parsed_head.name, options, end)
        of_columns = (_COLUMNS_OF_FILE,) if head["columns"] else ()
        return replace(
            imported, if_absent=bool(head["absent"]), facts=facts, warnings=(*imported.warnings, *of_columns)
        )
    if head["columns"]:
        raise StatementSyntaxError(
            "INPUT and OUTPUT belong to the model of a file",
            span=Span(head.start("columns"), head.end("columns")),
            hint="leave them out: the query has the columns",
        )
    select = _query(text, end, span, dialect)
    statement = _statement(text, span, parsed_head, options, select, dialect)
    if re.search(r"\bcustom_holiday\b", text[select.end : span.end], re.IGNORECASE):
        why = (
            "holidays come from a country, by holiday_region, or from a column of yours with ARIMA_PLUS_XREG"
        )
        statement = replace(statement, warnings=(*statement.warnings, f"custom_holiday has no effect: {why}"))
    return replace(statement, if_absent=bool(head["absent"]), facts=facts)


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


# AS (training_data AS (SELECT …), custom_holiday AS (SELECT …))
_TRAINING_DATA = re.compile(rf"\({GAP}*training_data{GAP}+AS{GAP}*\(", re.IGNORECASE | re.DOTALL)


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
    if (named := _TRAINING_DATA.match(text, first.start)) is not None:
        return Span(named.end(), find_parenthesis(text, named.end() - 1, span.end, dialect))
    return Span(first.start, span.end)


def _statement(
    text: str, span: Span, head: _Head, option_list: Sequence[Attribute], select: Span, dialect: Dialect
) -> Statement:
    options = {option.key.casefold(): option for option in option_list}
    model = _model(options, head)
    reader = OptionReader(option_text(options.get("model_type")).casefold(), option_list)
    is_factorization = reader.kind == FACTORS
    if is_factorization:
        check_feedback(reader)
    attributes = reader.attributes()
    of_label = (option for option in map(options.get, LABELS) if option and not is_null(option))
    labels = _labels(next(of_label, None), model, head, reader.errors)
    raise_all(reader.errors)
    if model is not None and model.text == MODELS["arima_plus"]:  # for the intervals of ML.FORECAST
        bounds = tuple(Constant(quantile, model.span) for quantile in _QUANTILES)
        attributes.append(Attribute("forecast.quantiles", ListValue(bounds, model.span), model.span))
        if "horizon" not in options:
            attributes.append(Attribute("forecast.horizon", Constant(_HORIZON, model.span), model.span))
    if head.transform is not None and is_factorization:
        raise StatementSyntaxError(
            "TRANSFORM is not available with a matrix factorization",
            span=head.transform,
            hint="compute columns in the SELECT",
        )
    if head.transform is not None:
        _check_transform(text, head.transform, model, attributes)
    others = {name.text.casefold() for name in labels} | {
        option_text(options.get(key)).casefold() for key in ("data_split_col", INITIAL_CENTRES)
    }
    transformation = TransformItems("", {}, ())
    if head.transform is not None:
        transformation = read_transform(text, head.transform, others, dialect)
    query = text[select.start : select.end]
    query_span: Span | None = select
    if computed := transformation.computed:
        wrapped = _compute_columns(query, computed, dialect)
        query, query_span = wrapped, Span(select.start - wrapped.index(query), select.end)
    return Statement(
        "auto" if model is None else "train",
        text=text[span.start : span.end],
        span=span,
        select=query,
        select_span=query_span,
        model=model,
        attributes=tuple(attributes),
        columns=_columns(span, head.transform, transformation, dialect)
        or (_pair_columns(reader, head, span, dialect) if is_factorization else ()),
        labels=labels,
        into=(head.name,),
        warnings=(
            *_warnings(options),
            *reader.warnings,
            *transformation.warnings,
            *(
                f"{name} is computed for the training: select it in queries of ML.EVALUATE, too"
                for name in computed
            ),
        ),
    )


def _pair_columns(
    reader: OptionReader, head: _Head, span: Span, dialect: Dialect
) -> tuple[ColumnClause, ...]:
    """Return the users and the items of a matrix factorization as categories, at the places of their options."""
    text = write_columns(find_pair(reader), dialect)
    [clause] = parse_clause(span, head.options.start, "COLUMN", text, dialect).columns
    places = (option.value.span if option else head.name.span for option in map(reader.find, PAIR))
    items = (move_to(item, place) for item, place in zip(clause.items, places, strict=True))
    return (replace(clause, items=tuple(items), only=True),)


def _warnings(options: Mapping[str, Attribute]) -> Iterator[str]:
    """Warn of a horizon that is not BigQuery's, and of a number of steps that BigQuery would not look at."""
    if option_text(options.get("model_type")).casefold() in FORECASTS and "horizon" not in options:
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
    span: Span, place: Span | None, transformation: TransformItems, dialect: Dialect
) -> tuple[ColumnClause, ...]:
    """Return the items of TRANSFORM as items of COLUMN, at their places."""
    if place is None:
        return ()
    [clause] = parse_clause(span, place.start, "COLUMN", transformation.items, dialect).columns
    moved = transformation.moved
    first = len(clause.items) - len(moved)
    last = (move_to(item, at) for item, at in zip(clause.items[first:], moved, strict=True))
    items = (*clause.items[:first], *last)
    return (replace(clause, items=items, only=True, without=tuple(transformation.without)),)


def _compute_columns(select: str, computed: Mapping[str, str], dialect: Dialect) -> str:
    """Return a query with the columns that TRANSFORM computes and that are no features, such as the label."""
    quote = dialect.name_quotes[0]
    columns = ", ".join(f"{expression} AS {quote_part(name, quote)}" for name, expression in computed.items())
    return f"SELECT edl_rows.*, {columns} FROM (\n{select}\n) AS edl_rows"


def read_options(text: str, span: Span, place: Span, dialect: Dialect) -> tuple[Attribute, ...]:
    """Return the options between the parentheses as attributes of WITH, at their places."""
    inside = text[place.start : place.end]
    if not inside.strip():
        return ()
    inside = replace_parts(inside, list(_unread_values(inside, dialect)))
    return parse_clause(span, place.start, "WITH", inside, dialect).attributes


def _unread_values(inside: str, dialect: Dialect) -> Iterator[tuple[Span, str]]:
    """Yield the places of values that are none of WITH, in options without effect, and NULL in as many characters.

    They are those in `UNREAD`, and labels of the resource, pairs of texts: `labels` also is an older input_label_cols.
    """
    for option in split_at_commas(list(code_tokens(inside, 0, with_hash_comments(dialect)))):
        if len(option) < 3 or option[1].text != "=":
            continue
        key, value = option[0].text.casefold(), option[2:]
        if (key == "labels" and is_pairs(value)) or key in UNREAD:
            place = Span(value[0].start, value[-1].end)
            yield place, "NULL".ljust(place.end - place.start)


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


def _model(options: Mapping[str, Attribute], head: _Head) -> Name | None:
    """Return the model of the option, None for a search. Raises StatementSyntaxError for a model that is not here."""
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
    raise StatementSyntaxError(message, span=place, hint=hint)


def _labels(
    option: Attribute | None, model: Name | None, head: _Head, errors: list[SQLFlowError]
) -> tuple[Name, ...]:
    """Return the label; without the option it is the column `label`. Transforms and clusters have none."""
    if option is None and model is not None and model.text in _WITHOUT_LABEL:
        return ()
    if option is None:
        usual = "rating" if model is not None and model.text == MODELS[FACTORS] else "label"
        return (Name((usual,), usual, head.name.span, implied=True),)
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
