"""Functions of BigQuery ML on values, `SELECT ML.MIN_MAX_SCALER(x) OVER () FROM t`, and its list of models, in ordinary
SQL: the expression of the database that means the same.

A statement is rewritten only if the database refuses it as it is written: some have a schema `ml` of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

from edl.data.names import quote_part
from edl.errors import Span, StatementSyntaxError
from edl.models.registry.base import Registry
from sqlflow_edl.extensions.bigquery_ml.transform import split_at_commas
from sqlflow_edl.syntax.dialects import DIALECTS, Dialect
from sqlflow_edl.syntax.lexer import Token, code_tokens, name_value
from sqlflow_edl.syntax.predict_calls import find_closing, replace_parts

DUCKDB = "duckdb"
_QUOTE = '"'
_MOST_DEGREES, _MOST_POWERS, _MOST_CROSSED = 4, 10, 10  # of BigQuery ML
# words that may follow a table without an alias
_CLAUSES = frozenset(("WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "UNION", "EXCEPT", "INTERSECT", "JOIN", "LEFT",
                      "RIGHT", "INNER", "CROSS", "FULL", "QUALIFY", "WINDOW"))  # fmt: skip
_MODEL_COLUMNS = ("model_catalog", "model_schema", "model_name", "model_type", "creation_time")


@dataclass(frozen=True, slots=True)
class _Call:
    """Call in a text: its function, the texts of its arguments, and what stands in the parentheses of OVER, or None."""

    function: str
    span: Span
    arguments: tuple[str, ...]
    window: str | None


class _Function(NamedTuple):
    """Form of a function, the least and the most of its arguments, and the expression with its meaning.

    dialects: those that have what the expression needs.
    """

    form: str
    least: int
    most: int
    express: Callable[[_Call], str]
    is_window: bool = False
    dialects: Collection[str] = DIALECTS


def rewrite(text: str, dialect: Dialect, registry: Registry, start: int = 0) -> str:
    """Return a statement as ordinary SQL; the same text if nothing in it is BigQuery ML's. See `rewrite_functions`."""
    return rewrite_models(rewrite_functions(text, dialect, start), dialect, registry)


def rewrite_functions(text: str, dialect: Dialect, start: int = 0) -> str:
    """Return a statement with expressions in place of the functions, of the innermost ones first.

    start: place of the text in its program. Raises StatementSyntaxError, with the place, for other arguments than a
    function takes, and for what this database has no expression for.
    """
    whole, rewritten = Span(start, start + len(text)), text
    while calls := list(_find_calls(rewritten, dialect)):
        is_first = rewritten == text  # afterwards, places are none of the program
        parts = [
            (call.span, _express(call, dialect, call.span.shift(start) if is_first else whole))
            for call in calls
        ]
        rewritten = replace_parts(rewritten, parts)
    return rewritten


def rewrite_models(text: str, dialect: Dialect, registry: Registry) -> str:
    """Return a statement with the rows of the models in place of INFORMATION_SCHEMA.MODELS."""
    tokens = list(code_tokens(text, 0, dialect))
    parts = []
    for at, (schema, point, models) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if (schema.word, point.text, models.word) != ("INFORMATION_SCHEMA", ".", "MODELS"):
            continue
        in_data_set = at > 1 and tokens[at - 1].text == "."  # which has all models here
        first = at - 2 if in_data_set else at
        alias = "" if _has_alias(tokens, at + 3) else " AS models"
        parts.append((Span(tokens[first].start, models.end), f"({_list_models(registry, dialect)}){alias}"))
    return replace_parts(text, parts)


def _has_alias(tokens: Sequence[Token], at: int) -> bool:
    if at >= len(tokens):
        return False
    return (
        tokens[at].word == "AS"
        or tokens[at].kind == "name"
        or (tokens[at].kind == "word" and tokens[at].word not in _CLAUSES)
    )


def _list_models(registry: Registry, dialect: Dialect) -> str:
    from sqlglot import exp, select

    rows = []
    for version in registry.list():
        if not version.current:
            continue
        texts = ("", "", version.name, version.record.model)
        values = [exp.Literal.string(text) for text in texts]
        created = exp.cast(exp.Literal.string(version.created.replace("T", " ")[:19]), "timestamp")
        named = zip((*values, created), _MODEL_COLUMNS, strict=True)
        rows.append(select(*(exp.alias_(value, name) for value, name in named)).sql(dialect=dialect.sqlglot))
    nothing = select(*(exp.alias_(exp.null(), name) for name in _MODEL_COLUMNS)).where("1 = 0")
    return " UNION ALL ".join(rows) or str(nothing.sql(dialect=dialect.sqlglot))


