"""Solver of the factors of users and items: alternating least squares over all ratings.

The ratings of the training rows are kept in memory, in 12 bytes each; a solution sorts them twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edl.arrays import Array
from edl.errors import JobError
from edl.extensions.decomposition.rating_matrix import Factors, FactorSettings, factorize
from edl.frameworks.adapter import Adapter, Floats, Minibatches
from edl.frameworks.solvers import Solver, SolvingAdapter, read_state
from edl.program import Program

_L2 = {False: 0.1, True: 1.0}  # of ratings, for each of them, and of implicit feedback


@dataclass(frozen=True)
class AlternatingLeastSquares(Solver):
    """Solver of `FactorProducts`. alpha: of implicit feedback, None for ratings. l2 and iterations: as of
    `FactorSettings`.
    """

    l2: float | None = None
    iterations: int = 20
    alpha: float | None = None

    def wrap(self, adapter: Adapter, program: Program) -> Adapter:
        return FactorsAdapter(adapter, program, self)


class FactorsAdapter(SolvingAdapter):
    """Adapter of products of factors; `train` keeps the ratings."""

    def __init__(self, adapter: Adapter, program: Program, solver: AlternatingLeastSquares) -> None:
        super().__init__(adapter)
        self._label, weights = program.spec.label, adapter.get_weights()
        self._names = tuple(
            next((name for name in weights if name.endswith(end)), "")
            for end in ("users.weight", "items.weight")
        )
        entries = getattr(adapter.model, "entries", None) or next(
            (module.entries for module in adapter.model.modules() if hasattr(module, "implicit")), None
        )
        if entries is None or not all(self._names):
            raise JobError(
                "AlternatingLeastSquares solves for FactorProducts, and the model has none",
                hint="use another optimizer, such as Adam",
            )
        self._entries = entries
        self._shape = tuple(len(weights[name]) for name in self._names)
        factors = weights[self._names[0]].shape[1] - 1
        l2 = _L2[solver.alpha is not None] if solver.l2 is None else solver.l2
        self._settings = FactorSettings(
            factors, l2, solver.iterations, solver.alpha, program.spec.training.seed
        )
        self._blocks: list[tuple[Array, ...]] = []  # users, items, ratings, weights
        self._count, self._wanted, self._losses = 0, program.spec.rows.training, 0.0
        self._factors: Factors | None = None
        self._is_set = True  # the model has the factors

    def train(self, rows: Minibatches) -> Floats:
        """Keep the ratings; return their squares, and with the last rows what makes the mean the final loss."""
        ratings = rows.labels[:, 0].astype(np.float64)
        if self._settings.alpha is None:
            ratings = (ratings - self._label.mean) / (self._label.std or 1.0)
        users, items = (np.asarray(rows.features[name], np.int32).reshape(-1) for name in self._entries)
        weights = np.ones(0, np.float32) if rows.weights is None else np.array(rows.weights, np.float32)
        self._blocks.append((users, items, ratings.astype(np.float32), weights))
        self._factors, self._is_set = None, False
        self._count += len(users)
        self._losses += float(loss := np.square(ratings).sum())
        if self._count == self._wanted:
            loss += self._count * self._factorize().loss - self._losses
        return np.full(rows.steps, loss / len(users), np.float32)

    def _join_blocks(self) -> tuple[Array, ...]:
        """Return the ratings so far as one block."""
        if len(self._blocks) > 1:
            self._blocks = [tuple(np.concatenate(parts) for parts in zip(*self._blocks, strict=True))]
        return (
            self._blocks[0]
            if self._blocks
            else (*(np.ones(0, np.int32),) * 2, *(np.ones(0, np.float32),) * 2)
        )

    def _factorize(self) -> Factors:
        """Return the factors of the ratings so far."""
        if self._factors is None:
            users, items, ratings, weights = self._join_blocks()
            shape = (self._shape[0], self._shape[1])
            given_weights = weights if len(weights) else None
            self._factors = factorize(users, items, ratings, given_weights, shape, self._settings)
        return self._factors

    def _solve(self) -> Mapping[str, Array] | None:
        if self._is_set:
            return None
        self._is_set = True
        factors = self._factorize()
        return dict(zip(self._names, (factors.users, factors.items), strict=True))

    def _forget(self) -> None:
        self._is_set = True

    def get_state(self) -> dict[str, Array]:
        names = ("users", "items", "ratings", "weights")
        return {f"ratings.{name}": part for name, part in zip(names, self._join_blocks(), strict=True)}

    def set_state(self, state: Mapping[str, Array]) -> None:
        users, items, ratings, weights = read_state(
            state, "ratings.users", "ratings.items", "ratings.ratings", "ratings.weights"
        )
        self._blocks = [(np.array(users), np.array(items), np.array(ratings), np.array(weights))]
        self._count, self._losses = len(users), float(np.square(ratings.astype(np.float64)).sum())
        self._factors, self._is_set = None, not len(users)
