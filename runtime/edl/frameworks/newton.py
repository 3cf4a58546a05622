"""Linear model of classes whose weights are solved for, not stepped to: penalised logistic regression.

The sum of the weighted log losses and a ridge penalty is convex. Newton's method with a backtracking line search finds
its minimum in some ten passes over the inputs (Boyd and Vandenberghe, "Convex Optimization", 9.5), which are kept in
memory as float32. Of two classes the model has one logit; of more it has one each, and all of them are penalised, as in
scikit-learn.
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
from edl.frameworks.least_squares import LinearSolution, fill_unseen
from edl.frameworks.solvers import Solver, SolvingAdapter, find_linear_layer, read_state
from edl.program import Program
from edl.spec import BLOCK
from edl.spec.extra_outputs import EMBEDDING

Doubles = npt.NDArray[np.float64]

MOST_ITERATIONS = 100
_CLOSE = 1e-14  # decrease to expect of a step, as a share of the loss, below which the minimum is reached
_SUFFICIENT = 1e-4  # share of the expected decrease that a step must reach
_SHORTEST = 2.0**-30  # step of the line search
_DEPENDENT = 1e-11  # curvature, relative to the largest, of a direction that changes no prediction


@dataclass(frozen=True)
class Newton(Solver):
    """Solver of a linear model of classes. l2: penalty as of `LogisticRows`."""

    l2: float | None = None

    def wrap(self, adapter: Adapter, program: Program) -> Adapter:
        return NewtonAdapter(adapter, program, self.l2)


class _LabelledRows(NamedTuple):
    """Rows: inputs (n, p) float32, the numbers of their classes (n,), their weights (n,) float64."""

    inputs: npt.NDArray[np.float32]
    classes: npt.NDArray[np.int64]
    weights: Doubles


class _Curvature(NamedTuple):
    """Loss at a point, its gradient (d,) and its second derivatives (d, d), penalty included."""

    loss: float
    gradient: Doubles
    hessian: Doubles


class LogisticRows:
    """Rows so far, and the minimum of their loss: the point (logits, inputs + 1) with the biases in the last column.

    l2: penalty for the mean of the weighted log losses, of the squared weights without the biases. None: half the
    squared weights beside the sum of the log losses, scikit-learn's default of C = 1.
    """

    def __init__(self, inputs: int, logits: int, l2: float | None = None) -> None:
        self.shape = (logits, inputs + 1)
        self._blocks: list[_LabelledRows] = []
        self._l2 = l2

    @property
    def rows(self) -> int:
        return sum(len(block.classes) for block in self._blocks)

    def add(self, inputs: Array, classes: Array, weights: Array) -> None:
        """Add rows: inputs (n, p), numbers of classes (n,) and row weights (n,)."""
        copied = np.array(inputs, np.float32), np.array(classes, np.int64), np.array(weights, np.float64)
        self._blocks.append(_LabelledRows(*copied))

    def join(self) -> _LabelledRows:
        """Return all rows as one block."""
        if len(self._blocks) != 1:
            empty = _LabelledRows(
                np.empty((0, self.shape[1] - 1), np.float32), np.empty(0, np.int64), np.empty(0)
            )
            parts = [np.concatenate(part) for part in zip(empty, *self._blocks, strict=True)]
            self._blocks = [_LabelledRows(*parts)]
        return self._blocks[0]

    def clear(self) -> None:
        self._blocks = []

    def counts(self) -> Doubles:
        """Return the weighted sum of each input over the rows, (p,); of a category, the number of its rows."""
        total = np.zeros(self.shape[1] - 1)
        for block in self._slices():
            total += block.weights @ block.inputs.astype(np.float64)
        return total

    def _slices(self) -> Iterator[_LabelledRows]:
        """Yield the rows in blocks of one size, so that sums do not depend on the blocks in which rows came."""
        whole = self.join()
        for first in range(0, len(whole.classes), BLOCK):
            some = slice(first, first + BLOCK)
            yield _LabelledRows(whole.inputs[some], whole.classes[some], whole.weights[some])

    def solve(self) -> tuple[Doubles, float]:
        """Return the minimum and its mean weighted log loss, without the penalty."""
        point = np.zeros(self.shape)
        total = float(self.join().weights.sum())
        if not total:
            return point, 0.0
        penalties = np.full(self.shape, 1.0 if self._l2 is None else 2 * self._l2 * total)
        penalties[:, -1] = 0.0
        for _ in range(MOST_ITERATIONS):
            here = self._differentiate(point, penalties)
            step = _newton_step(here).reshape(self.shape)
            decrease = float(here.gradient @ step.reshape(-1))
            if decrease <= _CLOSE * here.loss:
                break
            length = self._search(point, step, here, decrease, penalties)
            if not length:
                break
            point = point - length * step
        return point, self._loss(point, np.zeros(self.shape)) / total

    def _search(
        self, point: Doubles, step: Doubles, here: _Curvature, decrease: float, penalties: Doubles
    ) -> float:
        """Return the length of the step by which the loss falls enough, halved until it does; 0 if none is."""
        length = 1.0
        while length >= _SHORTEST:
            if self._loss(point - length * step, penalties) <= here.loss - _SUFFICIENT * length * decrease:
                return length
            length /= 2
        return 0.0

    def _loss(self, point: Doubles, penalties: Doubles) -> float:
        losses = (float(block.weights @ losses) for block, _, losses, _ in self._evaluate(point))
        return sum(losses) + float(np.sum(penalties * point**2)) / 2

    def _differentiate(self, point: Doubles, penalties: Doubles) -> _Curvature:
        logits, width = self.shape
        loss, gradient = float(np.sum(penalties * point**2)) / 2, penalties * point
        hessian = np.diag(penalties.reshape(-1))
        for block, rows, losses, shares in self._evaluate(point):
            loss += float(block.weights @ losses)
            gradient += ((shares - _hits(block.classes, logits)) * block.weights[:, np.newaxis]).T @ rows
            # The derivatives of shares are diag(shares) - shares shares', at each pair of inputs.
            weighted = shares * block.weights[:, np.newaxis]
            if logits == 1:
                weighted *= 1 - shares
            else:
                products = (shares[:, :, np.newaxis] * rows[:, np.newaxis, :]).reshape(len(rows), -1)
                hessian -= (products * block.weights[:, np.newaxis]).T @ products
            for number in range(logits):
                some = slice(number * width, (number + 1) * width)
                hessian[some, some] += (rows * weighted[:, number : number + 1]).T @ rows
        return _Curvature(loss, gradient.reshape(-1), hessian)

    def _evaluate(self, point: Doubles) -> Iterator[tuple[_LabelledRows, Doubles, Doubles, Doubles]]:
        """Yield blocks with their inputs and a column of ones, their log losses (n,), and probabilities (n, logits)."""
        for block in self._slices():
            rows = np.column_stack([block.inputs, np.ones(len(block.classes))]).astype(np.float64, copy=False)
            logits = rows @ point.T
            if self.shape[0] == 1:
                losses = np.logaddexp(0.0, np.where(block.classes == 1, -logits[:, 0], logits[:, 0]))
                yield block, rows, losses, np.exp(-np.logaddexp(0.0, -logits))
                continue
            largest = logits.max(axis=1, keepdims=True)
            exponentials = np.exp(logits - largest)
            sums = exponentials.sum(axis=1, keepdims=True)
            true = np.take_along_axis(logits, block.classes[:, np.newaxis], axis=1)
            yield block, rows, (largest + np.log(sums) - true)[:, 0], exponentials / sums


def _hits(classes: npt.NDArray[np.int64], logits: int) -> Doubles:
    """Return 1 for the class of each row, (n, logits)."""
    numbers = np.ones(1, np.int64) if logits == 1 else np.arange(logits)
    hits: Doubles = (classes[:, np.newaxis] == numbers).astype(np.float64)
    return hits


def _newton_step(here: _Curvature) -> Doubles:
    """Return the step of Newton's method, of the smallest length where several lead to the same predictions."""
    scale = np.sqrt(np.maximum(np.diag(here.hessian), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(here.hessian / scale / scale[:, np.newaxis])
    curved = values > _DEPENDENT * values.max(initial=0.0)
    along = vectors.T @ (here.gradient / scale)
    step: Doubles = vectors[:, curved] @ (along[curved] / values[curved]) / scale
    return step


class NewtonAdapter(SolvingAdapter):
    """Adapter of a linear model of classes; `train` keeps rows."""

    def __init__(self, adapter: Adapter, program: Program, l2: float | None) -> None:
        super().__init__(adapter)
        self._features = getattr(program.module, "FEATURES", None)
        weights = adapter.get_weights()
        self._names = find_linear_layer(weights, "Newton")
        of_inputs, of_bias = (weights[name] for name in self._names)
        logits = of_bias.size
        self._has_class_rows = of_inputs.shape[0] == logits and adapter.framework == "torch"
        self._rows = LogisticRows(of_inputs.size // logits, logits, l2)
        of_classes = program.spec.loss.params.get("class_weights")
        self._class_weights = np.array(of_classes if isinstance(of_classes, tuple | list) else [], np.float64)
        self._wanted = program.spec.rows.training
        self._solution: tuple[Doubles, float] | None = None
        self._is_set = True  # the model has the solution

    def train(self, rows: Minibatches) -> Floats:
        """Keep the rows; return 0, and with the last rows what makes the mean of all the final loss."""
        _, extra = self._adapter.predict_with(rows.features, (EMBEDDING,))
        classes = rows.labels.reshape(-1).astype(np.int64)
        weights = np.ones(len(classes)) if rows.weights is None else np.asarray(rows.weights, np.float64)
        if self._class_weights.size:
            weights = weights * self._class_weights[classes]
        self._rows.add(extra[EMBEDDING], classes, weights)
        self._solution, self._is_set = None, False
        count = self._rows.rows
        loss = self._solve_rows()[1] * count / len(classes) if count == self._wanted else 0.0
        return np.full(rows.steps, loss, np.float32)

    def _solve_rows(self) -> tuple[Doubles, float]:
        self._solution = self._solution or self._rows.solve()
        return self._solution

    def _solve(self) -> Mapping[str, Array] | None:
        if self._is_set:
            return None
        self._is_set = True
        point, _ = self._solve_rows()
        solutions = [LinearSolution(row[:-1], float(row[-1]), 0.0) for row in point]
        if isinstance(self._features, FeatureColumns):
            counts = self._rows.counts()
            solutions = [fill_unseen(solution, counts, self._features) for solution in solutions]
        of_inputs = np.stack([solution.weights for solution in solutions])
        biases = np.array([solution.bias for solution in solutions])
        return {self._names[0]: of_inputs if self._has_class_rows else of_inputs.T, self._names[1]: biases}

    def _forget(self) -> None:
        self._is_set = True

    def get_state(self) -> dict[str, Array]:
        return {f"newton.{name}": part for name, part in self._rows.join()._asdict().items()}

    def set_state(self, state: Mapping[str, Array]) -> None:
        inputs, classes, weights = read_state(state, *(f"newton.{name}" for name in _LabelledRows._fields))
        if inputs.shape[1] != self._rows.shape[1] - 1:
            raise JobError(f"the optimizer's state does not fit: it is of {inputs.shape[1]} inputs")
        self._rows.clear()
        self._rows.add(inputs, classes, weights)
        self._solution, self._is_set = None, not len(classes)
