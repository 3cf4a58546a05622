"""Statements MAXIMIZE and MINIMIZE: attributes, variables, and the whole as an `Optimization`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean, raise_all
from edl.extensions.optimization.spec import Condition, Optimization
from edl.spec import Query
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings.attribute_dictionary import Dictionary, Resolved
from sqlflow_edl.extensions.optimization.settings import (
    DOMAIN,
    DOMAINS,
    OPTIMIZATION,
    SOLVERS,
    TIME_LIMIT,
    VARIABLES,
    WITHOUT_EFFECT,
)
from sqlflow_edl.extensions.optimization.terms import Terms
from sqlflow_edl.syntax.ast import Formula, Name, Statement

_NAME = r"[^\W\d]\w*"
_VARIABLES = re.compile(rf"\s*({_NAME})\s*(?:\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*)?")

_DICTIONARY = Dictionary(OPTIMIZATION, without_effect=WITHOUT_EFFECT)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Variables:
    """Variable of each row, and the columns that name the row."""

    name: str
    keys: tuple[str, ...]


def check(statement: Statement) -> None:
    """Check the statement without the columns of its query. Raises all errors together."""
    errors: list[SQLFlowError] = []
    _attributes(statement, errors)
    raise_all(errors)


def _attributes(statement: Statement, errors: list[SQLFlowError]) -> dict[str, Resolved]:
    """Return the attributes; add all errors that need no columns."""
    if not statement.select:
        hint = "write SELECT … before TO"
        errors.append(SemanticError("there is no SELECT to optimize", span=statement.span, hint=hint))
    attributes = _DICTIONARY.resolve(statement.attributes, errors, [])
    errors += _find_missing(statement)
    _collect_error(errors, lambda: _check_solver(statement.using))
    return attributes


def plan(statement: Statement, query: Query, schema: Schema) -> Optimization:
    """Return the problem of the statement. Raises all its errors together."""
    errors: list[SQLFlowError] = []
    attributes = _attributes(statement, errors)
    variables_attribute = attributes.get(VARIABLES)
    variables = (
        _collect_error(errors, lambda: _variables(variables_attribute, schema))
        if variables_attribute
        else None
    )
    if variables is None:
        raise_all(errors)
        raise RuntimeError("an error says why there are no variables")
    terms = Terms(schema, variables.name)
    formula, direction = statement.objective, statement.direction
    if formula is None or direction is None:
        raise RuntimeError("the grammar demands an objective")
    objective = _collect_error(errors, lambda: terms.objective(formula))
    conditions: list[Condition] = []
    for constraint in statement.constraints:
        conditions += _collect_error(errors, _conditions(terms, constraint)) or ()
    raise_all(errors)
    if objective is None:
        raise RuntimeError("an error says why there is no objective")
    return Optimization(
        statement=statement.text,
        query=query,
        direction=direction,
        objective=objective,
        conditions=tuple(conditions),
        domain=DOMAINS[str(attributes[DOMAIN].value)],
        variable=variables.name,
        keys=variables.keys,
        value=_value_column(variables),
        columns=tuple(terms.columns),
        time_limit=attributes[TIME_LIMIT].value if TIME_LIMIT in attributes else None,  # type: ignore[arg-type]  # a number
        target=str(statement.into[0]) if statement.into else "",
    )


def optimization_notes(statement: Statement) -> tuple[str, ...]:
    """Return a sentence for each thing of the statement that has another effect than in SQLFlow."""
    sentences: list[str] = []
    _DICTIONARY.resolve(statement.attributes, [], sentences)
    if statement.using is not None and str(statement.using).casefold() != "highs":
        sentences.append(f"HiGHS solves the problem in place of {statement.using}")
    return tuple(sentences)


def _conditions(terms: Terms, formula: Formula) -> Callable[[], tuple[Condition, ...]]:
    return lambda: tuple(terms.conditions(formula))


def _collect_error(errors: list[SQLFlowError], step: Callable[[], T]) -> T | None:
    try:
        return step()
    except SQLFlowError as error:
        errors.append(error)
        return None


# Attributes --------------------------------------------------------------------------------------------------


def _find_missing(statement: Statement) -> Iterator[SQLFlowError]:
    """Yield errors for attributes that the statement lacks."""
    places: Iterable[Span] = (
        formula.span for formula in (statement.objective, *statement.constraints) if formula
    )
    end = max(places, key=lambda span: span.end, default=None)
    examples = {VARIABLES: "amount(product)", DOMAIN: "NonNegativeIntegers"}
    for name, example in examples.items():
        if statement.attribute(name) is None:
            hint = f'write WITH {name} = "{example}"'
            yield SemanticError(f"the statement needs {name}", span=end, hint=hint)


def _variables(attribute: Resolved, schema: Schema) -> _Variables:
    """Return the variable; `variables="product"` alone is the variable of each product."""
    match = _VARIABLES.fullmatch(str(attribute.value))
    if match is None:
        raise SemanticError(
            "variables is a name with columns in parentheses",
            span=attribute.span,
            hint='such as "amount(product)": a variable amount for each product',
        )
    keys = [key_text.strip() for key_text in (match[2] or match[1]).split(",")]
    resolved = tuple(_resolve_key(schema, key, attribute.span) for key in keys)
    return _Variables(match[1], tuple(dict.fromkeys(resolved)))


def _resolve_key(schema: Schema, key: str, span: Span) -> str:
    return schema.resolve(Name((key,), key, span))


def _value_column(variables: _Variables) -> str:
    """Return the name of the variable, or another one if a key has that name."""
    name, taken = variables.name, {key.casefold() for key in variables.keys}
    while name.casefold() in taken:
        name += "_value"
    return name


def _check_solver(using: Name | None) -> None:
    if using is not None and str(using).casefold() not in SOLVERS:
        hint = did_you_mean(str(using).casefold(), SOLVERS)
        raise SemanticError(f"there is no solver {using}", span=using.span, hint=hint)
