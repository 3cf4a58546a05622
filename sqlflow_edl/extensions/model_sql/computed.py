"""Operators of computed columns in SQL: `edl.features.computed` as expressions of columns and literals.

None of them is asked for a result that it has not, because databases differ in what they then return, or stop. A result
beyond the largest double is NULL where the database yields an infinity, and stops the query on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlglot import exp

from sqlflow_edl.extensions.model_sql.dialects import Target
from sqlflow_edl.extensions.model_sql.expressions import (
    Expression,
    case,
    divide,
    finite_or_null,
    logarithm,
    negative,
    number,
    power_of_e,
    sum_terms,
    times,
)

_LARGEST_EXPONENT = 709.782712893384  # of e: the power still is a double
_LEAST_EXPONENT = -745.1332191019411  # below, the power is 0, which PostgreSQL takes for an error


def write_operator(target: Target, operator: str, operands: Sequence[Expression]) -> Expression:
    """Return the operator of `edl.spec.computed` over doubles that are NULL or finite."""
    return _OPERATORS[operator](target, *operands)


def _overflowing(make: Callable[..., Expression], target: Target, *operands: Expression) -> Expression:
    return finite_or_null(target, make(*operands))


def _divide(a: Expression, b: Expression) -> Expression:
    return divide(a, exp.Nullif(this=b, expression=number(0)))


def _ln(target: Target, a: Expression) -> Expression:
    return case([(exp.GT(this=a, expression=number(0)), logarithm(a.copy()))])


def _sqrt(target: Target, a: Expression) -> Expression:
    return case([(exp.GTE(this=a, expression=number(0)), exp.Sqrt(this=a.copy()))])


def _exp(target: Target, a: Expression) -> Expression:
    return case(
        [
            (exp.LT(this=a, expression=number(_LEAST_EXPONENT)), number(0)),
            (exp.LTE(this=a.copy(), expression=number(_LARGEST_EXPONENT)), power_of_e(a.copy())),
        ]
    )


def _one_of(
    first: type[exp.Binary], otherwise: type[exp.Binary], target: Target, a: Expression, b: Expression
) -> Expression:
    """Return a where it compares so with b, b where it compares otherwise, and NULL if one of them is."""
    return case(
        [(first(this=a, expression=b), a.copy()), (otherwise(this=a.copy(), expression=b.copy()), b.copy())]
    )


_OPERATORS: Mapping[str, Callable[..., Expression]] = {
    "+": partial(_overflowing, lambda *terms: sum_terms(terms)),
    "-": lambda target, a: negative(a),
    "*": partial(_overflowing, times),
    "/": partial(_overflowing, _divide),
    "LN": _ln,
    "EXP": _exp,
    "SQRT": _sqrt,
    "ABS": lambda target, a: exp.Abs(this=a),
    "LEAST": partial(_one_of, exp.LTE, exp.GT),
    "GREATEST": partial(_one_of, exp.GTE, exp.LT),
    "COALESCE": lambda target, a, b: exp.Coalesce(this=a, expressions=[b]),
}