def _find_calls(text: str, dialect: Dialect) -> Iterator[_Call]:
    """Yield the innermost calls of the functions."""
    tokens = list(code_tokens(text, 0, dialect))
    for at, (ml, point, function, opening) in enumerate(
        zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)
    ):
        if (ml.word, point.text, opening.text) != ("ML", ".", "(") or function.word not in FUNCTIONS:
            continue
        end = find_closing(tokens, at + 3)
        if end is None or any(token.word == "ML" for token in tokens[at + 4 : end]):
            continue
        parts = split_at_commas(tokens[at + 4 : end])
        arguments = tuple(text[part[0].start : part[-1].end] if part else "" for part in parts)
        window, last = None, end
        if end + 2 < len(tokens) and tokens[end + 1].word == "OVER" and tokens[end + 2].text == "(":
            closing = find_closing(tokens, end + 2)
            if closing is not None:
                window, last = text[tokens[end + 2].end : tokens[closing].start].strip(), closing
        yield _Call(function.word, Span(ml.start, tokens[last].end), arguments, window)


def _express(call: _Call, dialect: Dialect, place: Span) -> str:
    function = FUNCTIONS[call.function]
    if not function.least <= len(call.arguments) <= function.most or not all(call.arguments):
        raise StatementSyntaxError(
            f"ML.{call.function} has other arguments", span=place, hint=f"write {function.form}"
        )
    if function.is_window != (call.window is not None):
        needs = "needs OVER ()" if function.is_window else "has no OVER"
        raise StatementSyntaxError(f"ML.{call.function} {needs}", span=place, hint=f"write {function.form}")
    if dialect.name not in function.dialects:
        raise StatementSyntaxError(
            f"{dialect.name} has no expression for ML.{call.function}",
            span=place,
            hint="DuckDB has one",
        )
    try:
        return f"({function.express(call)})"
    except ValueError as wrong:
        raise StatementSyntaxError(str(wrong), span=place, hint=f"write {function.form}") from None


# Expressions -----------------------------------------------------------------------------------------------


def _write_window(call: _Call) -> str:
    return f"OVER ({call.window})"


def _standard_scaler(call: _Call) -> str:
    x, over = f"({call.arguments[0]})", _write_window(call)
    return f"({x} - AVG({x}) {over}) / NULLIF(STDDEV_SAMP({x}) {over}, 0)"


def _min_max_scaler(call: _Call) -> str:
    x, over = f"({call.arguments[0]})", _write_window(call)
    return f"({x} - MIN({x}) {over}) * 1.0 / NULLIF(MAX({x}) {over} - MIN({x}) {over}, 0)"


def _max_abs_scaler(call: _Call) -> str:
    x = f"({call.arguments[0]})"
    return f"{x} * 1.0 / NULLIF(MAX(ABS({x})) {_write_window(call)}, 0)"


def _robust_scaler(call: _Call) -> str:
    x, over = f"({call.arguments[0]})", _write_window(call)
    low, high = _read_numbers(call.arguments[1]) if len(call.arguments) > 1 else (25, 75)
    quantiles = [f"QUANTILE_CONT({x}, {share / 100:g}) {over}" for share in (low, high)]
    return f"({x} - MEDIAN({x}) {over}) / NULLIF({quantiles[1]} - {quantiles[0]}, 0)"


def _imputer(call: _Call) -> str:
    x, how = f"({call.arguments[0]})", call.arguments[1].strip("'\"").lower()
    aggregates = {"mean": "AVG", "median": "MEDIAN", "most_frequent": "MODE"}
    if how not in aggregates:
        raise ValueError(f"ML.IMPUTER takes 'mean', 'median' or 'most_frequent', not {call.arguments[1]}")
    return f"COALESCE({x}, {aggregates[how]}({x}) {_write_window(call)})"


def _bucketize(call: _Call) -> str:
    x, points = f"({call.arguments[0]})", _read_numbers(call.arguments[1])
    if list(points) != sorted(points) or not points:
        raise ValueError("the points of ML.BUCKETIZE are numbers in ascending order")
    bins = [f"WHEN {x} < {point!r} THEN 'bin_{number}'" for number, point in enumerate(points, 1)]
    return f"CASE WHEN {x} IS NULL THEN NULL {' '.join(bins)} ELSE 'bin_{len(points) + 1}' END"


def _quantile_bucketize(call: _Call) -> str:
    x, over = f"({call.arguments[0]})", _write_window(call)
    count = int(call.arguments[1]) if call.arguments[1].isdecimal() else 0
    if not 2 <= count <= 100:
        raise ValueError(f"ML.QUANTILE_BUCKETIZE makes 2 to 100 bins, not {call.arguments[1]}")
    above = (
        f"CASE WHEN {x} >= QUANTILE_CONT({x}, {number / count!r}) {over} THEN 1 ELSE 0 END"
        for number in range(1, count)
    )
    return f"CASE WHEN {x} IS NULL THEN NULL ELSE 'bin_' || (1 + {' + '.join(above)}) END"


