"""Steps of a group in Keras: one loop in the graph, left twice for each minibatch.

    slice ─▶ loss and gradients ─▶ sum over the group (Python) ─▶ step ─▶ rows, and the next slice (Python) ─▶ …

Everything that the members sum for a step is one vector:

    gradients of the variables | loss | buffers | gradients of the rows
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from edl.arrays import Array, map_arrays, replace_lists
from edl.frameworks.adapter import Minibatches
from edl.frameworks.exchange import Reduction, Slice
from edl.frameworks.keras.compiled import KEEP, Variants, run_interruptibly

Tensor = Any
Blocks = dict[str, Tensor]


class ReducedSteps:
    """Loop over minibatches of one model.

    `rows` has the signatures of features, row blocks, positions and labels. `differentiate` returns the loss of such
    rows and its gradients, `apply` updates the variables by gradients, at a rate unless it is `KEEP`, and returns the
    clipped gradients of the blocks and the rate. `move` updates the rows of a minibatch by these.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        buffers: Sequence[Any],
        rows: Sequence[Any],
        differentiate: Callable[..., Any],
        apply: Callable[..., Any],
        move: Callable[[Mapping[str, Array], Mapping[str, Array], float], None],
        place: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._variables, self._buffers = variables, buffers
        self._differentiate, self._apply, self._move = differentiate, apply, move
        features, blocks, places, label = rows
        self._fetched_specs = blocks, places
        self._names = sorted(blocks)
        self._widths = {name: spec.shape[1] for name, spec in blocks.items()}
        self._sizes = [*map(_count, variables), 1, *map(_count, buffers)]
        self._reduction: Reduction
        self._slice: Slice
        self._error: BaseException | None = None
        scalar, count = tf.TensorSpec((), tf.float32), tf.TensorSpec((), tf.int32)
        self._loop = Variants(place(self._run), features, label, count, count, scalar, blocks, places)

    def run(self, rows: Minibatches, reduction: Reduction, user_code: AbstractContextManager[None]) -> None:
        """Take the steps, in the context `user_code`. Raises the error of the reduction, if it has one."""
        self._reduction, self._error = reduction, None
        bounds = self._bounds_of(reduction.begin(0))
        arguments = (replace_lists(rows.features), rows.labels, *bounds)
        run_interruptibly(self._loop, arguments, user_code, weights=rows.weights)
        if self._error is not None:
            raise self._error

    # In the graph ----------------------------------------------------------------------------------------

    def _run(
        self,
        features: Any,
        labels: Tensor,
        first: Tensor,
        last: Tensor,
        share: Tensor,
        blocks: Blocks,
        places: list[Tensor],
        optional: Mapping[str, Tensor],
    ) -> Tensor:
        def step(_: Tensor, first: Tensor, last: Tensor, share: Tensor, blocks: Any, places: Any) -> Any:
            def some(array: Tensor) -> Tensor:
                return array[first:last]

            def compute() -> Tensor:
                weights = {name: some(array) for name, array in optional.items()}
                return self._part(map_arrays(some, features), blocks, places, some(labels), share, weights)

            sizes = [*self._sizes, *(tf.size(blocks[name]) for name in self._names)]
            part = tf.cond(
                last > first, compute, lambda: tf.zeros(tf.add_n(list(map(tf.convert_to_tensor, sizes))))
            )
            total, rate, goes_on = tf.numpy_function(self._sum_now, [part], [tf.float32, tf.float32, tf.bool])
            total.set_shape((None,))
            rate.set_shape(())
            goes_on.set_shape(())
            return tf.cond(
                goes_on,
                lambda: self._take_step(total, rate, blocks),
                lambda: (False, first, last, share, blocks, places),
            )

        specs = [tf.TensorSpec((), kind) for kind in (tf.bool, tf.int32, tf.int32, tf.float32)]
        goes_on, *_ = tf.while_loop(
            lambda goes_on, *_: goes_on,
            step,
            (tf.constant(True), first, last, share, blocks, places),
            shape_invariants=(*specs, *self._fetched_specs),
            parallel_iterations=1,
        )
        return goes_on

    def _part(
        self,
        features: Any,
        blocks: Blocks,
        places: list[Tensor],
        labels: Tensor,
        share: Tensor,
        optional: Any,
    ) -> Tensor:
        """Return the part of some rows; the buffers stay as they are."""
        before = [tf.identity(buffer.value) for buffer in self._buffers]
        loss, gradients, of_rows = self._differentiate(features, blocks, places, labels, optional)
        parts = [*gradients, loss, *(buffer.value for buffer in self._buffers)]
        parts += [of_rows[name] for name in self._names]
        flat = tf.concat([tf.reshape(tf.cast(part, tf.float32), [-1]) for part in parts], 0) * share
        for buffer, values in zip(self._buffers, before, strict=True):
            buffer.assign(values)
        return flat

    def _take_step(self, total: Tensor, rate: Tensor, blocks: Blocks) -> Any:
        """Take the step with the sum; return whether another one follows, with its slice and rows."""
        sizes = [*self._sizes, *(tf.size(blocks[name]) for name in self._names)]
        pieces = iter(tf.split(total, tf.stack(sizes), num=len(sizes)))
        gradients = [_like(variable, next(pieces)) for variable in self._variables]
        loss = next(pieces)[0]
        for buffer in self._buffers:
            buffer.assign(_like(buffer, next(pieces)))
        of_rows = {name: tf.reshape(next(pieces), (-1, self._widths[name])) for name in self._names}
        moving, used = self._apply(gradients, of_rows, rate)
        specs = tf.nest.flatten(self._fetched_specs)
        types = [tf.bool, tf.int32, tf.int32, tf.float32, *(spec.dtype for spec in specs)]
        outputs = [loss, used, *(moving[name] for name in self._names)]
        goes_on, first, last, share, *flat = tf.numpy_function(self._end_now, outputs, types)
        for tensor in (goes_on, first, last, share):
            tensor.set_shape(())
        for tensor, spec in zip(flat, specs, strict=True):
            tensor.set_shape(spec.shape)
        return goes_on, first, last, share, *tf.nest.pack_sequence_as(self._fetched_specs, flat)

    # In Python -------------------------------------------------------------------------------------------

    def _sum_now(self, part: Any) -> list[Any]:
        total = np.array(part)  # the tensor's own memory must not change
        try:
            rate = self._reduction.sum(total)
        except BaseException as error:  # an error in the graph would be logged and get another type
            self._error = error
            return [total, np.float32(KEEP), np.False_]
        return [total, np.float32(KEEP if rate is None else rate), np.True_]

    def _end_now(self, loss: Any, rate: Any, *moving: Any) -> list[Any]:
        try:
            self._move(self._slice.fetched.ids, dict(zip(self._names, moving, strict=True)), float(rate))
            following = self._reduction.end(float(loss))
        except BaseException as error:
            self._error, following = error, None
        bounds = self._bounds_of(self._slice if following is None else following)
        return [np.bool_(following is not None), *tf.nest.flatten(bounds)]

    def _bounds_of(self, piece: Slice) -> tuple[Any, ...]:
        self._slice = piece
        fetched = piece.fetched
        return (
            np.int32(piece.first),
            np.int32(piece.last),
            np.float32(piece.share),
            fetched.blocks,
            fetched.places,
        )


def _like(variable: Any, flat: Tensor) -> Tensor:
    """Return the numbers in the dtype of the variable; the mean of counters is rounded to a counter."""
    values = tf.reshape(flat, variable.shape)
    whole = tf.as_dtype(variable.dtype).is_integer
    return tf.cast(tf.round(values) if whole else values, variable.dtype)


def _count(variable: Any) -> int:
    return math.prod(variable.shape)
