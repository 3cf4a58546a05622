"""Explanation of trees by TreeSHAP (Lundberg et al. 2020, "From local explanations to global understanding with
explainable AI for trees"): exact Shapley values, computed by the library from the trees themselves.

The explained score is the margin, which trees add up: the predicted number, its logarithm for losses of counts and
amounts, the logit of the second of two classes, or, with more classes, the margin of the class that is predicted for
the row. The values of a row and the base add up to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from edl.arrays import Array
from edl.frameworks.adapter import ExplainingAdapter
from edl.spec import label_offset, matrix_columns
from edl.worker.evaluation.scoring import Scorer
from edl.worker.input.blocks import Block

ROWS = 8192  # of one call: cancelling or preempting a worker waits for it


@dataclass(frozen=True)
class TreeExplainer(Scorer):
    """Scorer that explains rows of a model of trees.

    `predict` returns the model's scores, the base margin and the value of each column: float64 (rows, classes + 1 +
    columns). `evaluate` returns the values alone, and a loss of 0.
    """

    def evaluate(self, block: Block) -> tuple[Array, float]:
        return self.predict(block)[:, -len(self.program.spec.columns) :], 0.0

    def predict(self, block: Block) -> Array:
        scores = super().predict(block)
        adapter = cast(ExplainingAdapter, self.adapter)
        parts = (block.part(first, min(first + ROWS, block.rows)) for first in range(0, block.rows, ROWS))
        contributions = np.concatenate([adapter.contributions(part.features) for part in parts])
        explained = np.argmax(scores, axis=1) if contributions.shape[1] > 1 else 0
        values = contributions[np.arange(block.rows), explained]
        base = values[:, -1] + label_offset(self.program.spec.label)
        return np.column_stack([scores, base, values[:, :-1] @ self._shares])

    @cached_property
    def _shares(self) -> npt.NDArray[np.float64]:
        """Share of each matrix column in the value of each source column, (matrix columns, columns)."""
        spec = self.program.spec
        positions = {name: position for position, name in enumerate(spec.columns)}
        of_columns = [names for feature in spec.features for names in matrix_columns(feature)]
        shares = np.zeros((len(of_columns), len(positions)))
        for row, names in enumerate(of_columns):
            for name in names:
                shares[row, positions[name]] += 1 / len(names)
        return shares
