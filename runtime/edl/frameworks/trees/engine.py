"""Contract between the adapter of trees and a library."""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edl.arrays import Array
from edl.collectives.base import Group
from edl.frameworks.trees.forest import Forest
from edl.frameworks.trees.models import Trees
from edl.frameworks.trees.objectives import Objective

# Values of a matrix for which one more thread pays. A tree has a parallel region for each of its nodes, and threads
# wait for each other at its end; with too little to do, and other processes beside them, they do nothing else.
GROWING, SCORING = 1_000_000, 20_000


_SOURCE = re.compile(r"^\[[\d:]+\] \S+: (?:Check failed: .*?: )?(?=.)| at /\S+, line \d+ \.$")


def threads_for(matrix: Array, most: int, cells_per_thread: int) -> int:
    """Return the number of threads, at most `most`: one for every `cells_per_thread` values."""
    return max(1, min(most, matrix.size // cells_per_thread))


@dataclass(frozen=True)
class Groups:
    """Groups of a ranking, each with its rows in sequence: the number of rows of each, and the metric of the curve.

    `metric` is ndcg or map, of the first `k` rows; 0 takes all.
    """

    sizes: Array
    metric: str
    k: int


class Engine(abc.ABC):
    """Trees of one library: first none, or loaded ones. A round adds a tree, or one for each of several classes.

    A matrix is float64 (n, columns), NaN where a value is missing.
    """

    failures: tuple[type[Exception], ...] = ()  # exceptions of the library
    additive = True  # a round leaves the trees before it unchanged
    replays = False  # the library cannot store its random state, so a resumed training repeats its rounds

    def __init__(self, model: Trees, objective: Objective, outputs: int) -> None:
        self.model = model
        self.objective = objective
        self.outputs = outputs
        name = objective.parameter
        self._parameter = float(model.params.get(name, objective.default)) if name else 0.0

    @property
    @abc.abstractmethod
    def rounds(self) -> int:
        """Number of rounds of the present trees."""

    @property
    @abc.abstractmethod
    def rate(self) -> float:
        """Learning rate without a schedule."""

    @abc.abstractmethod
    def begin(
        self,
        matrix: Array,
        labels: Array,
        weights: Array | None,
        groups: Groups | None = None,
        workers: Group | None = None,
    ) -> None:
        """Take the rows from which following rounds grow, beyond the present trees. `labels` are (n,).

        `groups` are a ranking's groups. `workers` grow the same trees together, each from its own rows, of the size of
        a share for all; they make the same calls of `begin` and `grow`. Raises GroupError if one is lost.
        """

    @abc.abstractmethod
    def grow(self, rate: float) -> None:
        """Add a round with this learning rate. There may be nothing left to learn; then nothing is added.

        Raises GroupError if one of the workers is lost; then all trees that are not additive, and this round's trees,
        are void.
        """

    @abc.abstractmethod
    def mean_loss(self, labels: Array, weights: Array | None) -> float:
        """Return the sum of the weighted losses of the rows of `begin`, which are given again, over their number."""

    @abc.abstractmethod
    def measure_ranking(self) -> float:
        """Return the mean over the groups of `begin` of their metric; where nothing is relevant, it counts as 1."""

    def losses(self, labels: Array, predictions: Array) -> Array:
        """Return the loss of each row, (n,), of labels and predictions (n, outputs)."""
        flat = predictions if self.objective.link == "softmax" else predictions.reshape(-1)
        return self.objective.losses(labels.reshape(-1), flat, self._parameter)

    @abc.abstractmethod
    def margins(self, matrix: Array, last: int, before: tuple[int, Array] | None = None) -> Array:
        """Return the margins of the first `last` rounds, (n, outputs).

        `before` has the margins of some of these rounds, and their number; it is used if the engine is additive.
        """

    @abc.abstractmethod
    def contributions(self, matrix: Array, last: int) -> Array:
        """Return TreeSHAP values and the base margin, (n, outputs, columns + 1); they add up to the margins."""

    @abc.abstractmethod
    def leaves(self, matrix: Array, last: int) -> Array:
        """Return the leaf of each row in each tree of the first `last` rounds, whole numbers (n, trees).

        The numbers are the library's own.
        """

    @abc.abstractmethod
    def dump(self, last: int) -> bytes:
        """Return the first `last` rounds as a file of the library."""

    def file(self, last: int, suffix: str) -> bytes:
        """Return the first `last` rounds as a file of the library with that suffix."""
        return self.dump(last)

    @abc.abstractmethod
    def forest(self, last: int) -> Forest:
        """Return the first `last` rounds as arrays. Raises JobError for a kind of trees that only the library knows."""

    @abc.abstractmethod
    def load(self, data: bytes) -> None:
        """Replace the trees by the trees of a file. Raises JobError if it is damaged."""

    @abc.abstractmethod
    def importances(self, last: int) -> Mapping[str, Array]:
        """Return the sums by column, (columns,): `gain` of the objective, `split` the number of splits."""


def first_line(error: Exception) -> str:
    """Return what a library's message says, without its source file, and the time and condition of XGBoost."""
    return _SOURCE.sub("", str(error).strip().partition("\n")[0])


def unknown_objective(name: str, objectives: Mapping[str, Any]) -> str:
    return f"there is no objective {name}; there are {', '.join(objectives)}"
