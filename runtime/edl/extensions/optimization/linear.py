"""Linear forms over the variables of rows: terms evaluated on whole columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.arrays import Array
from edl.errors import JobError
from edl.extensions.optimization.spec import Arithmetic, Column, Number, Term, Total, Variable


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of rows. index: group of each row, (rows,). first: a row of each group, (groups,)."""

    column: str
    index: Array
    first: Array

    @property
    def count(self) -> int:
        return len(self.first)

    @property
    def sizes(self) -> Array:
        """Number of rows of each group, (groups,)."""
        return np.bincount(self.index, minlength=self.count)


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Sum of coefficient times variable of each row, and a constant.

    coefficients: (rows,), or None without a variable. constant: (rows,), or (groups,) of a total, or () of both.
    """

    coefficients: Array | None
    constant: Array
    total: bool = False


def group_rows(rows: pa.Table, column: str) -> Groups:
    """Return the groups of equal values of a column, NULL among them; all rows are one group for the column ""."""
    if not column:
        return Groups("", np.zeros(rows.num_rows, np.int64), np.zeros(min(1, rows.num_rows), np.int64))
    values = rows[column].combine_chunks()
    index = pc.dictionary_encode(values, null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(index, return_index=True)
    return Groups(column, index.astype(np.int64), first)


def numbers(rows: pa.Table, column: str) -> Array:
    """Return a column as (rows,) of float64. Raises JobError for NULL, NaN and infinity, with the row."""
    values = rows[column]
    as_integers = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
    result: Array = as_integers.cast(pa.float64(), safe=False).to_numpy()
    missing = np.flatnonzero(~np.isfinite(result))
    if missing.size:
        value = "NULL" if not values[int(missing[0])].is_valid else str(values[int(missing[0])])
        raise JobError(
            f"{column} is {value} in row {missing[0] + 1} of the query",
            hint="leave such rows out, or use COALESCE",
        )
    return result


class TermEvaluation:
    """Evaluation of terms for one grouping. columns: the numbers of each column, (rows,)."""

    def __init__(self, rows: pa.Table, columns: dict[str, Array], groups: Groups, text: str) -> None:
        self._rows = rows
        self._columns = columns
        self._groups = groups
        self._text = text

    def form(self, term: Term) -> LinearForm:
        """Return the linear form of a term. Raises JobError for a division by zero and the like."""
        match term:
            case Number():
                return LinearForm(None, np.asarray(term.value))
            case Column():
                return LinearForm(None, self._columns[term.name])
            case Variable():
                return LinearForm(np.ones(self._rows.num_rows), np.asarray(0.0))
            case Total():
                return self._total(term)
            case Arithmetic():
                return self._arithmetic(term)

    def _total(self, term: Total) -> LinearForm:
        of, groups = self.form(term.term), self._groups
        constant = np.broadcast_to(of.constant, groups.index.shape)
        if term.function in ("MIN", "MAX"):
            order = np.full(groups.count, np.inf if term.function == "MIN" else -np.inf)
            (np.minimum if term.function == "MIN" else np.maximum).at(order, groups.index, constant)
            return LinearForm(None, order, total=True)
        sums = np.bincount(groups.index, constant, minlength=groups.count)
        if term.function == "SUM":
            return LinearForm(of.coefficients, sums, total=True)
        coefficients = None if of.coefficients is None else of.coefficients / groups.sizes[groups.index]
        return LinearForm(coefficients, sums / groups.sizes, total=True)

    def _arithmetic(self, term: Arithmetic) -> LinearForm:
        left, right = self.form(term.left), self.form(term.right)
        if left.total or right.total:
            left, right = self._of_groups(left), self._of_groups(right)
        total = left.total or right.total
        if term.operator == "+":
            return LinearForm(
                _add_arrays(left.coefficients, right.coefficients), left.constant + right.constant, total
            )
        if right.coefficients is not None:
            left, right = right, left  # of a product
        with np.errstate(all="ignore"):
            scaled = _OPERATIONS[term.operator](left.constant, right.constant)
            coefficients = left.coefficients
            if coefficients is not None:
                factor = (
                    right.constant[self._groups.index] if total and right.constant.ndim else right.constant
                )
                coefficients = _OPERATIONS[term.operator](coefficients, factor)
        if not np.isfinite(scaled).all() or not (coefficients is None or np.isfinite(coefficients).all()):
            raise JobError(
                f"{self._text} has no number in some row: a division by zero, or a number too large",
                hint="leave such rows out, or compute the value in the SELECT",
            )
        return LinearForm(coefficients, scaled, total)

    def _of_groups(self, form: LinearForm) -> LinearForm:
        """Return the form with one constant per group. Raises JobError if a group has several values."""
        if form.total or not form.constant.ndim:
            return form
        values, groups = form.constant, self._groups
        first = values[groups.first]
        other = np.flatnonzero(values != first[groups.index])
        if other.size:
            where = ""
            if groups.column:
                where = f" with {groups.column} = {self._rows[groups.column][int(other[0])]}"
            raise JobError(
                f"a column beside the aggregate in {self._text} has several values in the rows{where}",
                hint="write MIN(…) or MAX(…) around the column, or GROUP BY another one",
            )
        return LinearForm(None, first, total=True)


def _add_arrays(left: Array | None, right: Array | None) -> Array | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


_OPERATIONS = {"*": np.multiply, "/": np.divide, "%": np.fmod, "^": np.power}
