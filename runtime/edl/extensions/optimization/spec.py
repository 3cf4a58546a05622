"""Optimization problem as data: the objective, the constraints and the domain of the variables, over rows of a query.

There is one variable for each row. Expressions are trees of typed nodes; nothing of them is ever evaluated as code.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.spec.job import Query

Direction = Literal["maximize", "minimize"]


class Number(msgspec.Struct, frozen=True, tag="number"):
    """Constant."""

    value: float


class Column(msgspec.Struct, frozen=True, tag="column"):
    """Value of a column in each row."""

    name: str


class Variable(msgspec.Struct, frozen=True, tag="variable"):
    """Variable of each row."""


class Arithmetic(msgspec.Struct, frozen=True, tag="arithmetic"):
    """Operation on two terms. Of a product one side has no variable, of the others but sums neither has one."""

    operator: Literal["+", "*", "/", "%", "^"]
    left: Term
    right: Term


class Total(msgspec.Struct, frozen=True, tag="total"):
    """Aggregate over the rows of a group. MIN and MAX are of terms without a variable."""

    function: Literal["SUM", "AVG", "MIN", "MAX"]
    term: Term


Term = Number | Column | Variable | Arithmetic | Total


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Linear condition `term operator 0`, for each row, or, if `per_group`, for each value of the column `group`.

    `text` is as written. A group "" is all rows.
    """

    text: str
    term: Term
    operator: Literal["<=", ">=", "="]
    per_group: bool
    group: str = ""


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values that a variable may have; a bound None is infinite."""

    name: str
    lower: float | None
    upper: float | None
    whole: bool


class Optimization(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Statement MAXIMIZE or MINIMIZE.

    keys: columns that name a row in the result. value: column of the result with the values of the variables. columns:
    columns with numbers that the terms use. time_limit: in seconds, or None. target: table, or "" for a result set.
    """

    statement: str
    query: Query
    direction: Direction
    objective: Term
    conditions: tuple[Condition, ...]
    domain: Domain
    variable: str
    keys: tuple[str, ...]
    value: str
    columns: tuple[str, ...]
    time_limit: float | None = None
    target: str = ""

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Columns of the query that solving it reads, each once."""
        groups = (condition.group for condition in self.conditions if condition.group)
        return tuple(dict.fromkeys((*self.keys, *self.columns, *groups)))
