"""Solvers: what a program returns in place of an optimizer, when the weights of its model are solved for in one pass.

A solver collects what it needs of the rows while the worker loop trains as ever, block after block. The weights are
solved for when somebody asks for them: the evaluation at the end of the epoch, a checkpoint or the export.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

from edl.arrays import Array, Features
from edl.embeddings.model_tables import Cut
from edl.errors import JobError
from edl.frameworks.adapter import Adapter, Evaluated, Floats, Minibatches
from edl.program import Program


class Solver(abc.ABC):
    """Solver of the weights of one kind of model."""

    @abc.abstractmethod
    def wrap(self, adapter: Adapter, program: Program) -> Adapter:
        """Return an adapter that trains by collecting rows. Raises JobError for a model of another kind."""


class SolvingAdapter(abc.ABC):
    """Adapter that solves for the weights of the rows so far. All but the training is left to the model's own."""

    def __init__(self, adapter: Adapter) -> None:
        self.framework, self.model = adapter.framework, adapter.model
        self._adapter = adapter

    @abc.abstractmethod
    def train(self, rows: Minibatches) -> Floats:
        """Collect the rows; return a loss for each minibatch, float32 (steps,)."""

    @abc.abstractmethod
    def _solve(self) -> Mapping[str, Array] | None:
        """Return the weights by the rows so far, or None if the model has them already."""

    @abc.abstractmethod
    def get_state(self) -> dict[str, Array]: ...

    @abc.abstractmethod
    def set_state(self, state: Mapping[str, Array]) -> None: ...

    @abc.abstractmethod
    def _forget(self) -> None:
        """Keep the weights that the model has been given."""

    def _with_solution(self) -> Adapter:
        """Give the model the weights of the rows so far; return its adapter."""
        if (solution := self._solve()) is not None:
            weights = self._adapter.get_weights()
            self._adapter.set_weights(
                {
                    name: solution[name].reshape(old.shape).astype(old.dtype) if name in solution else old
                    for name, old in weights.items()
                }
            )
        return self._adapter

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        return self._with_solution().evaluate(features, labels, weights)

    def predict(self, features: Features) -> Array:
        return self._with_solution().predict(features)

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        return self._with_solution().predict_with(features, names)

    def get_weights(self) -> dict[str, Array]:
        return self._with_solution().get_weights()

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        self._adapter.set_weights(weights)
        self._forget()

    def keep(self) -> Mapping[str, Array]:
        return self._with_solution().keep()

    def cut(self) -> Cut:
        weights, state = self.get_weights(), self.get_state()
        return lambda: (weights, state)

    def learning_rate(self, step: int) -> float:
        return 0.0

    def set_learning_rate(self, rate: float) -> None:  # noqa: B027 - no step has a rate
        """Return at once."""

    def standalone(self) -> Any:
        return self._with_solution().standalone()


def read_state(state: Mapping[str, Array], *names: str) -> tuple[Array, ...]:
    """Return the arrays of a solver's state. Raises JobError if one is absent."""
    try:
        return tuple(state[name] for name in names)
    except KeyError as error:
        raise JobError(f"the optimizer's state does not fit: it lacks {error.args[0]}") from None


def find_linear_layer(
    weights: Mapping[str, Array], solver: str, *, one_output: bool = False
) -> tuple[str, str]:
    """Return the names of the weights of the inputs and of the biases. Raises JobError for another model."""
    by_rank = {array.ndim: name for name, array in weights.items()}
    if len(weights) != 2 or set(by_rank) != {1, 2} or (one_output and weights[by_rank[1]].size != 1):
        outputs = " with one output" if one_output else ""
        raise JobError(
            f"{solver} solves for one linear layer{outputs}, and the model has other weights",
            hint="use another optimizer, such as Adam",
        )
    return by_rank[2], by_rank[1]
