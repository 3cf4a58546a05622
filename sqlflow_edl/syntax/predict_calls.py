"""Calls of `PREDICT(model, query)` as tables of a query: where they stand, and what they predict.

    SELECT * FROM orders JOIN PREDICT(late, (SELECT * FROM orders WHERE open), threshold = 0.3) p USING (id)
    SELECT * FROM ML.PREDICT(MODEL late, TABLE orders, STRUCT(0.3 AS threshold))

The second form is BigQuery ML's, which has other functions too; its predicted column is predicted_late.

All else is ordinary SQL of the database, and stays as it is written. A call is recognised by its place: sqlglot parses
the statement with a name in place of the call, which must be a table in the tree.
"""

from __future__ import annotations

import ast as python
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

from edl.errors import Advice, Span, StatementSyntaxError, did_you_mean
from edl.models.registry.records import split_reference
from sqlflow_edl.syntax.ast import Attribute, Constant, ListValue, MapValue, Name
from sqlflow_edl.syntax.dialects import Dialect, dialect_named
from sqlflow_edl.syntax.kinds import Kind
from sqlflow_edl.syntax.lexer import Token, code_tokens, name_value
from sqlflow_edl.syntax.model_functions import (
    BESIDE,
    CALLS_GOOGLE,
    DERIVED,
    INSTEAD,
    KINDS,
    NO_QUERY,
    OF_MODELS,
    OF_ROWS,
    RELATED,
    SETTINGS,
    UNAVAILABLE,
)
from sqlflow_edl.syntax.queries import trees

_AS = re.compile(r"(?P<value>\S+)\s+AS\s+(?P<key>\w+)", re.IGNORECASE)
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES")
_EXPLAIN = {"mysql": ("EXPLAIN", "DESCRIBE", "DESC")}  # words for it, where a database has others
_EXPLAINED = (*_QUERIES, "INSERT", "REPLACE", "UPDATE", "DELETE", "MERGE", "CREATE")
_ARRAY = "GENERATE_ARRAY"  # of thresholds
_MOST_THRESHOLDS = 10_000
_MARK = "sqlflow_edl_call_"
_CALL = re.compile(r"\bpredict\b|\bml\s*\.", re.IGNORECASE)
_OF_BIGQUERY = re.compile(
    r"\b(ml|ai)\s*\.|\binformation_schema\s*\.\s*models\b|\bvector_search\s*\(", re.IGNORECASE
)
_FORM = "write PREDICT(my_model, (SELECT …)) or PREDICT(my_model, my_table)"
_FORM_OF_ML = "write ML.{}(MODEL my_model, (SELECT …)) or ML.{}(MODEL my_model, TABLE my_table)"


@dataclass(frozen=True, slots=True)
class PredictCall:
    """Call of PREDICT, or of a function of BigQuery ML.

    span: of the call in its text. query: a SELECT, or the name of a table, at `query_span`; empty for a function of a
    model alone. kind: of the statement that does the same. prefix: before the name of the predicted column. function:
    of BigQuery ML, or empty. settings: those that the function has and the statement lacks. compared: the query that a
    function of two tables compares with.
    """

    span: Span
    model: Name
    query: str
    query_span: Span
    is_table: bool
    attributes: tuple[Attribute, ...]
    kind: Kind = "predict"
    prefix: str = ""
    function: str = ""
    settings: tuple[Attribute, ...] = ()
    compared: str = ""

    @property
    def is_derived(self) -> bool:
        """True if the rows are made of the rows of other statements."""
        return self.function in DERIVED

    @property
    def is_of_rows(self) -> bool:
        """True for a function of rows without a model; the name of the model is empty."""
        return self.function in OF_ROWS


@dataclass(frozen=True, slots=True)
class _Found:
    """Word PREDICT with parentheses: the tokens between them. function: of BigQuery ML, or empty."""

    span: Span
    inside: tuple[Token, ...]
    function: str = ""


