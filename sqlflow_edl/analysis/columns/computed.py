"""Expressions of COLUMN: from the syntax tree to `spec.Computed`, with columns resolved and everything checked.

LOG of a column is log(1 + x) wherever it stands; of an expression it is its natural logarithm, as LN is. Statistics of
the training rows, such as MEDIAN(x), are operators until `fix_statistics` puts numbers in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, did_you_mean
from edl.program import column_functions
from edl.spec.computed import (
    DEEPEST,
    FUNCTION,
    JSON_PATH,
    MOST_OPERATORS,
    OF_TEXT,
    TO_NUMBER,
    depth,
    functions,
    table_columns,
)
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics.fitting import Want
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.syntax import ast

Kind = Literal["number", "text", "any"]  # of column that an operand may be
Column = Callable[[ast.Name, Kind], spec.Source]  # resolves a name to a column of the kind


@dataclass(frozen=True, slots=True)
class ComputedFunction:
    """Function of expressions. most: of its arguments, at least `least`."""

    name: str
    usage: str
    doc: str
    least: int = 1
    most: int = 1
    aliases: tuple[str, ...] = ()


_MANY = 10
FUNCTIONS = (
    ComputedFunction("LN", "LN(x)", "natural logarithm; NULL of 0 and below"),
    ComputedFunction("EXP", "EXP(x)", "e to that power"),
    ComputedFunction("SQRT", "SQRT(x)", "square root; NULL below 0"),
    ComputedFunction("ABS", "ABS(x)", "size without the sign"),
    ComputedFunction("LEAST", "LEAST(x, y)", "the least one; NULL where one is", 2, _MANY),
    ComputedFunction("GREATEST", "GREATEST(x, y)", "the greatest one; NULL where one is", 2, _MANY),
    ComputedFunction("COALESCE", "COALESCE(x, 0)", "the first that is not NULL", 2, _MANY, ("IFNULL", "NVL")),
    ComputedFunction(
        "IMPUTE", "IMPUTE(x, median)", "x, or where it is NULL the mean, median or mode, or a number", 1, 2
    ),
    ComputedFunction("MEAN", "MEAN(x)", "the mean of the training rows"),
    ComputedFunction("MEDIAN", "MEDIAN(x)", "the median of the training rows"),
    ComputedFunction("MODE", "MODE(x)", "the most frequent number of the training rows"),
    ComputedFunction(
        TO_NUMBER,
        "TO_NUMBER(price), or TO_NUMBER(price, ',') with decimal commas",
        "the number in a text such as $1,003.50; NULL where there is none",
        1,
        2,
    ),
    ComputedFunction(
        "JSON",
        "JSON(payload, '$.user.age')",
        "the number at a path of a JSON text, or in a category the text",
        2,
        2,
        ("JSON_TEXT", "JSON_VALUE", "JSON_EXTRACT", "GET_JSON_OBJECT"),
    ),
)
_STRATEGIES = {"mean": "MEAN", "median": "MEDIAN", "mode": "MODE", "most_frequent": "MODE"}  # of IMPUTE
_WANTS = {"MEAN": Want.MOMENTS, "MEDIAN": Want.QUANTILES, "MODE": Want.COUNTS}
BY_NAME = {name.casefold(): each for each in FUNCTIONS for name in (each.name, *each.aliases)}
_LOG = ComputedFunction("LOG", "LOG(x)", "")
_LOGARITHM = "log"


def is_computed(value: ast.Value, *, nested: bool = True) -> bool:
    """Return True for an expression. nested: inside a function, where LOG of a column is no feature but a number."""
    if isinstance(value, ast.Operation):
        return True
    if not isinstance(value, ast.Call):
        return False
    name = value.function.casefold()
    if "." in name:  # a function of a user's own
        return True
    of_column = len(value.args) == 1 and not isinstance(value.args[0], ast.Operation | ast.Call)
    return name in BY_NAME or (name == _LOGARITHM and (nested or not of_column) and not value.kwargs)


def check_call(call: ast.Call) -> None:
    """Raise SemanticError for a wrong number of arguments."""
    if "." in call.function:
        own_function(call)
        return
    function = _function(call)
    if call.kwargs or not function.least <= len(call.args) <= function.most:
        count = (
            f"{function.least} to {function.most}" if function.most > function.least else f"{function.most}"
        )
        plural = "s" if function.most > 1 else ""
        raise SemanticError(
            f"{function.name} takes {count} argument{plural}", span=call.span, hint=f"write {function.usage}"
        )


def bind_expression(value: ast.Value, column: Column) -> spec.Computed:
    """Return the expression with its columns. Raises SemanticError, with the place, for what no expression has."""
    source = _source(value, column)
    if not isinstance(source, spec.Computed) or not _has_column(source):
        raise SemanticError("this expression has no column", span=value.span, hint="such as x / 2")
    if depth(source) > DEEPEST or sum(1 for _ in _operators(source)) > MOST_OPERATORS:
        raise SemanticError(
            f"the expression is too long: {MOST_OPERATORS} operators are possible, {DEEPEST} within one another",
            span=value.span,
            hint="compute it in the SELECT",
        )
    return source


def _has_column(source: spec.Source) -> bool:
    """Return True if the source has other values in other rows: it reads a column, and not its statistics alone."""
    return any(table_columns(_with_numbers(source, lambda _: 0.0, {})))


def list_wants(source: spec.Source | float, schema: Schema) -> Iterator[tuple[str, Want]]:
    """Yield the columns of the table with the statistics that the expression, or a report of drift, needs of them."""
    if not isinstance(source, spec.Computed):
        return
    for operand in source.operands:
        if isinstance(operand, str):
            kind = ColumnType.OTHER if source.operator in OF_TEXT else schema.type(operand)
            moments = kind not in (ColumnType.TEXT, ColumnType.OTHER)
            yield operand, Want.MOMENTS if moments else Want.NONE
            yield operand, Want.COUNTS if kind is ColumnType.TEXT else _WANTS.get(source.operator, Want.NONE)
        else:
            yield from list_wants(operand, schema)


def is_fixed(source: spec.Computed) -> bool:
    """Return True if the expression has no statistics of the training rows, nor a function that is fitted to them."""
    fitted = all(operator.function.state is not None for operator in functions(source) if operator.function)
    return fitted and not _WANTS.keys() & set(_operators(source))


def state_of(source: spec.Computed) -> str:
    """Return the name under which statistics have the state of a function of a user's own."""
    return f"state of {source}"


