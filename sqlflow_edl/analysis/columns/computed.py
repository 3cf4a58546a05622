"""Expressions of COLUMN: from the syntax tree to `spec.Computed`, with columns resolved and everything checked.

LOG of a column is log(1 + x) wherever it stands; of an expression it is its natural logarithm, as LN is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edl import spec
from edl.errors import SemanticError, Span, did_you_mean
from edl.spec.computed import DEEPEST, MOST_OPERATORS, depth, table_columns
from sqlflow_edl.syntax import ast

Column = Callable[[ast.Name], spec.Source]  # resolves a name to the column of a number


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
)
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
    of_column = len(value.args) == 1 and not isinstance(value.args[0], ast.Operation | ast.Call)
    return name in BY_NAME or (name == _LOGARITHM and (nested or not of_column) and not value.kwargs)


def check_call(call: ast.Call) -> None:
    """Raise SemanticError for a wrong number of arguments."""
    function = _function(call)
    if call.kwargs or not function.least <= len(call.args) <= function.most:
        count = f"{function.least} to {function.most}" if function.most > 1 else "one"
        plural = "s" if function.most > 1 else ""
        raise SemanticError(
            f"{function.name} takes {count} argument{plural}", span=call.span, hint=f"write {function.usage}"
        )


def computed(value: ast.Value, column: Column) -> spec.Computed:
    """Return the expression with its columns. Raises SemanticError, with the place, for what no expression has."""
    found = _source(value, column)
    if not isinstance(found, spec.Computed) or not any(table_columns(found)):
        raise SemanticError("this expression has no column", span=value.span, hint="such as x / 2")
    if depth(found) > DEEPEST or sum(1 for _ in _operators(found)) > MOST_OPERATORS:
        raise SemanticError(
            f"the expression is too long: {MOST_OPERATORS} operators are possible, {DEEPEST} within one another",
            span=value.span,
            hint="compute it in the SELECT",
        )
    return found


def _source(value: ast.Value, column: Column) -> spec.Source | float:
    match value:
        case ast.Constant(value=bool()):
            raise _no_number(value.span)
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name():
            return column(value)
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
            hint="write x * x for a square; + - * / are possible",
        )
    return spec.Computed(node.operator, tuple(_source(each, column) for each in node.operands))


def _call(call: ast.Call, column: Column) -> spec.Computed:
    check_call(call)
    function = _function(call)
    operands = [_source(each, column) for each in call.args]
    if function is _LOG:
        if isinstance(call.args[0], ast.Name):
            operands = [spec.Computed("+", (operands[0], 1.0))]
        return spec.Computed("LN", tuple(operands))
    found, *rest = operands
    for each in rest:
        found = spec.Computed(function.name, (found, each))
    return found if rest and isinstance(found, spec.Computed) else spec.Computed(function.name, (found,))


def _function(call: ast.Call) -> ComputedFunction:
    name = call.function.casefold()
    if name == _LOGARITHM:
        return _LOG
    if name not in BY_NAME:
        names = ["LOG", *(each.name for each in FUNCTIONS)]
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
        for each in source.operands:
            yield from _operators(each)


def _no_number(span: Span) -> SemanticError:
    return SemanticError(
        "an expression takes columns and numbers",
        span=span,
        hint="such as x / (y + 1), LN(x), COALESCE(x, 0)",
    )
