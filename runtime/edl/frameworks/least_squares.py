"""Linear model of one number whose weights are solved for, not stepped to: least squares, or ridge regression.

Rows arrive in blocks, as for any training. Of each block only the factor R of a QR decomposition is kept, which is
combined with the factor of the rows before (Golub and Van Loan, "Matrix Computations", 5.3): the memory is that of the
squared number of inputs, whatever the number of rows, and the precision is that of a decomposition of all rows at
once, where sums of products would lose half of the digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edl.arrays import Array
from edl.errors import JobError
from edl.features import Features as FeatureColumns
from edl.frameworks.adapter import Adapter, Floats, Minibatches
from edl.frameworks.solvers import Solver, SolvingAdapter, find_linear_layer, read_state
from edl.program import Program
from edl.spec.extra_outputs import EMBEDDING

Doubles = npt.NDArray[np.float64]

# Without a written penalty there is none, as in the textbook, for so few inputs or so many rows for each of them;
# otherwise the rows choose one.
FEW_INPUTS, MANY_ROWS = 20, 10
# Singular value below which columns of the length 1 depend on each other: features are rounded to float32, with errors
# of 6e-8.
_DEPENDENT = 1e-6
# Share of all rows of a category above which an id has rows: its count is a sum with rounding errors.
_LEAST_SHARE = 1e-10
_PENALTIES = 10.0 ** np.arange(-8, 2.01, 0.25)  # mean squares of a standardised input are 1


@dataclass(frozen=True)
class LeastSquares(Solver):
    """Solver of a linear model of one number. l2: penalty as of `RowFactor`."""

    l2: float | None = None

    def wrap(self, adapter: Adapter, program: Program) -> Adapter:
        return LeastSquaresAdapter(adapter, program, self.l2)


class LinearSolution(NamedTuple):
    """Weights (p,) and bias for the label in units of its deviation, and their sum of squared residuals."""

    weights: Doubles
    bias: float
    residual: float


class RowFactor:
    """Factor R of the rows so far: of a column of ones, the inputs and the label, float64 (p + 2, p + 2).

    l2: penalty for the mean of the squared residuals, of the squared weights without the bias. None: no penalty; with
    fewer rows than inputs, or with more than FEW_INPUTS and fewer than MANY_ROWS rows for each, the one of the least
    generalised cross-validation (Golub, Heath and Wahba, 1979).
    """

    def __init__(self, inputs: int, l2: float | None = None) -> None:
        self.factor: Doubles = np.zeros((inputs + 2, inputs + 2))
        self.rows = 0  # also those of no weight
        self._l2 = l2

    def add(self, inputs: Array, labels: Array, weights: Array | None = None) -> None:
        """Add rows: inputs (n, p), labels (n,) and row weights (n,)."""
        rows = np.column_stack([np.ones(len(inputs)), inputs, labels]).astype(np.float64)
        if weights is not None:
            rows *= np.sqrt(np.asarray(weights, np.float64))[:, None]
        self.factor = _triangle(np.concatenate([self.factor, rows]))
        self.rows += len(inputs)

    def counts(self) -> Doubles:
        """Return the weighted sum of each input over the rows, (p,); of a category, the number of its rows."""
        sums: Doubles = self.factor[0, 0] * self.factor[0, 1:-1]
        return sums

    def solve(self) -> LinearSolution:
        """Return the weights of least squares; inputs that depend on each other share them."""
        factor = self.factor
        if not factor[0, 0]:
            return LinearSolution(np.zeros(factor.shape[1] - 2), 0.0, 0.0)
        # Behind the column of ones the factor is that of the inputs less their means.
        inputs, label = factor[1:, 1:-1], factor[1:, -1]
        if self._l2 is None and self._has_few_rows:
            weights = _cross_validate(inputs, label, self.rows)
        else:
            weights = _solve_triangle(inputs, label, (self._l2 or 0.0) * self.rows)
        bias = float((factor[0, -1] - factor[0, 1:-1] @ weights) / factor[0, 0])
        return LinearSolution(weights, bias, float(np.sum((label - inputs @ weights) ** 2)))

    @property
    def _has_few_rows(self) -> bool:
        inputs = len(self.factor) - 2
        return self.rows <= inputs + 1 or (inputs > FEW_INPUTS and self.rows < MANY_ROWS * inputs)


def _triangle(rows: Doubles) -> Doubles:
    """Return the factor R of a QR decomposition."""
    factor: Doubles = np.asarray(np.linalg.qr(rows, mode="r"))
    return factor


def _solve_triangle(inputs: Doubles, label: Doubles, penalty: float) -> Doubles:
    """Return the weights of the least squared residuals and penalty, and of several such weights the smallest.

    They are compared for inputs of the same length, so the unit of an input does not matter. Weights that the rows
    do not determine decide the predictions of values that no row has, such as the next month.
    """
    weights = np.zeros(inputs.shape[1])
    if penalty:
        inputs = np.concatenate([inputs, np.sqrt(penalty) * np.eye(len(weights))])
        label = np.concatenate([label, weights])
    lengths = np.linalg.norm(inputs, axis=0)
    has_length = lengths > np.finfo(np.float32).tiny
    lengths = lengths[has_length]
    factor = _triangle(np.column_stack([inputs[:, has_length] / lengths, label]))[: len(lengths)]
    left, values, right = np.linalg.svd(factor[:, :-1], full_matrices=False)
    independent = values > _DEPENDENT
    along = (left.T @ factor[:, -1])[independent] / values[independent]
    weights[has_length] = right[independent].T @ along / lengths
    return weights


def _cross_validate(inputs: Doubles, label: Doubles, rows: int) -> Doubles:
    """Return the weights with the penalty of the least generalised cross-validation, or without one."""
    left, values, right = np.linalg.svd(inputs, full_matrices=False)
    along = left.T @ label
    rest = max(0.0, float(label @ label - along @ along))
    independent = values > _DEPENDENT * values.max(initial=0.0)
    filters = [independent.astype(np.float64)]
    filters += [values**2 / (values**2 + penalty * rows) for penalty in _PENALTIES]
    scores = [
        (rest + float(np.sum(((1 - kept) * along) ** 2))) / free**2
        if (free := rows - 1 - kept.sum()) > 0
        else np.inf
        for kept in filters
    ]
    best = filters[int(np.argmin(scores))]
    shares = np.divide(best, values, out=np.zeros_like(values), where=values > 0)
    weights: Doubles = right.T @ (shares * along)
    return weights


@dataclass(frozen=True)
class _CategoryInputs:
    """Inputs [first, first + size) of the known ids of a category, and `every`, of NULL and unseen values too.

    one: each row has exactly one of them.
    """

    first: int
    size: int
    every: int
    one: bool


def _list_ids(features: FeatureColumns) -> Iterator[_CategoryInputs]:
    """Yield the places of the categories among the inputs."""
    first = 0
    for entry in features.entries:
        if entry.kind in ("category", "list"):
            yield _CategoryInputs(first, entry.category.size, entry.width, entry.kind == "category")
        first += entry.width


def fill_unseen(solution: LinearSolution, counts: Doubles, features: FeatureColumns) -> LinearSolution:
    """Give ids without rows the mean effect of the known ones, which becomes 0 where each row has one id.

    counts: rows of each input (p,).
    """
    weights, bias = solution.weights.copy(), solution.bias
    for ids in _list_ids(features):
        known, every = slice(ids.first, ids.first + ids.size), slice(ids.first, ids.first + ids.every)
        has_rows = counts > _LEAST_SHARE * counts[every].sum()
        of_known = np.where(has_rows[known], counts[known], 0.0)
        mean = float(of_known @ weights[known] / of_known.sum()) if of_known.any() else 0.0
        weights[every] = np.where(has_rows[every], weights[every], mean)
        if ids.one:
            weights[every] -= mean
            bias += mean
    return LinearSolution(weights, bias, solution.residual)


class LeastSquaresAdapter(SolvingAdapter):
    """Adapter of a linear model; `train` adds rows to its factor."""

    def __init__(self, adapter: Adapter, program: Program, l2: float | None) -> None:
        super().__init__(adapter)
        self._label = program.spec.label
        self._features = getattr(program.module, "FEATURES", None)
        self._names = find_linear_layer(adapter.get_weights(), "LeastSquares", one_output=True)
        self._rows = RowFactor(adapter.get_weights()[self._names[0]].size, l2)
        self._residual = 0.0
        self._solution: LinearSolution | None = None  # which the model has not got yet

    def train(self, rows: Minibatches) -> Floats:
        """Add the rows; return the growth of the squared residuals for each of them, whose mean is the final loss."""
        _, extra = self._adapter.predict_with(rows.features, (EMBEDDING,))
        mean, deviation = self._label.mean, self._label.std or 1.0
        labels = (rows.labels[:, 0].astype(np.float64) - mean) / deviation
        self._rows.add(extra[EMBEDDING], labels, rows.weights)
        self._solution = self._rows.solve()
        before, self._residual = self._residual, self._solution.residual
        return np.full(rows.steps, (self._residual - before) / len(labels), np.float32)

    def _solve(self) -> Mapping[str, Array] | None:
        if self._solution is None:
            return None
        solution, self._solution = self._solution, None
        if isinstance(self._features, FeatureColumns):
            solution = fill_unseen(solution, self._rows.counts(), self._features)
        of_inputs, of_bias = self._names
        return {of_inputs: solution.weights, of_bias: np.array([solution.bias])}

    def _forget(self) -> None:
        self._solution = None

    def get_state(self) -> dict[str, Array]:
        return {
            "least_squares.factor": self._rows.factor.copy(),
            "least_squares.rows": np.array(self._rows.rows),
        }

    def set_state(self, state: Mapping[str, Array]) -> None:
        factor, rows = read_state(state, "least_squares.factor", "least_squares.rows")
        if factor.shape != self._rows.factor.shape:
            raise JobError(f"the optimizer's state does not fit: it is of {len(factor) - 2} inputs")
        self._rows.factor, self._rows.rows = np.array(factor), int(rows)
        self._solution = self._rows.solve() if self._rows.rows else None
        self._residual = self._solution.residual if self._solution is not None else 0.0