def _label_encoder(call: _Call) -> str:
    if call.window:
        raise ValueError("ML.LABEL_ENCODER has nothing between the parentheses of OVER here")
    x = f"({call.arguments[0]})"
    return f"CASE WHEN {x} IS NULL THEN 0 ELSE DENSE_RANK() OVER (ORDER BY {x} IS NULL, {x}) END"


def _ngrams(call: _Call) -> str:
    words, sizes = call.arguments[0], _read_numbers(call.arguments[1])
    joined = call.arguments[2] if len(call.arguments) > 2 else "' '"
    if len(sizes) != 2 or not 1 <= sizes[0] <= sizes[1] or any(size % 1 for size in sizes):
        raise ValueError("ML.NGRAMS takes the least and the most words of a run, such as [1, 2]")
    least, most = map(int, sizes)
    end = "edl_place + edl_size - 1"  # names that would hide no column of the arguments
    runs = f"list_transform(range({least}, {most + 1}), lambda edl_size: CASE WHEN {end} <= len({words}) "
    runs += f"THEN array_to_string(({words})[edl_place:{end}], {joined}) END)"
    every = f"flatten(list_transform(range(1, len({words}) + 1), lambda edl_place: {runs}))"
    return f"list_filter({every}, lambda edl_run: edl_run IS NOT NULL)"


def _read_struct(text: str) -> list[tuple[str, str]]:
    """Return names and expressions of `STRUCT(x, y AS z)`. Raises ValueError for another text."""
    tokens = list(code_tokens(text, 0, DIALECTS[DUCKDB]))
    if len(tokens) < 4 or tokens[0].word != "STRUCT" or tokens[-1].text != ")":
        raise ValueError(f"a STRUCT of columns is needed, not {text}")
    fields: list[tuple[str, str]] = []
    for part in split_at_commas(tokens[2:-1]):
        is_named = len(part) > 2 and part[-2].word == "AS"
        value = part[:-2] if is_named else part
        if not value:
            raise ValueError(f"a STRUCT of columns is needed, not {text}")
        name = name_value(part[-1].text) if part[-1].kind in ("word", "name") else f"f{len(fields)}"
        fields.append((name, text[value[0].start : value[-1].end]))
    return fields


def _combinations(call: _Call, most: int) -> list[Sequence[tuple[str, str]]]:
    """Return the products of the fields up to a degree, 2 by default; `most` fields at most."""
    fields = _read_struct(call.arguments[0])
    degree = call.arguments[1] if len(call.arguments) > 1 else "2"
    if not degree.isdecimal() or not 1 <= int(degree) <= _MOST_DEGREES or len(fields) > most:
        raise ValueError(
            f"ML.{call.function} takes up to {most} columns and a degree from 1 to {_MOST_DEGREES}"
        )
    return [
        product
        for count in range(1, int(degree) + 1)
        for product in combinations_with_replacement(fields, count)
    ]


def _write_struct(fields: Iterable[tuple[str, str]]) -> str:
    named = (f"{quote_part(name, _QUOTE)} := {value}" for name, value in fields)
    return f"struct_pack({', '.join(named)})"


def _polynomial_expand(call: _Call) -> str:
    powers = _combinations(call, _MOST_POWERS)
    return _write_struct(
        (_name_product(power), " * ".join(f"({value})" for _, value in power)) for power in powers
    )


def _name_product(product: Sequence[tuple[str, str]]) -> str:
    return "_".join(name for name, _ in product)


def _feature_cross(call: _Call) -> str:
    crossed = [
        product
        for product in _combinations(call, _MOST_CROSSED)
        if len(product) > 1 and len(dict.fromkeys(product)) == len(product)
    ]
    if not crossed:
        raise ValueError("ML.FEATURE_CROSS crosses two columns or more")
    return _write_struct(
        (_name_product(cross), _join_texts(value for _, value in cross)) for cross in crossed
    )


def _join_texts(values: Iterable[str]) -> str:
    return " || '_' || ".join(f"CAST({value} AS VARCHAR)" for value in values)


def _one_hot_encoder(call: _Call) -> str:
    """Return the code of a value as a list of one pair, as in ML.ONE_HOT_ENCODER without drop: 0 for NULL."""
    if call.window:
        raise ValueError("ML.ONE_HOT_ENCODER has nothing between the parentheses of OVER here")
    return f"[{{'index': {_label_encoder(call)}, 'value': 1.0}}]"


def _hash_bucketize(call: _Call) -> str:
    x, count = call.arguments
    if not count.isdecimal() or not int(count):
        raise ValueError(f"the number of buckets is a whole number from 1 on, not {count}")
    return f"CAST(hash(CAST({x} AS VARCHAR)) % {int(count)} AS BIGINT)"


