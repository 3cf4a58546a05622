"""Exact principal components of rows that arrive in blocks, in one pass and in bounded memory.

Of each block only the factor R of a QR decomposition is kept (`edl.frameworks.least_squares`). Behind its column of
ones, R is the factor of the rows less their means, and its singular vectors are the rows': no covariances are added
up, which would lose half of the digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edl.arrays import Array
from edl.errors import JobError
from edl.frameworks.adapter import Adapter, Floats, Minibatches
from edl.frameworks.least_squares import RowFactor
from edl.frameworks.solvers import Solver, SolvingAdapter, read_state
from edl.program import Program
from edl.spec.extra_outputs import EMBEDDING

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ExactComponents(Solver):
    """Solver of `PrincipalComponents`. explained_variance_ratio: share of the variance that is enough; None for all."""

    explained_variance_ratio: float | None = None

    def wrap(self, adapter: Adapter, program: Program) -> Adapter:
        return ComponentsAdapter(adapter, self.explained_variance_ratio)


class Components(NamedTuple):
    """Means (width,), components (number, width) of length 1, their variances (number,), and the variance of all."""

    means: Doubles
    components: Doubles
    variances: Doubles
    total: float

    def count(self, ratio: float | None) -> int:
        """Return the number of components that explain the share of the variance."""
        if ratio is None or not self.total:
            return len(self.variances)
        explained = np.cumsum(self.variances) / self.total
        return min(len(self.variances), int(np.searchsorted(explained, ratio - 1e-12)) + 1)


def solve_components(factor: Doubles, number: int) -> Components:
    """Return the components of the rows of a `RowFactor`. Of each the first of the largest coordinates is positive."""
    inputs = factor[1:, 1:-1]
    rows = float(factor[0, 0] ** 2)
    means = factor[0, 1:-1] / factor[0, 0]
    _, values, vectors = np.linalg.svd(inputs, full_matrices=False)
    vectors = vectors[:number]
    sizes = np.abs(vectors)
    largest = (sizes >= sizes.max(axis=1, keepdims=True) * (1 - 1e-9)).argmax(axis=1)
    signs = np.where(vectors[np.arange(len(vectors)), largest] < 0, -1.0, 1.0)
    variances = values**2 / max(1.0, rows - 1)
    return Components(means, vectors * signs[:, None], variances[:number], float(variances.sum()))


class ComponentsAdapter(SolvingAdapter):
    """Adapter of principal components; `train` adds rows to the factor."""

    def __init__(self, adapter: Adapter, ratio: float | None) -> None:
        super().__init__(adapter)
        weights = adapter.get_weights()
        try:
            [self._of_components] = [name for name in weights if name.endswith("components.weight")]
        except ValueError:
            raise JobError(
                "ExactComponents solves for PrincipalComponents, and the model has none",
                hint="use another optimizer, such as Adam",
            ) from None
        self._prefix = self._of_components.removesuffix("components.weight")
        self._number, width = weights[self._of_components].shape
        self._rows, self._ratio = RowFactor(width), ratio
        self._is_solved = True
        self._squares = 0.0

    def train(self, rows: Minibatches) -> Floats:
        """Add the rows; return the growth of the squared errors per row, whose mean is the error that is left."""
        _, extra = self._adapter.predict_with(rows.features, (EMBEDDING,))
        inputs = extra[EMBEDDING]
        self._rows.add(inputs, np.zeros(len(inputs)), rows.weights)
        self._is_solved = False
        before, self._squares = self._squares, self._compute_squares()
        return np.full(rows.steps, (self._squares - before) / len(inputs), np.float32)

    def _compute_squares(self) -> float:
        """Return the squared errors of all rows, as means over their inputs."""
        components = self._components()
        left = max(0.0, components.total - float(components.variances[: components.count(self._ratio)].sum()))
        rows = float(self._rows.factor[0, 0] ** 2)
        return left * max(1.0, rows - 1) / max(1, len(components.means))

    def _components(self) -> Components:
        return solve_components(self._rows.factor, self._number)

    def _solve(self) -> Mapping[str, Array] | None:
        if self._is_solved or not self._rows.factor[0, 0]:
            return None
        self._is_solved = True
        components = self._components()
        kept = components.count(self._ratio)
        components = components._replace(
            components=np.where(np.arange(self._number)[:, None] < kept, components.components, 0.0)
        )
        values = {
            "components.weight": components.components,
            "means": components.means,
            "variances": components.variances,
            "total": np.array([components.total]),
            "kept": np.array([kept]),
        }
        return {f"{self._prefix}{name}": array for name, array in values.items()}

    def _forget(self) -> None:
        self._is_solved = True

    def get_state(self) -> dict[str, Array]:
        return {"components.factor": self._rows.factor.copy(), "components.rows": np.array(self._rows.rows)}

    def set_state(self, state: Mapping[str, Array]) -> None:
        factor, rows = read_state(state, "components.factor", "components.rows")
        if factor.shape != self._rows.factor.shape:
            raise JobError(f"the optimizer's state does not fit: it is of {len(factor) - 2} inputs")
        self._rows.factor, self._rows.rows = np.array(factor), int(rows)
        self._is_solved = not self._rows.rows
        self._squares = self._compute_squares() if self._rows.factor[0, 0] else 0.0