def calls_predict(text: str) -> bool:
    """Return True if the text may have a call: a quick look."""
    return _CALL.search(text) is not None


def is_of_bigquery(text: str) -> bool:
    """Return True if the text may have functions of BigQuery ML, or its list of models: a quick look."""
    return _OF_BIGQUERY.search(text) is not None


def refuse_functions(text: str, dialect: str, start: int = 0) -> StatementSyntaxError | None:
    """Return the error to raise if the database refuses a statement: for functions that BigQuery ML alone has.

    Some databases have a schema `ml` of their own.
    """
    if not is_of_bigquery(text):
        return None
    tokens = list(code_tokens(text, 0, dialect_named(dialect)))
    for word, opening in itertools.pairwise(tokens):
        if word.word in UNAVAILABLE and opening.text == "(":
            place = Span(word.start, word.end).shift(start)
            return StatementSyntaxError(
                f"there is no {word.text} here", span=place, hint=UNAVAILABLE[word.word]
            )
    for ml, point, function, opening in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        names = (*KINDS, *OF_MODELS, *OF_ROWS) if ml.word == "ML" else ()
        is_call = ml.word in ("ML", "AI") and (point.text, opening.text) == (".", "(")
        if not is_call or function.word in names:
            continue
        hint = INSTEAD.get(function.word) if ml.word == "ML" else CALLS_GOOGLE
        place = Span(ml.start, function.end).shift(start)
        message = f"there is no function {ml.word}.{function.word} here"
        return StatementSyntaxError(message, span=place, hint=hint)
    return None


def predict_calls(text: str, dialect: str, start: int = 0) -> list[PredictCall]:
    """Return the outermost calls of a statement, in order.

    start: place of the text in its program, to which spans in errors and names are relative. Raises
    StatementSyntaxError for a call without a model or a query.
    """
    dialect_of_name = dialect_named(dialect)
    calls = list(_find_calls(text, dialect_of_name))
    return [_call(call, text, start) for call in _tables(calls, text, dialect_of_name)]


def _find_calls(text: str, dialect: Dialect) -> Iterator[_Found]:
    """Yield the outermost words PREDICT with parentheses."""
    tokens = list(code_tokens(text, 0, dialect))
    at = 0
    while at < len(tokens) - 1:
        word, of_ml = tokens[at].word, at > 1 and tokens[at - 1].text == "." and tokens[at - 2].word == "ML"
        takes_model = tokens[at + 2 : at + 3] != [] and tokens[at + 2].word == "MODEL"
        is_call = (
            word in KINDS or word in OF_ROWS or takes_model
            if of_ml
            else word == "PREDICT" and not _is_part(tokens, at)
        )
        end = find_closing(tokens, at + 1) if is_call else None
        if end is None:
            at += 1
            continue
        first = tokens[at - 2 if of_ml else at].start
        yield _Found(Span(first, tokens[end].end), tuple(tokens[at + 2 : end]), word if of_ml else "")
        at = end + 1


def _is_part(tokens: Sequence[Token], at: int) -> bool:
    """Return True if the word is part of a dotted name."""
    return at > 0 and tokens[at - 1].text == "."


