"""Forward passes over blocks, and the conversion of outputs to scores by the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edl.arrays import Array
from edl.errors import JobError
from edl.frameworks import Adapter
from edl.metrics.calibration import tempered
from edl.program import Program
from edl.spec import ClassLabel
from edl.tasks.ranges import LEAST_ROWS, partition
from edl.worker.evaluation.prediction import probabilities
from edl.worker.input.blocks import Block


@dataclass(frozen=True)
class Scorer:
    """Model for evaluation and prediction, with `rows` rows per forward pass."""

    program: Program
    adapter: Adapter
    rows: int

    @property
    def streamed(self) -> int:
        """Rows of a streamed block, a multiple of `rows`."""
        return -(-LEAST_ROWS // self.rows) * self.rows

    def evaluate(self, block: Block) -> tuple[Array, float]:
        """Return the scores of the block's rows and the sum of their weighted losses."""
        outputs, loss = [], 0.0
        for first, last in partition(0, block.rows, self.rows):
            evaluated = self.adapter.evaluate(*block.part(first, last))
            outputs.append(evaluated.outputs)
            loss += evaluated.loss * (last - first)
        return self._scores(outputs), loss

    def predict(self, block: Block) -> Array:
        """Return the scores of the block's rows."""
        parts = (block.part(first, last) for first, last in partition(0, block.rows, self.rows))
        return self._scores([self.adapter.predict(part.features) for part in parts])

    def _scores(self, outputs: list[Array]) -> Array:
        """Return the result of the program's `scores`, or the outputs themselves if it has no such function."""
        joined = outputs[0] if len(outputs) == 1 else np.concatenate(outputs)
        if not self.program.has("scores"):
            return joined
        scores = self.program.call("scores", joined)
        if not isinstance(scores, np.ndarray) or len(scores) != len(joined):
            raise JobError(
                f"scores in {self.program.file} must return an array, a row for each row of outputs"
            )
        label, temperature = self.program.spec.label, self.program.spec.temperature
        if temperature == 1 or not isinstance(label, ClassLabel):
            return scores
        return tempered(probabilities(scores, label), temperature)
