"""Types of a query's columns against those that a model was trained on, before any process starts.

The hint of a wrong one, and of a missing one, is the expression of the training statement that made the column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from edl import spec
from edl.errors import SemanticError, Span, raise_all
from edl.features.arrays import numbers, plain_array
from edl.features.column_types import (
    LEAST_INEXACT,
    columns_of_large_ids,
    columns_written_otherwise,
    example,
    find_unfit_columns,
)
from edl.forecasting.steps import seconds_or_numbers
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import UnfitColumnError
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.syntax import ast
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import Token, code_tokens, name_value

_INTEGERS = ("int", "uint", "decimal")  # of times; beginnings of the names of Arrow's types
_LONGEST = 160  # characters of an expression in a hint
_BEFORE_ITEM = frozenset(("SELECT", "DISTINCT", "ALL"))
_BEFORE_TABLE = frozenset(("FROM", "JOIN"))


def check_types(
    statement: ast.Statement,
    trained: spec.JobSpec,
    used: spec.JobSpec,
    schema: Schema,
    has_rows: Callable[[str], bool],
) -> None:
    """Raise an error for each column of a type that the model, or the comparison with its label, does not take.

    used: JobSpec of the statement. has_rows: tells if a query has rows, here those in which a column is not NULL (a
    database may give NULL any type), and those in which an id may have been rounded.
    """
    if trained.edited or (
        used.report == "drift" and not used.output.name
    ):  # of another program; nothing is computed
        return
    before = {field.name.casefold(): field.type for field in trained.query.schema}
    # a column of a type that only the database has is refused where its rows are read, with a cast for that database
    changed = [
        field.name
        for field in schema.arrow
        if before.get(field.name.casefold(), "") != str(field.type) and not schema.is_of_database(field.name)
    ]
    label = used.label if used.kind == "evaluate" else None
    unfit: dict[str, SemanticError] = dict(_unfit_columns_of_series(used, before, schema, changed))
    if changed:
        unfit.update(find_unfit_columns(used.features, label, schema.arrow, changed))
    raise_all(
        [
            UnfitColumnError(
                error.message,
                name,
                before.get(name.casefold(), ""),
                _made_by_training(trained.query, name) or "",
                span=_place(statement, name, schema.dialect),
                hint=expression_of_training(trained.query, name) or error.hint,
            )
            for name, error in unfit.items()
            if has_rows(_rows_where(name, "{} IS NOT NULL", statement.select, schema.dialect))
        ]
        + list(_changed_ids(statement, used, before, schema, has_rows))
    )


def _changed_ids(
    statement: ast.Statement,
    used: spec.JobSpec,
    before: Mapping[str, str],
    schema: Schema,
    has_rows: Callable[[str], bool],
) -> Iterator[SemanticError]:
    """Yield an error for each column of ids of a type that rounds them, or that writes them otherwise.

    before: types of the training's columns by their folded names.
    """
    place = partial(_place, statement, dialect=schema.dialect)
    rows_where = partial(_rows_where, select=statement.select, dialect=schema.dialect)
    for name in columns_of_large_ids(used.features, schema.names, hashed=True):
        was_whole = before.get(name.casefold(), "").startswith(_INTEGERS)
        if was_whole and schema.has_nan(name) and has_rows(rows_where(name, f"ABS({{}}) >= {LEAST_INEXACT}")):
            yield SemanticError(
                f"{name} has ids above 2^53 as floating-point numbers, which cannot tell neighbouring ids apart; in "
                "training they were whole numbers",
                span=place(name),
                hint="select it from where it is a whole number still: a cast does not bring the lost digits back",
            )
    for name in columns_written_otherwise(used.features, schema.arrow, before):
        if has_rows(rows_where(name, "{} IS NOT NULL")):
            here, in_training = schema.arrow.field(name).type, before[name.casefold()]
            yield SemanticError(
                f"{name} is of type {here} here and was {in_training} in training, which writes the values of its "
                "category otherwise",
                span=place(name),
                hint="cast it in the query to its type in training",
            )


def _unfit_columns_of_series(
    used: spec.JobSpec, before: Mapping[str, str], schema: Schema, changed: Collection[str]
) -> Iterator[tuple[str, SemanticError]]:
    """Yield the error of the time or the label of a forecast, by its column, if its type is of no use.

    before: types of the training's columns by their folded names.
    """
    forecast = used.forecast
    if forecast is None:
        return
    reads = {used.label.column: numbers, forecast.time: seconds_or_numbers}
    for name in (column for column in reads if column in changed):
        try:
            reads[name](plain_array(example(schema.arrow.field(name).type)), name)
        except SemanticError as error:
            yield name, error
    time = forecast.time
    was_integer = before.get(time.casefold(), "").startswith(_INTEGERS)
    if time in changed and schema.is_integer(time) is not was_integer:
        here, before_it = (
            "a whole number" if flag else "a date or timestamp" for flag in (not was_integer, was_integer)
        )
        yield (
            time,
            SemanticError(f"{time} is {here}, and was {before_it} in training", hint="cast it in the query"),
        )


def expression_of_training(query: spec.Query, column: str) -> str | None:
    """Return the hint with the expression that made a column of the training rows, or None if not one is found."""
    expression = _made_by_training(query, column)
    return f"the training selected {expression}" if expression else None


def _made_by_training(query: spec.Query, column: str) -> str | None:
    """Return the expression that made a column of the training rows, with its name, or None if not one is found."""
    tokens = list(code_tokens(query.select, 0, dialect_named(query.dialect)))
    candidates = set[str]()
    for at, token in enumerate(tokens):
        if at > 1 and tokens[at - 1].word == "AS" and _is_named(token, column):
            first = _find_item_start(tokens, at - 2)
            if first is not None and first < at - 2:  # more than another name
                candidates.add(" ".join(query.select[tokens[first].start : token.end].split()))
    if len(candidates) != 1 or len(expression := candidates.pop()) > _LONGEST:
        return None
    return expression


def _find_item_start(tokens: Sequence[Token], last: int) -> int | None:
    """Return the first token of the item of a SELECT that ends there, or None if it is none."""
    depth = 0
    for at in range(last, -1, -1):
        token = tokens[at]
        depth -= token.nesting
        if depth < 0 or (depth == 0 and (token.text == "," or token.word in _BEFORE_ITEM)):
            return at + 1
        if depth == 0 and token.word in _BEFORE_TABLE:
            return None
    return None


def _is_named(token: Token, column: str) -> bool:
    is_name = token.kind in ("word", "name")
    return is_name and name_value(token.text).casefold() == column.casefold()


def _place(statement: ast.Statement, column: str, dialect: str) -> Span | None:
    """Return the place of a column in the query, or the query's place if it is not named exactly once."""
    span = statement.select_span
    if span is None:
        return None
    named = [
        Span(token.start, token.end).shift(span.start)
        for token in code_tokens(statement.select, 0, dialect_named(dialect))
        if _is_named(token, column)
    ]
    return named[0] if len(named) == 1 else span


def _rows_where(column: str, condition: str, select: str, dialect: str) -> str:
    """Return the query of one row of a query in which the condition on a column, {}, holds."""
    name = expressions.name(column, dialect)
    return f"SELECT {name} FROM (\n{select}\n) AS sqlflow_edl_given WHERE {condition.format(name)} LIMIT 1"
