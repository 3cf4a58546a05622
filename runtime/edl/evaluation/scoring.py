"""Forward passes over blocks, and the conversion of outputs to scores by the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edl.arrays import Array
from edl.errors import JobError
from edl.evaluation.prediction import probabilities, program_target
from edl.features import Target
from edl.features.labels import learned_labels
from edl.forecasting.bounds import bound_forecasts
from edl.frameworks import Adapter, create
from edl.input.blocks import Block
from edl.metrics.calibration import apply_temperature
from edl.program import Mode, Program
from edl.spec import ENSEMBLE, SCORED
from edl.spec.extra_outputs import DISTANCES, ERRORS, INNER, LOGITS, MEMBERS
from edl.tasks.ranges import LEAST_ROWS, partition


@dataclass(frozen=True)
class Scorer:
    """Model for evaluation and prediction, with `rows` rows per forward pass."""

    program: Program
    adapter: Adapter
    rows: int

    @property
    def block_rows(self) -> int:
        """Rows of a streamed block, a multiple of `rows`."""
        return -(-LEAST_ROWS // self.rows) * self.rows

    def evaluate(self, block: Block) -> tuple[Array, float]:
        """Return the scores of the block's rows and the sum of their weighted losses."""
        outputs, loss = self._evaluate(block)
        return self._bound(self._scores(outputs), block), loss

    def loss(self, block: Block) -> float:
        """Return the sum of the weighted losses of the block's rows."""
        return self._evaluate(block)[1]

    def _evaluate(self, block: Block) -> tuple[list[Array], float]:
        outputs, loss = [], 0.0
        for first, last in partition(0, block.rows, self.rows):
            features, labels, weights = block.part(first, last)
            evaluated = self.adapter.evaluate(features, self._loss_labels(labels), weights)
            outputs.append(evaluated.outputs)
            loss += evaluated.loss * (last - first)
        return outputs, loss

    def _loss_labels(self, labels: Array) -> Array:
        """Return the labels of the loss. If an adapter gives scores, they are compared with the labels themselves."""
        return labels if self.program.spec.framework in SCORED else learned_labels(self._target, labels)

    @cached_property
    def _target(self) -> Target:
        return program_target(self.program)

    def predict(self, block: Block) -> Array:
        """Return the scores of the block's rows."""
        parts = (block.part(first, last) for first, last in partition(0, block.rows, self.rows))
        return self._bound(self._scores([self.adapter.predict(part.features) for part in parts]), block)

    def _bound(self, scores: Array, block: Block) -> Array:
        """Return the scores; the scores of a forecast are within its bounds."""
        spec = self.program.spec
        if spec.forecast is None:
            return scores
        return bound_forecasts(spec.forecast, spec.label.quantiles, scores, block.arrays.features)

    def predict_with(self, block: Block, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        """Return the scores of the block's rows, and by name extra outputs of the model, (n, width) each."""
        if not names:
            return self.predict(block), {}
        parts = (block.part(first, last) for first, last in partition(0, block.rows, self.rows))
        is_ensemble = self.program.spec.framework == ENSEMBLE
        inner = [name for name in names if name in INNER or (is_ensemble and name == MEMBERS)]
        by_part = [self.adapter.predict_with(part.features, inner) for part in parts]
        outputs = np.concatenate([part_outputs for part_outputs, _ in by_part])
        scores = self._scores([outputs])
        extra = {name: np.concatenate([more[name] for _, more in by_part]) for name in inner}
        if DISTANCES in names:
            extra[DISTANCES] = scores
        if ERRORS in names:
            extra[ERRORS] = scores[:, self.program.spec.label.dimensions :]
        if LOGITS in names:
            extra[LOGITS] = self._logits(outputs)
        if MEMBERS in names:
            extra[MEMBERS] = self._of_members(extra.get(MEMBERS, outputs))
        return scores, {name: extra[name].reshape(block.rows, -1) for name in names}

    def _logits(self, outputs: Array) -> Array:
        """Return the logits of the second of two classes, or of each class, before a calibration.

        The logits of an ensemble and of a file are the logits of its probabilities.
        """
        if outputs.ndim == 2 and self.program.spec.framework not in SCORED:
            return outputs
        with np.errstate(divide="ignore"):
            logs = np.log(self._uncalibrated(outputs))
        return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs

    def _of_members(self, values: Array) -> Array:
        """Return the scores of each member: the number, the probability of the second of two classes, or all.

        values: scores of an ensemble, or outputs of a network of members, (n, members, k).
        """
        rows, members = values.shape[:2]
        if self.program.spec.framework != ENSEMBLE:
            values = self._uncalibrated(values.reshape(rows * members, -1)).reshape(rows, members, -1)
        return values[:, :, 1:] if values.shape[2] == 2 else values

    def _scores(self, outputs: list[Array]) -> Array:
        """Return the result of the program's `scores`, or the outputs themselves if it has no such function."""
        scores = self._uncalibrated(outputs[0] if len(outputs) == 1 else np.concatenate(outputs))
        label, temperature = self.program.spec.label, self.program.spec.temperature
        if temperature == 1 or not label.has_classes or not self.program.has("scores"):
            return scores
        return apply_temperature(probabilities(scores, label), temperature)

    def _uncalibrated(self, outputs: Array) -> Array:
        if not self.program.has("scores"):
            return outputs
        scores: Array = self.program.call("scores", outputs)
        if not isinstance(scores, np.ndarray) or len(scores) != len(outputs):
            raise JobError(
                f"scores in {self.program.file} must return an array, a row for each row of outputs"
            )
        return scores


def trained_adapter(program: Program, example: Block, mode: Mode, weights: Mapping[str, Array]) -> Adapter:
    """Return the program's model with the weights. A few rows build layers that are created lazily."""
    labels = None if mode == "predict" else example.arrays.labels
    adapter = create(program, example.arrays.features, labels, seed=program.spec.training.seed)
    adapter.set_weights(weights)
    return adapter
