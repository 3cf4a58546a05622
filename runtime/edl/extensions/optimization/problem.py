"""Problem as a sparse matrix, built from whole columns without a loop over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from edl.arrays import Array
from edl.errors import JobError
from edl.extensions.optimization.linear import Groups, LinearForm, TermEvaluation, group_rows, numbers
from edl.extensions.optimization.spec import Condition, Optimization


@dataclass(frozen=True, slots=True)
class ConstraintBlock:
    """Constraints of one condition: one per row, or one per group. `starts` has one more entry than constraints.

    lower, upper: bounds, (constraints,). indices: variables, values: their coefficients, row after row.
    """

    condition: Condition
    groups: Groups | None
    lower: Array
    upper: Array
    starts: Array
    indices: Array
    values: Array

    @property
    def count(self) -> int:
        return len(self.lower)

    def name(self, rows: pa.Table, constraint: int, keys: tuple[str, ...]) -> str:
        """Return the text of the condition, with the group or row of one of its constraints."""
        if self.groups is None:
            return f"{self.condition.text} for {name_row(rows, constraint, keys)}"
        if not self.groups.column:
            return self.condition.text
        return f"{self.condition.text} for {name_row(rows, int(self.groups.first[constraint]), (self.groups.column,))}"


@dataclass(frozen=True, slots=True)
class LinearProblem:
    """Minimize or maximize `cost @ x + offset` under the blocks. cost: (rows,)."""

    spec: Optimization
    rows: pa.Table
    cost: Array
    offset: float
    blocks: tuple[ConstraintBlock, ...]

    @property
    def constraints(self) -> int:
        return sum(block.count for block in self.blocks)


def build(spec: Optimization, rows: pa.Table) -> LinearProblem:
    """Return the problem of these rows, which have the columns `spec.needed`. Raises JobError for unusable values."""
    if not rows.num_rows:
        raise JobError("the query has no rows, so there is nothing to decide")
    columns = {name: numbers(rows, name) for name in spec.columns}
    everything = group_rows(rows, "")
    form = TermEvaluation(rows, columns, everything, "the objective").form(spec.objective)
    cost = np.zeros(rows.num_rows) if form.coefficients is None else form.coefficients
    blocks = []
    for condition in spec.conditions:
        groups = group_rows(rows, condition.group) if condition.per_group else everything
        blocks.append(
            _block(
                condition, TermEvaluation(rows, columns, groups, condition.text).form(condition.term), groups
            )
        )
    return LinearProblem(spec, rows, cost, float(form.constant.sum()), tuple(blocks))


def name_row(rows: pa.Table, row: int, columns: tuple[str, ...]) -> str:
    """Return the values of a row that name it: `plant = a, market = b`."""
    return ", ".join(f"{column} = {rows[column][row]}" for column in columns)


def _block(condition: Condition, form: LinearForm, groups: Groups) -> ConstraintBlock:
    coefficients = form.coefficients
    if coefficients is None:
        raise RuntimeError("the compiler demands a variable")
    index = groups.index if condition.per_group else np.arange(len(coefficients))
    count = groups.count if condition.per_group else len(coefficients)
    used = np.flatnonzero(coefficients)
    order = used[np.argsort(index[used], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(index[order], minlength=count))))
    bound = np.broadcast_to(0.0 - form.constant, (count,)).astype(np.float64)
    lower = bound if condition.operator in (">=", "=") else np.full(count, -np.inf)
    upper = bound if condition.operator in ("<=", "=") else np.full(count, np.inf)
    return ConstraintBlock(
        condition, groups if condition.per_group else None, lower, upper, starts, order, coefficients[order]
    )