def fix_statistics(source: spec.Computed, statistics: Statistics) -> spec.Computed:
    """Return the expression with the numbers of its statistics. Raises SemanticError where there is none."""
    with_numbers = _with_numbers(
        source, lambda operator_found: _statistic(operator_found, statistics), statistics
    )
    if not isinstance(with_numbers, spec.Computed):
        raise TypeError("an expression has a column")
    return with_numbers


def _with_numbers(
    source: spec.Source | float, number: Callable[[spec.Computed], float], states: Statistics
) -> spec.Source | float:
    """Return the source with numbers for statistics, and with the states of functions by their texts."""
    if not isinstance(source, spec.Computed):
        return source
    if source.operator in _WANTS:
        return number(source)
    operands = tuple(_with_numbers(operand, number, states) for operand in source.operands)
    function = source.function
    if (
        function is not None
        and function.state is None
        and (fitted := states.get(state_of(source))) is not None
    ):
        function = msgspec.structs.replace(function, state=fitted.state)
    return msgspec.structs.replace(source, operands=operands, function=function)


def _statistic(node: spec.Computed, statistics: Statistics) -> float:
    [column] = table_columns(node)
    column_statistics = statistics[column]
    if node.operator == "MEAN" and column_statistics.numbers:
        return column_statistics.mean
    if node.operator == "MEDIAN" and len(column_statistics.sample):
        return column_statistics.quantiles([0.5])[0]
    if node.operator == "MODE" and column_statistics.counts and column_statistics.counts.values:
        return _number(column_statistics.counts.values[0], node, column)
    many = " of few different values" if node.operator == "MODE" and column_statistics.distinct else ""
    raise SemanticError(f"{node} needs numbers{many}, and the training rows have none in {column}")


