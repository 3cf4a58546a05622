"""Steps in Keras with parameters of elsewhere: one loop in the graph, left once for each minibatch.

first start ─▶ assign ─▶ loss and gradients ─▶ exchange (Python) ─▶ [local step] ─▶ assign ─▶ …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from edl.arrays import Array, map_arrays, replace_lists
from edl.frameworks.adapter import Minibatches, pack_arrays
from edl.frameworks.exchange import Exchange, StepGradients, StepStart
from edl.frameworks.keras.compiled import KEEP, Variants, run_interruptibly

Tensor = Any
_END, _GO_ON, _STEP, _STEP_AND_ADD = range(4)


class ExchangedSteps:
    """Loop over minibatches of one model.

    `rows` has the signatures of features, row blocks, positions and labels. `differentiate` returns the loss of such
    rows and its clipped gradients, `apply` takes a step of the optimizer with gradients of the variables.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        buffers: Sequence[Any],
        generators: Sequence[Any],
        rows: Sequence[Any],
        differentiate: Callable[..., Any],
        apply: Callable[..., Any],
        place: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._variables, self._buffers, self._generators = variables, buffers, generators
        self._differentiate, self._apply = differentiate, apply
        features, blocks, places, label = rows
        self._fetched_specs = blocks, places
        self._names = sorted(blocks)
        self._sizes = [int(np.prod(variable.shape)) for variable in variables]
        self._exchange: Exchange
        self._error: BaseException | None = None
        vector, count = tf.TensorSpec((None,), tf.float32), tf.TensorSpec((), tf.int32)
        self._loop = Variants(place(self._run), features, label, count, count, vector, blocks, places)

    def run(
        self,
        rows: Minibatches,
        exchange: Exchange,
        first: int,
        user_code: AbstractContextManager[None],
    ) -> None:
        """Compute the minibatches from the `first` on, in the context `user_code`. Raises the error of the exchange, if
        it has one.
        """
        start = exchange.begin(first)
        self._exchange, self._error = exchange, None
        dense, blocks, places = self._arrays_of(start)
        arguments = (replace_lists(rows.features), rows.labels, rows.size, first, dense, blocks, places)
        run_interruptibly(self._loop, arguments, user_code, weights=rows.weights)
        if self._error is not None:
            raise self._error

    # In the graph ----------------------------------------------------------------------------------------

    def _run(
        self,
        features: Any,
        labels: Tensor,
        size: Tensor,
        first: Tensor,
        dense: Tensor,
        blocks: dict[str, Tensor],
        places: list[Tensor],
        optional: Mapping[str, Tensor],
    ) -> Tensor:
        def step(number: Tensor, _: Tensor, before: Tensor, blocks: Any, places: Any) -> tuple[Any, ...]:
            def minibatch(array: Tensor) -> Tensor:
                return array[number * size : (number + 1) * size]

            part = {"weights": minibatch(optional["weights"])} if "weights" in optional else {}
            loss, gradients, of_rows = self._differentiate(
                map_arrays(minibatch, features), blocks, places, minibatch(labels), part
            )
            action, rate, dense, *following = self._call_exchange(loss, gradients, of_rows)
            tf.cond(action >= _STEP, lambda: self._step(gradients, rate), tf.no_op)
            steps_taken = tf.cond(action == _STEP_AND_ADD, lambda: self._steps_taken(before), _nothing)
            return number + 1, action, self._assign(dense, steps_taken, before), *following

        state = (first, tf.constant(_GO_ON, tf.int64), self._assign(dense, _nothing(), dense), blocks, places)
        specs = tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.int64), tf.TensorSpec((None,), tf.float32)
        number, *_ = tf.while_loop(
            lambda number, action, *_: action > _END,
            step,
            state,
            shape_invariants=(*specs, *self._fetched_specs),
            parallel_iterations=1,
        )
        return number

    def _call_exchange(self, loss: Tensor, gradients: Sequence[Tensor], of_rows: Mapping[str, Tensor]) -> Any:
        """Return the action, the learning rate, and the parameters of the following minibatch."""
        buffers = [tf.reshape(tf.cast(buffer.value, tf.float32), [-1]) for buffer in self._buffers]
        outputs = [
            loss,
            _concat(gradients),
            tf.concat(buffers, 0) if buffers else tf.zeros(0),
            *(of_rows[name] for name in self._names),
            *(generator.value for generator in self._generators),
        ]
        specs = tf.nest.flatten(self._fetched_specs)
        types = [tf.int64, tf.float32, tf.float32, *(spec.dtype for spec in specs)]
        action, rate, dense, *flat = tf.numpy_function(self._exchange_now, outputs, types)
        action.set_shape(())
        rate.set_shape(())
        dense.set_shape((None,))
        for tensor, spec in zip(flat, specs, strict=True):
            tensor.set_shape(spec.shape)
        return action, rate, dense, *tf.nest.pack_sequence_as(self._fetched_specs, flat)

    def _assign(self, dense: Tensor, steps_taken: Tensor, before: Tensor) -> Tensor:
        """Set the variables to `dense` plus `steps_taken` and return this vector; `before` if there is no `dense`."""

        def assign() -> Tensor:
            vector = dense + steps_taken
            for variable, piece in zip(self._variables, tf.split(vector, self._sizes), strict=True):
                variable.assign(tf.reshape(piece, variable.shape))
            return vector

        if not self._variables:
            return before
        assigned = tf.cond(tf.size(dense) > 0, assign, lambda: before)
        assigned.set_shape((None,))
        return assigned

    def _steps_taken(self, before: Tensor) -> Tensor:
        """Return how local steps have changed the variables."""
        return _concat([variable.value for variable in self._variables]) - before

    def _step(self, gradients: list[Tensor], rate: Tensor) -> Any:
        self._apply(gradients, {}, rate)
        return tf.no_op()

    # In Python -------------------------------------------------------------------------------------------

    def _exchange_now(self, loss: Any, dense: Any, buffers: Any, *others: Any) -> list[Any]:
        count = len(self._names)
        rows = dict(zip(self._names, others[:count], strict=True))
        gradients = StepGradients(float(loss), dense, rows, buffers, lambda: pack_arrays(others[count:]))
        try:
            start = self._exchange.end(gradients)
        except BaseException as error:  # an error in the graph would be logged and get another type
            self._error, start = error, None
        if start is None:
            return [np.int64(_END), np.float32(KEEP), np.empty(0, np.float32), *self._no_rows()]
        action = _STEP_AND_ADD if start.adds_own else _STEP if start.steps_before else _GO_ON
        rate = KEEP if start.rate is None else start.rate
        dense, *fetched = self._arrays_of(start)
        return [np.int64(action), np.float32(rate), dense, *tf.nest.flatten(fetched)]

    def _arrays_of(self, start: StepStart) -> tuple[Array, dict[str, Array], Any]:
        dense = np.empty(0, np.float32) if start.dense is None else start.dense
        return dense, start.fetched.blocks, start.fetched.places

    def _no_rows(self) -> list[Array]:
        """Return arrays without rows in place of the following minibatch's."""
        specs = tf.nest.flatten(self._fetched_specs)
        return [np.empty([size or 0 for size in spec.shape], spec.dtype.as_numpy_dtype) for spec in specs]


def _concat(tensors: Sequence[Tensor]) -> Tensor:
    flat = [tf.reshape(tf.cast(tensor, tf.float32), [-1]) for tensor in tensors]
    return tf.concat(flat, 0) if flat else tf.zeros(0)


def _nothing() -> Tensor:
    return tf.constant(0.0)
