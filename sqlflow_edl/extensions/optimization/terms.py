"""Expressions of MAXIMIZE and MINIMIZE: checked against the columns and for linearity, each error at its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from edl.errors import SemanticError, Span, did_you_mean
from edl.extensions.optimization import spec as spec
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.syntax.ast import Aggregate, Constant, Expression, Formula, Name, Operation, Star
from sqlflow_edl.syntax.formulas import COMPARISONS

FUNCTIONS = ("SUM", "AVG", "MIN", "MAX", "COUNT")
DEEPEST = 60  # nested operations and calls
_OPERATORS = {"<=": "<=", ">=": ">=", "=": "=", "==": "="}
_NEGATIVE = spec.Number(-1.0)


@dataclass(frozen=True, slots=True)
class Checked:
    """Term with its properties. total: it has one value per group of rows, otherwise one per row."""

    term: spec.Term
    variable: bool
    total: bool
    span: Span


class Terms:
    """Checker of expressions. variable: name of the variable of each row."""

    def __init__(self, schema: Schema, variable: str) -> None:
        self._schema = schema
        self._variable = variable.casefold()
        self._name = variable
        self.columns: dict[str, None] = {}  # read as numbers, in order

    def objective(self, formula: Formula) -> spec.Term:
        """Return the term of the objective. Raises SemanticError unless it is one number that the variable decides."""
        checked = self._term(formula.expression)
        self._require_variable(checked)
        if not checked.total:
            raise SemanticError(
                "the objective has a value for each row", span=checked.span, hint=f"write SUM({formula.text})"
            )
        return checked.term

    def conditions(self, formula: Formula) -> Iterator[spec.Condition]:
        """Yield the conditions of a constraint; AND and `1 <= x <= 3` make several."""
        group = self._schema.resolve(formula.group) if formula.group else ""
        for left, operator, right in self._comparisons(formula.expression):
            one, other = self._term(left), self._term(right)
            difference = self._sum(one, self._product(Checked(_NEGATIVE, False, False, other.span), other))
            self._require_variable(difference)
            yield spec.Condition(
                formula.text, difference.term, operator, per_group=difference.total, group=group
            )

    def _comparisons(
        self, node: Expression
    ) -> Iterator[tuple[Expression, Literal["<=", ">=", "="], Expression]]:
        if isinstance(node, Operation) and node.operator == "AND":
            for operand in node.operands:
                yield from self._comparisons(operand)
            return
        if not isinstance(node, Operation) or node.operator not in COMPARISONS:
            raise SemanticError("a constraint compares two sides", span=node.span, hint="write <=, >= or =")
        left, right = node.operands
        operator = _OPERATORS.get(node.operator)
        if operator is None:
            place = Span(left.span.end, right.span.start)
            hint = f"write {node.operator}=" if node.operator in ("<", ">") else "<=, >= and = are possible"
            raise SemanticError(f"a constraint cannot be {node.operator}", span=place, hint=hint)
        if isinstance(left, Operation) and left.operator in COMPARISONS:
            yield from self._comparisons(left)
            left = left.operands[1]
        yield left, cast(Literal["<=", ">=", "="], operator), right

    # Terms ---------------------------------------------------------------------------------------------------

    def _term(self, node: Expression, depth: int = 0) -> Checked:
        if depth > DEEPEST:
            raise SemanticError(
                "the expression is nested too deep", span=node.span, hint="compute it in the SELECT"
            )
        match node:
            case Constant(value=int() | float()):
                return Checked(spec.Number(float(node.value or 0)), False, False, node.span)
            case Constant() | Star():
                raise SemanticError("a number is expected here", span=node.span)
            case Name():
                return self._check_name(node)
            case Aggregate():
                return self._aggregate(node, depth)
        operands = [self._term(operand, depth + 1) for operand in node.operands]
        return self._operation(node, operands)

    def _check_name(self, node: Name) -> Checked:
        if str(node).casefold() == self._variable:
            return Checked(spec.Variable(), True, False, node.span)
        try:
            column = self._schema.resolve(node)
        except SemanticError as error:
            error.hint = did_you_mean(node.parts[-1], (*self._schema.names, self._name))
            raise
        if self._schema.type(column) not in (ColumnType.NUMBER, ColumnType.BOOLEAN):
            kind = self._schema.type(column)
            words = "no number" if kind is ColumnType.OTHER else f"{kind.words}, no number"
            hint = f"the variable is {self._name}"
            if kind.is_temporal:
                dialect = self._schema.dialect
                seconds = f"{expressions.seconds(column, dialect)} AS {expressions.name(column, dialect)}"
                hint = f"select its seconds: {seconds}"
            raise SemanticError(f"{column} is {words}", span=node.span, hint=hint)
        self.columns[column] = None
        return Checked(spec.Column(column), False, False, node.span)

    def _operation(self, node: Operation, operands: list[Checked]) -> Checked:
        match node.operator:
            case "+":
                result = operands[0]
                for operand in operands[1:]:
                    result = self._sum(result, operand)
                return result
            case "-":
                return self._product(Checked(_NEGATIVE, False, False, node.span), operands[0], node.span)
            case "*":
                return self._product(operands[0], operands[1], node.span)
            case "/" | "%" | "^" as operator:
                return self._of_data(operator, operands[0], operands[1], node.span)
        raise SemanticError(
            f"{node.operator} cannot stand here", span=node.span, hint="constraints are separated by commas"
        )

    def _sum(self, left: Checked, right: Checked) -> Checked:
        self._require_one_level(left, right)
        return _join_terms("+", left, right, Span(left.span.start, right.span.end))

    def _product(self, left: Checked, right: Checked, span: Span | None = None) -> Checked:
        span = span or Span(left.span.start, right.span.end)
        if left.variable and right.variable:
            raise self._nonlinear(span, "two terms with the variable are multiplied")
        self._require_one_level(left, right)
        return _join_terms("*", left, right, span)

    def _of_data(
        self, operator: Literal["/", "%", "^"], left: Checked, right: Checked, span: Span
    ) -> Checked:
        if right.variable or (left.variable and operator != "/"):
            which = {"/": "the divisor", "%": "a remainder", "^": "a power"}[operator]
            raise self._nonlinear(span, f"{which} has the variable")
        self._require_one_level(left, right)
        return _join_terms(operator, left, right, span)

    def _aggregate(self, node: Aggregate, depth: int) -> Checked:
        function = node.function.upper()
        if function not in FUNCTIONS:
            raise SemanticError(
                f"there is no function {node.function}",
                span=node.span,
                hint=did_you_mean(function, FUNCTIONS),
            )
        if len(node.arguments) != 1:
            raise SemanticError(f"{function} takes one argument", span=node.span)
        if function == "COUNT":
            if not isinstance(node.arguments[0], Star):
                raise SemanticError("only rows can be counted", span=node.span, hint="write COUNT(*)")
            return Checked(spec.Total("SUM", spec.Number(1.0)), False, True, node.span)
        of = self._term(node.arguments[0], depth + 1)
        if of.total:
            raise SemanticError("an aggregate stands inside another one", span=of.span)
        if of.variable and function in ("MIN", "MAX"):
            raise self._nonlinear(node.span, f"{function} is of the variable")
        total = spec.Total(cast(Literal["SUM", "AVG", "MIN", "MAX"], function), of.term)
        return Checked(total, of.variable, True, node.span)

    # Rules ---------------------------------------------------------------------------------------------------

    def _require_one_level(self, left: Checked, right: Checked) -> None:
        """Raise SemanticError if the variable of a row meets an aggregate."""
        for one, other in ((left, right), (right, left)):
            if one.variable and not one.total and other.total:
                raise SemanticError(
                    f"{self._name} of a row stands beside an aggregate",
                    span=one.span,
                    hint="write SUM(…) around it",
                )

    def _require_variable(self, checked: Checked) -> None:
        if not checked.variable:
            raise SemanticError(
                f"the variable {self._name} is not in it, so there is nothing to decide", span=checked.span
            )

    def _nonlinear(self, span: Span, why: str) -> SemanticError:
        return SemanticError(f"only linear expressions can be solved, and {why}", span=span)


def _join_terms(
    operator: Literal["+", "*", "/", "%", "^"], left: Checked, right: Checked, span: Span
) -> Checked:
    term = spec.Arithmetic(operator, left.term, right.term)
    return Checked(term, left.variable or right.variable, left.total or right.total, span)
