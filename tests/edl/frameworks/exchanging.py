"""Exchanges of a test: minibatches with the model's own parameters and rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from edl.embeddings.model_tables import Fetched, RowGradients
from edl.frameworks import Minibatches
from edl.frameworks.exchange import StepGradients, StepStart


class Found(NamedTuple):
    """Loss and gradients by the name of a parameter or a table."""

    loss: float
    values: Mapping[str, Any]


class OwnParameters:
    """Exchange of minibatches with the adapter's own parameters; all that is found in them is kept.

    `moves`: the adapter takes a step with each gradient but the last. `fetched` are rows of a single minibatch.
    """

    def __init__(
        self, adapter: Any, rows: Minibatches, *, moves: bool = False, fetched: Fetched | None = None
    ) -> None:
        self.found: list[Found] = []
        self._adapter, self._rows, self._moves, self._given = adapter, rows, moves, fetched
        self._keys = adapter.tables.keys(rows.features)
        self._shapes = {name: value.shape for name, value in adapter.get_trainable().items()}
        self._fetched = Fetched({}, {}, [])

    def begin(self, number: int) -> StepStart:
        tables, size = self._adapter.tables, self._rows.size
        end = min((number + 1) * size, len(self._rows.labels))
        need = tables.need(self._keys, number * size, end)
        self._fetched = self._given or tables.fetch(need, train=True)
        return StepStart(None, self._fetched)

    def end(self, gradients: StepGradients) -> StepStart | None:
        ids = self._fetched.ids
        rows = {name: RowGradients(ids[name], values) for name, values in gradients.rows.items()}
        self.found.append(Found(gradients.loss, self._by_name(gradients.dense) | rows))
        if len(self.found) == self._rows.steps:
            return None
        if self._moves:
            self._adapter.tables.update(rows, self._adapter.learning_rate(0))
        return self.begin(len(self.found))._replace(steps_before=self._moves)

    def _by_name(self, dense: Any) -> dict[str, Any]:
        sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        pieces = np.split(dense, np.cumsum(sizes)[:-1])
        return {
            name: piece.reshape(self._shapes[name]) for name, piece in zip(self._shapes, pieces, strict=True)
        }


def gradients(
    adapter: Any, features: Any, labels: Any, weights: Any = None, *, fetched: Fetched | None = None
) -> Found:
    """Loss and gradients of one minibatch."""
    rows = Minibatches(features, labels, len(labels), weights)
    exchange = OwnParameters(adapter, rows, fetched=fetched)
    adapter.exchange_steps(rows, exchange)
    return exchange.found[0]