def find_closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return the position of the parenthesis that closes the one at `opening`, or None."""
    depth = 0
    for at in range(opening, len(tokens)) if tokens[opening].kind == "open" else ():
        depth += tokens[at].nesting
        if depth == 0:
            return at
    return None


def _tables(calls: Sequence[_Found], text: str, dialect: Dialect) -> list[_Found]:
    """Return those that stand where a table stands; all behind FROM and JOIN if sqlglot cannot parse the text."""
    if not calls:
        return []
    from sqlglot import exp

    marked = replace_parts(text, [(call.span, f"{_MARK}{number}") for number, call in enumerate(calls)])
    marked = marked[_parse_explain(text, dialect)[0] :]
    try:
        names = {table.name for tree in trees(marked, dialect) for table in tree.find_all(exp.Table)}
    except ValueError:
        return [call for call in calls if _word_before(text, call.span.start, dialect) in ("FROM", "JOIN")]
    return [call for number, call in enumerate(calls) if f"{_MARK}{number}" in names]


def explains(text: str, dialect: Dialect) -> bool:
    """Return True if the text asks for the plan of a statement that is not to run."""
    place, runs = _parse_explain(text, dialect)
    return place > 0 and not runs


def _parse_explain(text: str, dialect: Dialect) -> tuple[int, bool]:
    """Return the place behind EXPLAIN and its options, 0 without them, and True if they have ANALYZE.

    Databases put words, `FORMAT=JSON`, or options in parentheses there, behind which sqlglot does not look.
    """
    tokens = code_tokens(text, 0, dialect)
    if (first := next(tokens, None)) is None or first.word not in _EXPLAIN.get(dialect.name, ("EXPLAIN",)):
        return 0, False
    runs, depth, opening = False, 0, 0
    for token in tokens:
        if token.word in _EXPLAINED:
            return (opening if depth else token.start), runs
        runs = runs or token.word == "ANALYZE"
        opening = opening if depth else token.start
        depth += token.nesting
    return 0, False


def _word_before(text: str, place: int, dialect: Dialect) -> str:
    tokens = list(code_tokens(text[:place], 0, dialect))
    return tokens[-1].word if tokens else ""


def replace_parts(text: str, parts: Sequence[tuple[Span, str]]) -> str:
    """Return the text with other text in place of some spans, which are in ascending order."""
    texts, at = [], 0
    for span, instead in parts:
        texts += [text[at : span.start], instead]
        at = span.end
    return "".join([*texts, text[at:]])


# Arguments -------------------------------------------------------------------------------------------------


def _call(call: _Found, text: str, start: int) -> PredictCall:
    place, function = call.span.shift(start), call.function
    arguments = _arguments(call.inside)
    name, form, settings_tokens = "PREDICT", _FORM, arguments[2:]
    if function in OF_ROWS:
        return _call_of_rows(call, arguments, text, start)
    if function:
        name, form = f"ML.{function}", _FORM_OF_ML.replace("{}", function)
        arguments, settings_tokens = _split_arguments(arguments)
        _check_function(call, arguments, settings_tokens, text, start)
        if _is_of_model_alone(function, arguments, settings_tokens):
            return _call_of_model(call, arguments[0], settings_tokens, text, start)
    if len(arguments) < 2 or not all((*arguments, *settings_tokens)):
        what = "a model and a query" if not call.inside else "a query behind the model"
        raise StatementSyntaxError(f"{name} needs {what}", span=place, hint=form)
    model = _model(arguments[0], text, start)
    span, is_table = _query(arguments[1], name, form, start)
    select = text[span.start : span.end]
    if function in DERIVED:
        settings = _settings(function, settings_tokens, text, start)
        return PredictCall(call.span, model, select, span, is_table, (), function=function, settings=settings)
    kind, fixed = KINDS[function or "PREDICT"]
    settings_of_call = [_attribute(tokens, text, start, kind) for tokens in settings_tokens]
    beside = [f"{kind}.{setting}" for setting in BESIDE.get(function, ())]
    beside_statement = tuple(
        replace(attribute, key=attribute.key.casefold().removeprefix(f"{kind}."))
        for attribute in settings_of_call
        if attribute.key.casefold() in beside
    )
    attributes = [attribute for attribute in settings_of_call if attribute.key.casefold() not in beside]
    attributes += (Attribute(key, Constant(value, place), place) for key, value in fixed.items())
    prefix = "predicted_" if function else ""
    return PredictCall(
        call.span, model, select, span, is_table, tuple(attributes), kind, prefix, function, beside_statement
    )


def _query(tokens: list[Token], name: str, form: str, start: int) -> tuple[Span, bool]:
    """Return the place of a query without its parentheses, or of the name of a table, and True for a table."""
    if tokens[0].text == "(" and find_closing(tokens, 0) == len(tokens) - 1 and len(tokens) > 2:
        tokens = tokens[1:-1]
    span = Span(tokens[0].start, tokens[-1].end)
    is_table = tokens[0].word not in _QUERIES and tokens[0].text != "("
    of_name = (token.kind in ("word", "name", "string") or token.text == "." for token in tokens)
    if is_table and not all(of_name):
        raise StatementSyntaxError(
            f"{name} takes a query or the name of a table", span=span.shift(start), hint=form
        )
    return span, is_table


def _call_of_rows(call: _Found, all_arguments: Sequence[list[Token]], text: str, start: int) -> PredictCall:
    """Return the call of a function of rows without a model."""
    function, name = call.function, f"ML.{call.function}"
    count = OF_ROWS[function]
    form = f"write {name}({', '.join(['TABLE my_table', '(SELECT …)'][:count])})"
    arguments: list[list[Token]] = []
    settings_tokens: list[list[Token]] = []
    for argument in all_arguments:
        word = argument[0].word if len(argument) > 1 else ""
        if word == "STRUCT" and argument[1].text == "(":
            settings_tokens += _arguments(argument[2:-1]) if len(argument) > 3 else []
        else:
            arguments.append(argument[1:] if word == "TABLE" else argument)
    if len(arguments) != count or not all((*arguments, *settings_tokens)):
        tables = "one table" if count == 1 else "two tables"
        raise StatementSyntaxError(
            f"{name} takes {tables} or queries, and settings", span=call.span.shift(start), hint=form
        )
    settings = _settings(function, settings_tokens, text, start)
    queries = [_query(argument, name, form, start) for argument in arguments]
    selects = [text[span.start : span.end] for span, _ in queries]
    other = f"SELECT * FROM {selects[-1]}" if queries[-1][1] else selects[-1]
    [(span, is_table), *_] = queries
    nothing = Name((), "", call.span.shift(start))
    return PredictCall(
        call.span,
        nothing,
        selects[0],
        span,
        is_table,
        (),
        function=function,
        settings=settings,
        compared=other if count > 1 else "",
    )


def _check_function(
    call: _Found,
    arguments: Sequence[list[Token]],
    settings_tokens: Sequence[list[Token]],
    text: str,
    start: int,
) -> None:
    """Raise StatementSyntaxError for an unknown function of BigQuery ML, or for arguments that it does not take."""
    function, place = call.function, call.span.shift(start)
    name = f"ML.{function}"
    functions = [*KINDS, *OF_MODELS, *DERIVED, *OF_ROWS]
    if function not in functions:
        hint = INSTEAD.get(function) or did_you_mean(function, functions)
        if function in RELATED and arguments and arguments[0]:
            other, why = RELATED[function]
            model = text[arguments[0][0].start : arguments[0][-1].end]
            hint = Advice(f"write ML.{other}(MODEL {model}): {why}", f"ML.{other}(MODEL {model})")
        raise StatementSyntaxError(f"there is no {name}", span=place, hint=hint)
    takes_only_model = function in OF_MODELS and function not in KINDS
    if takes_only_model and len(arguments) + len(settings_tokens) * (function not in SETTINGS) > 1:
        raise StatementSyntaxError(
            f"{name} takes a model alone", span=place, hint=f"write {name}(MODEL my_model)"
        )
    if not all(settings_tokens):
        raise StatementSyntaxError(
            f"{name} has a comma without a setting", span=place, hint="write STRUCT(0.3 AS threshold)"
        )


def _is_of_model_alone(
    function: str, arguments: Sequence[list[Token]], settings_tokens: Sequence[list[Token]]
) -> bool:
    """Return True for a function of BigQuery ML without a query; ML.EVALUATE may have one or none."""
    needs_none = function in OF_MODELS and (function not in KINDS or not settings_tokens)
    return len(arguments) == 1 and bool(arguments[0]) and (function in NO_QUERY or needs_none)


def _call_of_model(
    call: _Found, model: list[Token], settings_tokens: Sequence[list[Token]], text: str, start: int
) -> PredictCall:
    """Return the call of a function of a model alone."""
    function = call.function
    settings = _settings(function, settings_tokens, text, start)
    return PredictCall(
        call.span,
        _model(model, text, start),
        "",
        Span(call.span.end, call.span.end),
        is_table=False,
        attributes=() if function in DERIVED else settings,
        kind=OF_MODELS.get(function, "predict"),
        function=function,
        settings=settings,
    )


def _settings(
    function: str, settings_tokens: Sequence[list[Token]], text: str, start: int
) -> tuple[Attribute, ...]:
    """Return the settings of a function that has its own ones. Raises StatementSyntaxError for another one."""
    attributes = tuple(_attribute(tokens, text, start, function) for tokens in settings_tokens)
    names = SETTINGS.get(function, ())
    for attribute in attributes:
        if attribute.key.casefold() not in names:
            raise StatementSyntaxError(
                f"ML.{function} has no setting {attribute.key}",
                span=attribute.key_span,
                hint=did_you_mean(attribute.key.casefold(), list(names))
                or f"it has {' and '.join(names) or 'none'}",
            )
    return attributes


def _split_arguments(arguments: Sequence[list[Token]]) -> tuple[list[list[Token]], list[list[Token]]]:
    """Return arguments of BigQuery ML without MODEL and TABLE, and the settings in STRUCT(0.3 AS threshold)."""
    result: list[list[Token]] = []
    settings = []
    for argument in arguments:
        word, rest = argument[0].word if len(argument) > 1 else "", argument[1:]
        if result and word == "STRUCT" and rest[0].text == "(":
            settings += _arguments(rest[1:-1]) if len(rest) > 2 else []
        else:
            result.append(rest if word == ("TABLE" if result else "MODEL") else argument)
    return result[:2], [*result[2:], *settings]


def _arguments(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas outside of parentheses; a query without parentheses keeps its own."""
    result: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.nesting
        of_query = len(result) == 2 and result[1] and result[1][0].word in _QUERIES
        if token.text == "," and depth == 0 and not of_query:
            result.append([])
        else:
            result[-1].append(token)
    return result