_DISTANCES = {
    "EUCLIDEAN": "list_distance({0}, {1})",
    "COSINE": "list_cosine_distance({0}, {1})",
    "MANHATTAN": "list_sum(list_transform(list_zip({0}, {1}), lambda edl_pair: abs(edl_pair[1] - edl_pair[2])))",
}


def _distance(call: _Call) -> str:
    kind = call.arguments[2].strip("'\"").upper() if len(call.arguments) > 2 else "EUCLIDEAN"
    if kind not in _DISTANCES:
        raise ValueError(f"ML.DISTANCE is EUCLIDEAN, MANHATTAN or COSINE, not {call.arguments[2]}")
    return _DISTANCES[kind].format(*(f"CAST({vector} AS DOUBLE[])" for vector in call.arguments[:2]))


def _lp_norm(call: _Call) -> str:
    return _norm(*call.arguments)


def _normalizer(call: _Call) -> str:
    vector, degree = call.arguments[0], call.arguments[1] if len(call.arguments) > 1 else "2"
    norm = f"NULLIF({_norm(vector, degree)}, 0)"
    return f"list_transform(CAST({vector} AS DOUBLE[]), lambda edl_value: edl_value / {norm})"


def _norm(vector: str, degree: str) -> str:
    try:
        power = float(degree)
    except ValueError:
        power = 0.0
    if power < 1:
        raise ValueError(f"the degree of a norm is a number from 1 on, not {degree}")
    return f"pow(list_sum(list_transform({vector}, lambda edl_part: pow(abs(edl_part), {power!r}))), {1 / power!r})"


def _read_numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a list such as `[1, 2.5]`. Raises ValueError for another text."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        raise ValueError(f"a list of numbers such as [1, 2] is needed, not {text}")
    return tuple(values)


FUNCTIONS: Mapping[str, _Function] = {
    "STANDARD_SCALER": _Function(
        "ML.STANDARD_SCALER(x) OVER ()",
        1,
        1,
        _standard_scaler,
        is_window=True,
        dialects=DIALECTS.keys() - {"sqlite"},
    ),
    "MIN_MAX_SCALER": _Function("ML.MIN_MAX_SCALER(x) OVER ()", 1, 1, _min_max_scaler, is_window=True),
    "MAX_ABS_SCALER": _Function("ML.MAX_ABS_SCALER(x) OVER ()", 1, 1, _max_abs_scaler, is_window=True),
    "ROBUST_SCALER": _Function(
        "ML.ROBUST_SCALER(x, [25, 75]) OVER ()", 1, 2, _robust_scaler, is_window=True, dialects=(DUCKDB,)
    ),
    "IMPUTER": _Function("ML.IMPUTER(x, 'mean') OVER ()", 2, 2, _imputer, is_window=True, dialects=(DUCKDB,)),
    "BUCKETIZE": _Function("ML.BUCKETIZE(x, [1, 2])", 2, 2, _bucketize),
    "QUANTILE_BUCKETIZE": _Function(
        "ML.QUANTILE_BUCKETIZE(x, 4) OVER ()", 2, 2, _quantile_bucketize, is_window=True, dialects=(DUCKDB,)
    ),
    "LABEL_ENCODER": _Function("ML.LABEL_ENCODER(x) OVER ()", 1, 1, _label_encoder, is_window=True),
    "NGRAMS": _Function("ML.NGRAMS(words, [1, 2], ' ')", 2, 3, _ngrams, dialects=(DUCKDB,)),
    "FEATURE_CROSS": _Function("ML.FEATURE_CROSS(STRUCT(a, b))", 1, 2, _feature_cross, dialects=(DUCKDB,)),
    "HASH_BUCKETIZE": _Function("ML.HASH_BUCKETIZE(x, 100)", 2, 2, _hash_bucketize, dialects=(DUCKDB,)),
    "ONE_HOT_ENCODER": _Function(
        "ML.ONE_HOT_ENCODER(x) OVER ()", 1, 1, _one_hot_encoder, is_window=True, dialects=(DUCKDB,)
    ),
    "POLYNOMIAL_EXPAND": _Function(
        "ML.POLYNOMIAL_EXPAND(STRUCT(x, y), 2)", 1, 2, _polynomial_expand, dialects=(DUCKDB,)
    ),
    "DISTANCE": _Function("ML.DISTANCE(a, b, 'COSINE')", 2, 3, _distance, dialects=(DUCKDB,)),
    "LP_NORM": _Function("ML.LP_NORM(vector, 2)", 2, 2, _lp_norm, dialects=(DUCKDB,)),
    "NORMALIZER": _Function("ML.NORMALIZER(vector, 2)", 1, 2, _normalizer, dialects=(DUCKDB,)),
}
