"""Statements MAXIMIZE and MINIMIZE: attributes, variables, and the whole as an `Optimization`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, raise_all
from edl.spec import Query
from edl.spec.optimization import Condition, Domain, Optimization
from sqlflow_edl.analysis.optimization.terms import Terms
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.syntax.ast import Attribute, Constant, Formula, Name, Statement

DOMAINS = (
    Domain("Binary", 0, 1, whole=True),
    Domain("Integers", None, None, whole=True),
    Domain("PositiveIntegers", 1, None, whole=True),
    Domain("NegativeIntegers", None, -1, whole=True),
    Domain("NonNegativeIntegers", 0, None, whole=True),
    Domain("NonPositiveIntegers", None, 0, whole=True),
    Domain("Reals", None, None, whole=False),
    Domain("PositiveReals", 0, None, whole=False),
    Domain("NegativeReals", None, 0, whole=False),
    Domain("NonNegativeReals", 0, None, whole=False),
    Domain("NonPositiveReals", None, 0, whole=False),
)
SOLVERS = ("highs", "glpk", "cbc", "baron")
ATTRIBUTES = ("variables", "var_type", "solver.time_limit")
_WITHOUT_EFFECT = re.compile(r"data\.(enable_slice|batch_size)|worker\.(num|core|memory)")  # of SQLFlow
_NAME = r"[^\W\d]\w*"
_VARIABLES = re.compile(rf"\s*({_NAME})\s*(?:\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*)?")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Variables:
    """Variable of each row, and the columns that name the row."""

    name: str
    keys: tuple[str, ...]


def plan(statement: Statement, query: Query, schema: Schema) -> Optimization:
    """Return the problem of the statement. Raises all its errors together."""
    errors: list[SQLFlowError] = []
    _check_attributes(statement, errors)
    variables = _collected(errors, lambda: _variables(statement, schema))
    domain = _collected(errors, lambda: _domain(statement))
    time_limit = _collected(errors, lambda: _time_limit(statement))
    _collected(errors, lambda: _check_solver(statement.using))
    if variables is None:
        raise_all(errors)
        raise RuntimeError("an error says why there are no variables")
    terms = Terms(schema, variables.name)
    written, direction = statement.objective, statement.direction
    if written is None or direction is None:
        raise RuntimeError("the grammar demands an objective")
    objective = _collected(errors, lambda: terms.objective(written))
    conditions: list[Condition] = []
    for each in statement.constraints:
        conditions += _collected(errors, _conditions(terms, each)) or ()
    raise_all(errors)
    if objective is None or domain is None:
        raise RuntimeError("an error says why there is no objective or domain")
    return Optimization(
        statement=statement.text,
        query=query,
        direction=direction,
        objective=objective,
        conditions=tuple(conditions),
        domain=domain,
        variable=variables.name,
        keys=variables.keys,
        value=_value_column(variables),
        columns=tuple(terms.columns),
        time_limit=time_limit,
        target=str(statement.into[0]) if statement.into else "",
    )


def notes(statement: Statement) -> tuple[str, ...]:
    """Return a sentence for each thing of the statement that has another effect than in SQLFlow."""
    found = [
        f"{each.key} has no effect: the problem is solved in this process"
        for each in statement.attributes
        if _WITHOUT_EFFECT.fullmatch(each.key)
    ]
    if statement.using is not None and str(statement.using).casefold() != "highs":
        found.append(f"HiGHS solves the problem in place of {statement.using}")
    return tuple(found)


def _conditions(terms: Terms, formula: Formula) -> Callable[[], tuple[Condition, ...]]:
    return lambda: tuple(terms.conditions(formula))


def _collected(errors: list[SQLFlowError], step: Callable[[], T]) -> T | None:
    try:
        return step()
    except SQLFlowError as error:
        errors.append(error)
        return None


# Attributes --------------------------------------------------------------------------------------------------


def _check_attributes(statement: Statement, errors: list[SQLFlowError]) -> None:
    for each in statement.attributes:
        if each.key.casefold() not in ATTRIBUTES and not _WITHOUT_EFFECT.fullmatch(each.key):
            hint = did_you_mean(each.key.casefold(), ATTRIBUTES)
            errors.append(SemanticError(f"unknown attribute {each.key}", span=each.key_span, hint=hint))


def _variables(statement: Statement, schema: Schema) -> _Variables:
    """Return the variable; `variables="product"` alone is the variable of each product."""
    attribute = _required(statement, "variables", 'variables = "amount(product)"')
    found = _VARIABLES.fullmatch(_text(attribute))
    if found is None:
        raise SemanticError(
            "variables is a name with columns in parentheses",
            span=attribute.value.span,
            hint='such as "amount(product)": a variable amount for each product',
        )
    keys = [each.strip() for each in (found[2] or found[1]).split(",")]
    resolved = tuple(_resolved(schema, key, attribute.value.span) for key in keys)
    return _Variables(found[1], tuple(dict.fromkeys(resolved)))


def _resolved(schema: Schema, key: str, span: Span) -> str:
    return schema.resolve(Name((key,), key, span))


def _value_column(variables: _Variables) -> str:
    """Return the name of the variable, or another one if a key has that name."""
    name, taken = variables.name, {key.casefold() for key in variables.keys}
    while name.casefold() in taken:
        name += "_value"
    return name


def _domain(statement: Statement) -> Domain:
    attribute = _required(statement, "var_type", 'var_type = "NonNegativeIntegers"')
    known = {each.name.casefold(): each for each in DOMAINS}
    written = _text(attribute)
    if written.casefold() not in known:
        hint = did_you_mean(written, [each.name for each in DOMAINS])
        raise SemanticError(f"there is no var_type {written}", span=attribute.value.span, hint=hint)
    return known[written.casefold()]


def _time_limit(statement: Statement) -> float | None:
    attribute = statement.attribute("solver.time_limit")
    if attribute is None:
        return None
    value = attribute.value.value if isinstance(attribute.value, Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SemanticError("solver.time_limit is a number of seconds above 0", span=attribute.value.span)
    return float(value)


def _check_solver(using: Name | None) -> None:
    if using is not None and str(using).casefold() not in SOLVERS:
        hint = did_you_mean(str(using).casefold(), SOLVERS)
        raise SemanticError(f"there is no solver {using}", span=using.span, hint=hint)


def _required(statement: Statement, key: str, example: str) -> Attribute:
    found = statement.attribute(key)
    if found is None:
        raise SemanticError(f"the statement needs {key}", span=_end(statement), hint=f"write WITH {example}")
    return found


def _end(statement: Statement) -> Span | None:
    places: Iterable[Span] = (each.span for each in (statement.objective, *statement.constraints) if each)
    return max(places, key=lambda span: span.end, default=None)


def _text(attribute: Attribute) -> str:
    value = attribute.value
    if isinstance(value, Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Name):
        return str(value)
    raise SemanticError(f"{attribute.key} is a text", span=value.span)
