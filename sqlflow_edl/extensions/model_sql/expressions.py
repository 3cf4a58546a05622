"""Expressions of sqlglot that all parts of a query are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlglot import exp

from sqlflow_edl.extensions.model_sql.dialects import Target

Expression = exp.Expression

_CHAIN = 25  # terms of a sum without parentheses: databases limit the depth of an expression
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 20
_LARGEST = 1.7976931348623157e308
EXPONENT = 700.0  # e to this power, up or down, is a double that no database takes for an overflow


def number(value: float) -> Expression:
    """Return a literal that every database reads as a double: all have an exponent."""
    value = float(value)
    text = repr(abs(value))
    literal = exp.Literal.number(text if "e" in text else f"{text.removesuffix('.0')}e0")
    return exp.Neg(this=literal) if value < 0 else literal


def whole(value: int) -> Expression:
    literal = exp.Literal.number(str(abs(int(value))))
    return exp.Neg(this=literal) if value < 0 else literal


def own_column(name: str) -> exp.Column:
    """Return a column of an earlier part of the query, under a name of ours."""
    return exp.column(name)


def user_column(name: str) -> exp.Column:
    """Return a column of the user's table."""
    return exp.column(name, quoted=True)


def slug(name: str) -> str:
    """Return letters and digits of a name of a user, by which a reader recognises a column."""
    return _SLUG.sub("_", name.lower())[:_LONGEST_SLUG].strip("_")


def numbered_name(letter: str, number: int, name: str = "", *more: object) -> str:
    """Return a name of ours: a letter and a number, which make it unique, and a slug."""
    return "_".join(str(part) for part in (f"{letter}{number}", slug(name), *more) if part != "")


def sum_terms(terms: Iterable[Expression]) -> Expression:
    """Return the sum of the terms, in parentheses by groups if there are many; 0 without any."""
    parts = list(terms)
    while len(parts) > _CHAIN:
        groups = [parts[at : at + _CHAIN] for at in range(0, len(parts), _CHAIN)]
        parts = [exp.Paren(this=_chain(group)) if len(group) > 1 else group[0] for group in groups]
    return _chain(parts) if parts else number(0)


def _chain(terms: Sequence[Expression]) -> Expression:
    result = terms[0]
    for term in terms[1:]:
        result = exp.Add(this=result, expression=term)
    return result


def add(a: Expression, b: Expression) -> Expression:
    return exp.Add(this=a, expression=b)


def subtract(a: Expression, b: Expression) -> Expression:
    return exp.Sub(this=a, expression=b)


def times(a: Expression, b: Expression) -> Expression:
    return exp.Mul(this=a, expression=b)


def divide(a: Expression, b: Expression) -> Expression:
    """Return the quotient of two doubles."""
    return exp.Div(this=a, expression=b, typed=True, safe=False)


def parenthesize(expression: Expression) -> Expression:
    return exp.Paren(this=expression)


def negative(expression: Expression) -> Expression:
    return exp.Neg(this=expression)


def case(
    branches: Iterable[tuple[Any, Any]], default: Expression | None = None, of: Expression | None = None
) -> Expression:
    """Return CASE: the value of the first condition that holds, or of the first value that `of` equals."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(this=of, ifs=ifs, default=default)


def is_null(expression: Expression) -> Expression:
    return exp.Is(this=expression, expression=exp.Null())


def is_between(expression: Expression, low: Expression, high: Expression) -> Expression:
    return exp.Between(this=expression, low=low, high=high)


def clamp_exponent(make: Callable[[], Expression]) -> Expression:
    """Return the value between -EXPONENT and EXPONENT. `make` returns the value, which the expression needs thrice."""
    low, high = number(-EXPONENT), number(EXPONENT)
    return case(
        [
            (exp.GT(this=make(), expression=high.copy()), high),
            (exp.LT(this=make(), expression=low.copy()), low),
        ],
        make(),
    )


def double(expression: Expression) -> Expression:
    return exp.cast(expression, exp.DataType.Type.DOUBLE)


def power_of_e(expression: Expression) -> Expression:
    return exp.Exp(this=expression)


def logarithm(expression: Expression) -> Expression:
    return exp.Ln(this=expression)


def function(name: str, *arguments: Expression) -> Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def finite_or_null(target: Target, value: Expression) -> Expression:
    """Return the double, or NULL if it is not finite."""
    if not target.not_finite:
        return value
    return case([(is_between(value, number(-_LARGEST), number(_LARGEST)), value.copy())])