def _number(value: str | bool | int, node: spec.Computed, column: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise SemanticError(
            f"{node} needs numbers, and {column} has values such as {value}",
            hint=f"the median of a date or time counts in seconds: IMPUTE({column}, median)",
        ) from None


def _source(value: ast.Value, column: Column) -> spec.Source | float:
    match value:
        case ast.Constant(value=bool()):
            raise _no_number(value.span)
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name():
            return column(value, "number")
        case ast.Operation():
            return _operation(value, column)
        case ast.Call():
            return _call(value, column)
    raise _no_number(value.span)


def _operation(node: ast.Operation, column: Column) -> spec.Source | float:
    if node.operator not in ("+", "-", "*", "/"):
        raise SemanticError(
            f"expressions have no operator {node.operator}",
            span=node.span,
            hint="write x * x for a square"
            if node.operator == "^"
            else "+ - * / are possible; compute it in the SELECT",
        )
    return spec.Computed(node.operator, tuple(_source(operand, column) for operand in node.operands))


def _call(call: ast.Call, column: Column) -> spec.Computed:
    if "." in call.function:
        user_function = own_function(call)
        operands = tuple(_argument(argument, call, column) for argument in call.args)
        return spec.Computed(FUNCTION, operands, function=user_function)
    check_call(call)
    function = _function(call)
    if function.name == "IMPUTE":
        return _bind_imputation(call, column)
    if function.name == "JSON":
        return _json(call, column)
    if function.name == TO_NUMBER:
        return _text_number(call, column)
    values = [_source(argument, column) for argument in call.args]
    if function.name in _WANTS:
        return _of_rows(function.name, values[0], call)
    if function is _LOG:
        if isinstance(call.args[0], ast.Name):
            values = [spec.Computed("+", (values[0], 1.0))]
        return spec.Computed("LN", tuple(values))
    result, *rest = values
    for argument in rest:
        result = spec.Computed(function.name, (result, argument))
    return result if rest and isinstance(result, spec.Computed) else spec.Computed(function.name, (result,))


def _argument(value: ast.Value, call: ast.Call, column: Column) -> spec.Source:
    """Return a column or an expression for a function of a user's own, which gets its arguments as columns."""
    source: spec.Source | float = 0.0
    if isinstance(value, ast.Name):
        source = column(value, "any")
    elif not isinstance(value, ast.Constant):
        source = _source(value, column)
    if isinstance(source, float) or not _has_column(source):
        raise SemanticError(
            f"an argument of {call.function} is a column, or an expression of columns",
            span=value.span,
            hint="write a parameter with its name, such as share=0.05",
        )
    return source


def own_function(call: ast.Call) -> spec.Function:
    """Return the column function of a user's own that the call names, found by its source.

    Raises SemanticError, with the place, if there is none that SQL may name, or it lacks its parameters.
    """
    with set_missing_spans(call.function_span):
        user_code = column_functions.look_up(call.function)
    if not call.args:
        raise SemanticError(
            f"{user_code.attribute} takes a column or more",
            span=call.span,
            hint=f"such as {call.function}(price)",
        )
    params = []
    for name, value in call.kwargs:
        constant = value.value if isinstance(value, ast.Constant) else getattr(value, "text", None)
        if not isinstance(constant, str | bool | int | float):
            raise SemanticError("a parameter is a number, a text, TRUE or FALSE", span=value.span)
        if name not in user_code.signature.names and not user_code.signature.anything:
            hint = did_you_mean(name, user_code.signature.names, list_up_to=8)
            raise SemanticError(f"{user_code.attribute} has no parameter {name}", span=value.span, hint=hint)
        params.append((name, constant))
    if lacking := [parameter for parameter in user_code.signature.required if parameter not in dict(params)]:
        raise SemanticError(
            f"{user_code.attribute} needs its parameter {lacking[0]}",
            span=call.span,
            hint=f"write {lacking[0]}=…; it is {user_code.attribute}({user_code.signature})",
        )
    return spec.Function(user_code.name, user_code.digest, tuple(params))


def _json(call: ast.Call, column: Column) -> spec.Computed:
    name, path = call.args
    if not isinstance(name, ast.Name):
        raise SemanticError(
            "JSON takes a column of texts", span=name.span, hint=f"write {_function(call).usage}"
        )
    path_text = path.value if isinstance(path, ast.Constant) else None
    if not isinstance(path_text, str) or not JSON_PATH.fullmatch(path_text):
        raise SemanticError(
            "JSON takes a path of keys and positions",
            span=path.span,
            hint="such as '$.user.ages[0]' or '$.\"a key\".b', without wildcards",
        )
    return spec.Computed("JSON", (column(name, "text"),), path_text)


def _text_number(call: ast.Call, column: Column) -> spec.Computed:
    name, *rest = call.args
    mark = rest[0].value if rest and isinstance(rest[0], ast.Constant) else "." if not rest else None
    if not isinstance(name, ast.Name) or mark not in (".", ","):
        raise SemanticError(
            f"{TO_NUMBER} takes a column of texts, and the mark before fractions",
            span=call.span,
            hint=f"write {_function(call).usage}",
        )
    return spec.Computed(TO_NUMBER, (column(name, "text"),), "," if mark == "," else "")


def _bind_imputation(call: ast.Call, column: Column) -> spec.Computed:
    value, *rest = call.args
    source = _source(value, column)
    how = rest[0] if rest else None
    word = str(how) if isinstance(how, ast.Name) else getattr(how, "value", "median")
    if isinstance(word, str):
        if word.casefold() not in _STRATEGIES:
            raise SemanticError(
                f"IMPUTE has no statistic {word}",
                span=how.span if how else call.span,
                hint=did_you_mean(word.casefold(), _STRATEGIES)
                or "mean, median, mode and numbers are possible",
            )
        filled: spec.Source | float = _of_rows(_STRATEGIES[word.casefold()], source, call)
    else:
        filled = _source(how, column) if how else 0.0
    return spec.Computed("COALESCE", (source, filled))


def _of_rows(name: str, source: spec.Source | float, call: ast.Call) -> spec.Computed:
    """Return a statistic of a column of the table."""
    if not isinstance(source, str):
        raise SemanticError(
            f"{call.function.upper()} takes a column, not an expression",
            span=call.args[0].span,
            hint="compute the expression in the SELECT, or write a number for NULL: COALESCE(x / y, 0)",
        )
    return spec.Computed(name, (source,))


def _function(call: ast.Call) -> ComputedFunction:
    name = call.function.casefold()
    if name == _LOGARITHM:
        return _LOG
    if name not in BY_NAME:
        names = ["LOG", *(candidate.name for candidate in FUNCTIONS)]
        hint = did_you_mean(call.function.upper(), names, list_up_to=0)
        raise SemanticError(
            f"expressions have no function {call.function}",
            span=call.function_span,
            hint=hint or f"they have {', '.join(names)}; compute others in the SELECT",
        )
    return BY_NAME[name]


def _operators(source: spec.Source | float) -> Iterator[str]:
    if isinstance(source, spec.Computed):
        yield source.operator
        for operand in source.operands:
            yield from _operators(operand)


def _no_number(span: Span) -> SemanticError:
    return SemanticError(
        "an expression takes columns and numbers",
        span=span,
        hint="such as x / (y + 1), LN(x), COALESCE(x, 0)",
    )