def _model(tokens: Sequence[Token], text: str, start: int) -> Name:
    """Return the name of a model: a dotted name, possibly with @version, or a string of it."""
    span = Span(tokens[0].start, tokens[-1].end)
    model_text = text[span.start : span.end]
    if len(tokens) == 1 and tokens[0].kind in ("string", "name"):
        joined = name_value(model_text)
    else:
        joined = "".join(name_value(token.text) if token.kind == "name" else token.text for token in tokens)
    is_name = all(token.kind in ("word", "name", "string") or token.text in (".", "@") for token in tokens)
    if not is_name or not joined:
        raise StatementSyntaxError("this is not the name of a model", span=span.shift(start), hint=_FORM)
    name, version = split_reference(joined)
    return Name((name,), model_text, span.shift(start), version)


def _attribute(tokens: Sequence[Token], text: str, start: int, kind: str) -> Attribute:
    """Return a setting, `threshold = 0.3` or `0.3 AS threshold`, as an attribute of WITH: `predict.threshold`."""
    span = Span(tokens[0].start, tokens[-1].end)
    if tokens[0].text == "[" and tokens[-2].word == "AS":
        return _limits(tokens, text[span.start : tokens[-3].end], span.shift(start))
    if tokens[0].word == _ARRAY or tokens[0].text == "[":
        return Attribute(f"{kind}.thresholds", _thresholds(tokens, span.shift(start)), span.shift(start))
    setting_text = text[span.start : span.end]
    if match := _AS.fullmatch(setting_text):
        key, value = match["key"], match["value"]
    else:
        key, _, value = setting_text.partition("=")
        key, value = key.rstrip(" :\t\n"), value.lstrip("> \t\n")
    constant: object = {"TRUE": True, "FALSE": False}.get(value.upper())
    if constant is None:
        with suppress(ValueError, SyntaxError):
            constant = python.literal_eval(value)
    if not isinstance(constant, int | float | str) or not key:
        raise StatementSyntaxError(
            f"a setting of {kind.upper()} is a name and a number or text",
            span=span.shift(start),
            hint="such as threshold = 0.3 or interval = 0.9",
        )
    is_own = key.lower().startswith(f"{kind}.") or kind in SETTINGS
    name = key if is_own else f"{kind}.{key}"
    of_key, of_value = (_place(setting_text, part).shift(span.start + start) for part in (key, value))
    return Attribute(name, Constant(constant, of_value), of_key)


