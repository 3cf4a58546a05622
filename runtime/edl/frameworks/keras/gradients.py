"""Gradient parts in Keras: everything that the members of a group sum for a step, as one tensor.

    gradients of the variables | loss | buffers | gradients of the rows

It is assembled and taken apart in two compiled functions. In between it is updated in its own memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from edl.arrays import replace_lists
from edl.embeddings.model_tables import Fetched
from edl.frameworks.adapter import GradientPart, Minibatches
from edl.frameworks.keras.compiled import Variants

Tensor = Any
Blocks = dict[str, Tensor]
LossAndGradients = Callable[..., tuple[Tensor, list[Tensor], Blocks]]
Apply = Callable[[list[Tensor], Blocks, dict[str, Tensor]], tuple[Blocks, Tensor]]


class GradientParts:
    """Gradient parts of one model.

    `rows` has the signatures of features, row blocks, positions and labels. `differentiate` returns loss and
    gradients of such rows. `apply` updates the variables by gradients, at an optional rate; it returns the clipped
    gradients of the blocks and the rate.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        buffers: Sequence[Any],
        rows: Sequence[Any],
        differentiate: LossAndGradients,
        apply: Apply,
    ) -> None:
        self._variables = variables
        self._buffers = buffers
        self._differentiate = differentiate
        self._apply = apply
        blocks: Blocks = rows[1]
        self._widths = {name: spec.shape[1] for name, spec in blocks.items()}
        sizes = [_count(variable) for variable in self._variables]
        self._sizes = [*sizes, 1, *(_count(buffer) for buffer in buffers)]
        scalar, vector = tf.TensorSpec((), tf.float32), tf.TensorSpec((None,), tf.float32)
        self._gather = Variants(self._gather_rows, *rows, scalar)
        self._spread = Variants(self._applied, vector, {name: tf.TensorSpec((), tf.int32) for name in blocks})

    def of(self, rows: Minibatches, fetched: Fetched, share: float) -> GradientPart:
        flat = self._gather(
            replace_lists(rows.features),
            fetched.blocks,
            fetched.places,
            rows.labels,
            share,
            weights=rows.weights,
        )
        return _part(flat)

    def nothing(self, fetched: Fetched) -> GradientPart:
        """Return the part of no rows."""
        size = sum(self._sizes) + sum(block.size for block in fetched.blocks.values())
        return _part(tf.zeros(size))

    def apply(self, total: GradientPart, fetched: Fetched, rate: float | None) -> tuple[float, Blocks, float]:
        """Take the step; return the loss, the clipped gradients of the rows and their learning rate."""
        counts = {name: len(block) for name, block in fetched.blocks.items()}
        rates = None if rate is None else np.array([rate], np.float32)
        flat = total.numbers if total.held is None else total.held
        loss, moving, used = self._spread(flat, counts, rates=rates)
        return float(loss), moving, float(used)

    # In the graph ----------------------------------------------------------------------------------------

    def _gather_rows(
        self,
        features: Any,
        blocks: Blocks,
        places: list[Tensor],
        labels: Tensor,
        share: Tensor,
        optional: Any,
    ) -> Tensor:
        before = [tf.identity(buffer.value) for buffer in self._buffers]
        loss, gradients, of_rows = self._differentiate(features, blocks, places, labels, optional)
        parts = [*gradients, loss, *(buffer.value for buffer in self._buffers), *_order_blocks(of_rows)]
        flat = tf.concat([tf.reshape(tf.cast(part, tf.float32), [-1]) for part in parts], 0) * share
        for buffer, values in zip(self._buffers, before, strict=True):
            buffer.assign(values)
        return flat

    def _applied(
        self, flat: Tensor, counts: dict[str, Tensor], optional: dict[str, Tensor]
    ) -> tuple[Tensor, Blocks, Tensor]:
        names = sorted(counts)
        sizes = [*self._sizes, *(counts[name] * self._widths[name] for name in names)]
        pieces = iter(tf.split(flat, tf.stack(sizes), num=len(sizes)))
        gradients = [_like(variable, next(pieces)) for variable in self._variables]
        loss = next(pieces)[0]
        for buffer in self._buffers:
            buffer.assign(_like(buffer, next(pieces)))
        blocks = {name: tf.reshape(next(pieces), (counts[name], self._widths[name])) for name in names}
        return loss, *self._apply(gradients, blocks, optional)


def _part(flat: Tensor) -> GradientPart:
    """Return the tensor as a part. On the CPU its memory is summed in place; a GPU's is copied, and copied back."""
    on_cpu = "CPU" in flat.device
    return GradientPart(flat._numpy(), flat if on_cpu else None)  # `numpy` would copy here too


def _like(variable: Any, flat: Tensor) -> Tensor:
    """Return the numbers in the dtype of the variable; the mean of counters is rounded to a counter."""
    values = tf.reshape(flat, variable.shape)
    whole = tf.as_dtype(variable.dtype).is_integer
    return tf.cast(tf.round(values) if whole else values, variable.dtype)


def _count(variable: Any) -> int:
    return math.prod(variable.shape)


def _order_blocks(blocks: Blocks) -> list[Tensor]:
    return [blocks[name] for name in sorted(blocks)]
