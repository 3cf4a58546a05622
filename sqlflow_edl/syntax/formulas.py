"""Expressions of COLUMN, MAXIMIZE and MINIMIZE: from the flat list of operators and operands to a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from lark import Token

from edl.errors import Span, StatementSyntaxError
from sqlflow_edl.syntax.ast import Call, Constant, Expression, ListValue, Name, Operation, Value

Part = Token | Expression
COMPARISONS = frozenset(("=", "==", "<=", ">=", "<", ">", "<>", "!="))
# operators of two operands, the loosest first; `^` binds tighter than a sign
_LEVELS = (frozenset(("OR",)), frozenset(("AND",)), COMPARISONS, frozenset("+-"), frozenset("*/%"))
_MOST_POWERS = 20  # of one expression; they nest
_PIECE = re.compile(r"[\w.]+|[-/]")
_QUOTIENT = re.compile(r"[\w.\-/]+")


def by_precedence(parts: Sequence[Part]) -> Expression:
    """Return the tree of operands with operators between them and signs before them.

    Raises StatementSyntaxError for a tower of powers that is too high.
    """
    powers = [part for part in parts if isinstance(part, Token) and part == "^"]
    if len(powers) > _MOST_POWERS:
        place = powers[_MOST_POWERS].start_pos or 0
        raise StatementSyntaxError("there are too many powers", span=Span(place, place + 1))
    return _FormulaReader(parts).level(0)


def is_quotient(value: Value) -> bool:
    """Return True for `a/b`, which the lexer takes for a path."""
    return isinstance(value, Name) and "/" in value.text and _QUOTIENT.fullmatch(value.text) is not None


def without_paths(value: Value) -> Value:
    """Return a value of COLUMN with quotients in the place of paths, also in its arguments."""
    if is_quotient(value):
        return cast(Value, by_precedence(quotient(cast(Name, value).text, value.span.start)))
    if isinstance(value, Call):
        kwargs = tuple((key, without_paths(argument)) for key, argument in value.kwargs)
        return replace(value, args=tuple(map(without_paths, value.args)), kwargs=kwargs)
    if isinstance(value, ListValue):
        return replace(value, items=tuple(map(without_paths, value.items)))
    return value


def quotient(path: str, place: int) -> list[Part]:
    """Return the operands and operators of `a/b` or `a-b/2` at that place."""
    parts: list[Part] = []
    for piece in _PIECE.finditer(path):
        start = place + piece.start()
        span, text = Span(start, start + len(piece[0])), piece[0]
        if text in "-/":
            parts.append(Token("SIGN", text, start_pos=start, end_pos=start + 1))
        elif re.fullmatch(r"\d+\.?\d*|\.\d+", text):
            parts.append(Constant(float(text), span))
        else:
            parts.append(Name(tuple(text.split(".")), text, span))
    return parts


class _FormulaReader:
    """Reader of the parts from left to right."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._next = 0

    def level(self, level: int) -> Expression:
        """Read operands that the operators of a level, or tighter ones, join."""
        if level == len(_LEVELS):
            return self._signed()
        left = self.level(level + 1)
        while operator := self._operator(_LEVELS[level]):
            left = _join_operation(operator, left, self.level(level + 1))
        return left

    def _operator(self, among: frozenset[str]) -> str:
        part = self._parts[self._next] if self._next < len(self._parts) else None
        if not isinstance(part, Token) or part.upper() not in among:
            return ""
        self._next += 1
        return part.upper()

    def _signed(self) -> Expression:
        signs: list[Token] = []
        while isinstance(part := self._parts[self._next], Token):
            signs.append(part)
            self._next += 1
        operand = self._power()
        for sign in reversed(signs):
            if sign != "+":
                operand = Operation(sign.upper(), (operand,), Span(sign.start_pos or 0, operand.span.end))
        return operand

    def _power(self) -> Expression:
        part = self._parts[self._next]
        self._next += 1
        if isinstance(part, Token):
            raise RuntimeError("the grammar puts an operand here")
        if self._operator(frozenset("^")):
            exponent = self._signed()
            return Operation("^", (part, exponent), Span(part.span.start, exponent.span.end))
        return part


def _join_operation(operator: str, left: Expression, right: Expression) -> Operation:
    """Return both under the operator; a sum is one operation, however long it is."""
    span = Span(left.span.start, right.span.end)
    if operator == "-":
        right = Operation("-", (right,), right.span)
    if operator in "+-":
        before = left.operands if isinstance(left, Operation) and left.operator == "+" else (left,)
        return Operation("+", (*before, right), span)
    return Operation(operator, (left, right), span)