def _limits(tokens: Sequence[Token], text: str, span: Span) -> Attribute:
    """Return the limits of columns, `[('x', 0.2), ('y', 0.1)] AS numerical_thresholds`. text: of the list."""
    pairs: object = None
    with suppress(ValueError, SyntaxError):
        pairs = python.literal_eval(text)
    is_mapping = isinstance(pairs, list) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    )
    if not is_mapping or not pairs:
        raise StatementSyntaxError(
            "these are no thresholds of columns",
            span=span,
            hint=f"write [('my_column', 0.2)] AS {tokens[-1].text}",
        )
    limits = tuple((name, Constant(limit, span)) for name, limit in cast(list[tuple[str, float]], pairs))
    return Attribute(tokens[-1].text, MapValue(limits, span), span)


def _thresholds(tokens: Sequence[Token], span: Span) -> ListValue:
    """Return the numbers of `[0.4, 0.5]` or `GENERATE_ARRAY(0.4, 0.6, 0.1)`."""
    is_series = tokens[0].word == _ARRAY
    parts = _arguments(tokens[2 if is_series else 1 : -1])
    try:
        numbers = [float("".join(token.text for token in part)) for part in parts]
        if is_series:
            first, last, step = numbers
            count = math.floor((last - first) / step + 1e-9) + 1 if step else 0
            numbers = [round(first + place * step, 12) for place in range(min(count, _MOST_THRESHOLDS))]
    except ValueError:
        numbers = []
    if not numbers:
        raise StatementSyntaxError(
            "these are no thresholds", span=span, hint=f"write [0.4, 0.5] or {_ARRAY}(0.4, 0.6, 0.1)"
        )
    return ListValue(tuple(Constant(number, span) for number in numbers), span)


