"""Search space of a statement: attributes with the value RANGE(low, high [, log]) or CANDIDATES(value, …), and items of
COLUMN that are CANDIDATES(item, …).

A space of few combinations of CANDIDATES is a grid, tried as a whole. Of any other, points are drawn by an additive
recurrence (Roberts 2018, "The unreasonable effectiveness of quasirandom sequences"), which covers the space evenly
whatever the number of points; the seed moves it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.syntax import ast

RANGE, CANDIDATES = "RANGE", "CANDIDATES"
DIGITS = 4  # significant digits of a drawn fraction
TURNS = 10  # drawn points for each wanted one: of small spaces, several are equal


@dataclass(frozen=True, slots=True)
class Dimension:
    """Attribute or item of COLUMN with the values that it may have: `candidates`, or numbers from `low` to `high`.

    whole: the numbers are integers. log: they are drawn evenly by their logarithm.
    """

    varied: ast.Attribute | ast.ColumnItem
    candidates: tuple[ast.Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False

    def coordinate(self, place: float) -> float | str:
        """Return what tells points apart: the place of a number, the candidate of a list."""
        return f"{int(place * len(self.candidates))}" if self.candidates else place

    def value(self, place: float) -> ast.Value:
        """Return the value at a place from 0 to 1, exclusive."""
        if self.candidates:
            return self.candidates[int(place * len(self.candidates))]
        if self.log:
            number = math.exp(math.log(self.low) + place * (math.log(self.high) - math.log(self.low)))
        else:
            number = self.low + place * (self.high - self.low)
        if self.whole:
            low, high = int(self.low), int(self.high)
            spread = low + int(place * (high - low + 1))
            return ast.Constant(min(high, max(low, round(number))) if self.log else spread, self.varied.span)
        rounded = float(f"{number:.{DIGITS}g}")
        return ast.Constant(min(self.high, max(self.low, rounded)), self.varied.span)


def is_searched(varied: ast.Attribute | ast.ColumnItem) -> bool:
    """Return True if the value is a set of values."""
    value = varied.value
    names = (RANGE, CANDIDATES) if isinstance(varied, ast.Attribute) else (CANDIDATES,)
    return isinstance(value, ast.Call) and value.function.upper() in names


def searched_items(statement: ast.Statement) -> list[ast.Attribute | ast.ColumnItem]:
    """Return the attributes and the items of COLUMN that have several values."""
    items = (item for clause in statement.columns for item in clause.items)
    candidates: list[ast.Attribute | ast.ColumnItem] = [*statement.attributes, *items]
    return list(filter(is_searched, candidates))


def dimensions(statement: ast.Statement, errors: list[SQLFlowError]) -> list[Dimension]:
    """Return the dimensions of a statement's space; add an error for each wrong one."""
    result = []
    for varied in searched_items(statement):
        try:
            result.append(_dimension(varied))
        except SQLFlowError as error:
            errors.append(error)
    return result


@dataclass(frozen=True, slots=True)
class SearchPoint:
    """Point of a search space: the value of each dimension, and its coordinate there."""

    values: tuple[ast.Value, ...]
    coordinates: tuple[float | str, ...]


def points(space: list[Dimension], trials: int, count: int, seed: int) -> Iterator[SearchPoint]:
    """Yield different points of the space, at most `count`, or the whole grid if it has at most `trials`.

    The first `trials` points are spread over the space, whatever their number.
    """
    places: Iterable[tuple[float, ...]]
    if (
        all(dimension.candidates for dimension in space)
        and math.prod(len(dimension.candidates) for dimension in space) <= trials
    ):
        places = itertools.product(*(_middles(len(dimension.candidates)) for dimension in space))
    else:
        moves = steps(len(space))
        turns = range(1, TURNS * count + 1)
        places = (tuple((0.5 + (seed + number) * step) % 1.0 for step in moves) for number in turns)
    seen: set[tuple[ast.Value, ...]] = set()
    for place in places:
        values = tuple(dimension.value(at) for dimension, at in zip(space, place, strict=True))
        if values not in seen and len(seen) < count:
            seen.add(values)
            yield SearchPoint(
                values, tuple(dimension.coordinate(at) for dimension, at in zip(space, place, strict=True))
            )


def _middles(count: int) -> list[float]:
    return [(number + 0.5) / count for number in range(count)]


def steps(count: int) -> list[float]:
    """Return the steps of the recurrence: powers of the inverse of the root of x^(count + 1) = x + 1."""
    root = 1.5
    for _ in range(64):
        root = (1 + root) ** (1 / (count + 1))
    return [root ** -(power + 1) for power in range(count)]


def _dimension(varied: ast.Attribute | ast.ColumnItem) -> Dimension:
    call = varied.value
    if not isinstance(call, ast.Call):
        raise TypeError("the value of a dimension is a call")
    if call.kwargs:
        raise _wrong_error(call, f"{call.function} takes no arguments by name")
    if call.function.upper() == CANDIDATES:
        if not call.args:
            raise _wrong_error(call, "CANDIDATES needs a value")
        return Dimension(varied, call.args)
    return _range(varied, call)


def _range(varied: ast.Attribute | ast.ColumnItem, call: ast.Call) -> Dimension:
    ends = [number.value for number in call.args[:2] if isinstance(number, ast.Constant)]
    numbers = [number for number in ends if isinstance(number, int | float) and not isinstance(number, bool)]
    if len(numbers) != 2 or len(call.args) > 3:
        raise _wrong_error(call, "RANGE needs two numbers")
    low, high = numbers
    log = _is_log(call)
    if not low < high:
        raise _wrong_error(call, f"RANGE from {low} to {high} is empty", "write the lower end first")
    if log and low <= 0:
        raise _wrong_error(call, f"RANGE from {low} has no logarithm", "begin above 0, or leave log out")
    whole = isinstance(low, int) and isinstance(high, int)
    return Dimension(varied, low=float(low), high=float(high), whole=whole, log=log)


def _is_log(call: ast.Call) -> bool:
    if len(call.args) < 3:
        return False
    scale = call.args[2]
    word = scale.text if isinstance(scale, ast.Name) else ""
    if word.casefold() != "log":
        raise SemanticError(
            f"RANGE has no scale {word or 'of that kind'}",
            span=scale.span,
            hint="write RANGE(8, 128, log)",
        )
    return True


def _wrong_error(call: ast.Call, message: str, hint: str = "") -> SemanticError:
    return SemanticError(
        message, span=call.span, hint=hint or "write RANGE(8, 128, log) or CANDIDATES(8, 32, 128)"
    )