def _place(text: str, part: str) -> Span:
    at = text.index(part)
    return Span(at, at + len(part))


# CTEs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shared:
    """Common table expression in front of a statement: its name, and the span of `name AS (…)`."""

    name: str
    span: Span


def shared_queries(text: str, dialect: str) -> tuple[str, list[Shared]]:
    """Return WITH or WITH RECURSIVE and the common table expressions of the statement's first WITH, if it has one."""
    tokens = list(code_tokens(text, 0, dialect_named(dialect)))
    depth, at = 0, 0
    while at < len(tokens) and not (depth == 0 and tokens[at].word == "WITH"):
        depth += tokens[at].nesting
        at += 1
    if at == len(tokens):
        return "", []
    at += 1
    recursive = at < len(tokens) and tokens[at].word == "RECURSIVE"
    at += recursive
    result = []
    while at < len(tokens) and tokens[at].kind in ("word", "name"):
        first = tokens[at]
        while at < len(tokens) and tokens[at].word != "AS":
            at += 1
        while at < len(tokens) and tokens[at].kind != "open":
            at += 1
        end = find_closing(tokens, at) if at < len(tokens) else None
        if end is None:
            break
        result.append(Shared(name_value(first.text), Span(first.start, tokens[end].end)))
        at = end + 1
        if at == len(tokens) or tokens[at].text != ",":
            break
        at += 1
    return "WITH RECURSIVE" if recursive else "WITH", result
