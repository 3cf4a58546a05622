"""Adapter of Keras on TensorFlow.

Steps over many minibatches are one `tf.function` with a loop in the graph, without Python between two steps. It is
traced once per job, because its signature leaves the number of rows open; the smaller last minibatch uses the same
trace. (XLA gains nothing on top and compiles anew for every number of rows.)

Row tables are outside of the graph: the loop requests the rows of each minibatch, and returns their gradients before
the next one. That is a call of Python, yet not a call of a `tf.function`, which costs some twenty times as much.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import edl.frameworks.keras.layers  # noqa: F401 (refuses another backend)
from edl.arrays import Array, Features, map_arrays, replace_lists
from edl.embeddings.model_tables import Fetched, RowGradients
from edl.embeddings.optimizers import Optimizer
from edl.embeddings.table import Ids
from edl.errors import JobError
from edl.frameworks.adapter import (
    Adapter,
    Evaluated,
    Floats,
    Minibatches,
    check_losses,
    check_outputs,
    check_own_outputs,
    count_members,
    pack_arrays,
    refuse_weights_for_scalar,
    unpack_arrays,
)
from edl.frameworks.base import NetworkAdapter, call_function, checked_shapes, flatten_inputs
from edl.frameworks.device import tell
from edl.frameworks.exchange import Exchange, Reduction
from edl.frameworks.keras import device as devices
from edl.frameworks.keras.compiled import Variants, any_rows, compile_function, spec_of
from edl.frameworks.keras.embeddings import (
    check_elsewhere,
    clip_gradients,
    move_large_embeddings,
    row_optimizer,
    with_rows_inside,
)
from edl.frameworks.keras.exchange import ExchangedSteps
from edl.frameworks.keras.gradients import ReducedSteps
from edl.frameworks.keras.last_layer import last_inputs
from edl.frameworks.solvers import Solver
from edl.program import Program
from edl.spec.extra_outputs import EMBEDDING

Tensor = Any
Given = Mapping[str, Tensor]  # optional inputs of a call: weights, rates
Blocks = dict[str, Tensor]  # rows of each table, (u, dim)
_HALF = (tf.bfloat16, tf.float16)


def start(threads: int) -> None:
    with contextlib.suppress(RuntimeError):  # TensorFlow is running: its pools keep their size
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.experimental.enable_op_determinism()


def seed(value: int) -> None:
    keras.backend.clear_session()
    keras.utils.set_random_seed(value % 2**32)


def create(program: Program, features: Features, labels: Array | None, seed: int) -> Adapter:
    device = devices.choose_device(program.spec.device)
    tell(program.spec.device, device.strip("/") or "cpu", program.spec.precision)
    with devices.place_on_device(device), devices.precision(program.spec.precision):
        model = call_function(program, "custom_model", keras.Model, "keras.Model")
        if program.spec.zoo is not None and program.spec.zoo.embedding_threshold:
            model = move_large_embeddings(model, program.spec.zoo.embedding_threshold, features)
        adapter = KerasAdapter(program, model, features, labels, seed, device)
        solver = None if labels is None else adapter.optimizer
        return solver.wrap(adapter, program) if isinstance(solver, Solver) else adapter


class KerasAdapter(NetworkAdapter):
    framework = "keras"

    def __init__(
        self,
        program: Program,
        model: keras.Model,
        features: Features,
        labels: Array | None,
        seed: int,
        device: str,
    ) -> None:
        super().__init__(program, model, seed)
        tensors = map_arrays(tf.convert_to_tensor, replace_lists(features))
        with self._user_code("the model"), self.tables.discover(features, tensors):
            outputs = model(tensors, training=False)  # creates the weights of lazily built layers
        self._rate: float | None = None  # learning rate, once it is known
        _check_one_tensor(outputs)
        check_own_outputs(program, tuple(outputs.shape))
        self._names = [f"{position}.{weight.name}" for position, weight in enumerate(model.weights)]
        by_id = {id(weight): name for name, weight in self._variables().items()}
        self._trained = [by_id[id(variable)] for variable in model.trainable_variables]
        rows = (
            map_arrays(any_rows, replace_lists(features)),
            *_any_fetched(self._fetch_rows(features, train=False)),
        )
        self._predict = compile_function(devices.run_on_device(device, self._infer), *rows)
        self._predict_with = compile_function(devices.run_on_device(device, self._infer_with), *rows)
        self._input_gradients = compile_function(
            devices.run_on_device(device, self._gradients_of_inputs), *rows, any_rows(outputs)
        )
        if labels is not None:
            self._prepare_training(rows, labels, outputs, device)

    def _prepare_training(self, rows: tuple[Any, ...], labels: Array, outputs: Tensor, device: str) -> None:
        if self._program.checks_shapes:
            check_outputs(labels.shape, tuple(outputs.shape), labels.dtype.kind == "i")
        label = any_rows(labels)
        self._evaluate = Variants(devices.run_on_device(device, self._outputs_and_loss), *rows, label)
        kinds = keras.optimizers.Optimizer, Solver
        self.optimizer = call_function(self._program, "optimizer", kinds, "keras.optimizers.Optimizer")
        if isinstance(self.optimizer, Solver):
            return
        self.optimizer.build(self.model.trainable_variables)
        if self.tables:
            self.tables.follow(row_optimizer(self.optimizer), self.tables.limits)
        self._row_specs = rows[1:]
        size = tf.TensorSpec((), tf.int32)
        self._train = Variants(devices.run_on_device(device, self._steps), rows[0], label, size)
        trainable = list(map(spec_of, self.model.trainable_variables))
        self._assign_all = compile_function(self._assign_trainable, trainable)
        place = partial(devices.run_on_device, device)
        self._reduced = ReducedSteps(
            self.model.trainable_variables,
            list(self._buffers().values()),
            (*rows, label),
            self._loss_and_gradients,
            self._apply,
            self._update_rows,
            place,
        )
        self._exchanged = ExchangedSteps(
            self.model.trainable_variables,
            list(self._buffers().values()),
            self._generators(),
            (*rows, label),
            self._clipped_gradients,
            self._apply,
            place,
        )

    def train(self, rows: Minibatches) -> Floats:
        with self._user_code("the training step"):
            self._walk = self.tables.walk(rows.features, rows.size)
            losses = self._train(
                replace_lists(rows.features), rows.labels, rows.size, weights=rows.weights, rates=rows.rates
            )
        values: Floats = losses.numpy()
        return values

    def exchange_steps(self, rows: Minibatches, exchange: Exchange, first: int = 0) -> None:
        self._exchanged.run(rows, exchange, first, self._user_code("the training step"))

    def reduce_steps(self, rows: Minibatches, reduction: Reduction) -> None:
        self._reduced.run(rows, reduction, self._user_code("the training step"))

    def _update_rows(self, ids: Mapping[str, Ids], gradients: Mapping[str, Floats], rate: float) -> None:
        self.tables.update({name: RowGradients(ids[name], gradients[name]) for name in ids}, rate)

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        fetched = self._fetch_rows(features, train=False)
        with self._user_code("the evaluation"):
            outputs, loss = self._evaluate(
                replace_lists(features), fetched.blocks, fetched.places, labels, weights=weights
            )
        return Evaluated(outputs.numpy(), float(loss))

    def predict(self, features: Features) -> Array:
        fetched = self._fetch_rows(features, train=False)
        with self._user_code("the prediction"):
            outputs: Array = self._predict(replace_lists(features), fetched.blocks, fetched.places).numpy()
        return outputs

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        if EMBEDDING not in names:
            return self.predict(features), {}
        fetched = self._fetch_rows(features, train=False)
        with self._user_code("the prediction"):
            outputs, inputs = self._predict_with(replace_lists(features), fetched.blocks, fetched.places)
        embedding = flatten_inputs(inputs[-1].numpy() if inputs else None, len(outputs))
        return outputs.numpy(), {EMBEDDING: embedding}

    def input_gradients(self, features: Features, slopes_of: Callable[[Array], Array]) -> dict[str, Array]:
        slopes = slopes_of(self.predict(features))
        fetched = self._fetch_rows(features, train=False)
        with self._user_code("the model"):
            gradients = self._input_gradients(replace_lists(features), fetched.blocks, fetched.places, slopes)
        return {name: gradient.numpy() for name, gradient in gradients.items()}

    def standalone(self) -> Any:
        model = getattr(self.model, "inner", self.model)  # within a model that only arranges its outputs
        return with_rows_inside(model, self.tables)

    def _optimizer_state(self) -> dict[str, Array]:
        return self._copies(self._state())

    def set_state(self, state: Mapping[str, Array]) -> None:
        variables = self._state()
        checked_shapes(variables, {name: array for name, array in state.items() if ":" not in name})
        for name, variable in variables.items():
            variable.assign(state[name])
        self.tables.set_state(state)

    def _state(self) -> dict[str, Any]:
        """Return the optimizer's variables and the model's random generators."""
        return {
            **{f"optimizer.{number}": variable for number, variable in enumerate(self.optimizer.variables)},
            **{f"model.{number}": variable for number, variable in enumerate(self._generators())},
        }

    def set_trainable(self, values: Mapping[str, Array]) -> None:
        self._assign_all([values[name] for name in self._trained])

    def get_random(self) -> bytes:
        return pack_arrays(variable.numpy() for variable in self._generators())

    def set_random(self, state: bytes) -> None:
        generators = self._generators()
        arrays = unpack_arrays(state, [(variable.shape, variable.dtype) for variable in generators])
        for variable, array in zip(generators, arrays, strict=True):
            variable.assign(array)

    def diverge(self, seed: int) -> None:
        numbers = np.random.default_rng(seed)
        for variable in self._generators():
            kind = np.iinfo(variable.dtype)
            variable.assign(
                numbers.integers(kind.min, kind.max, variable.shape, variable.dtype, endpoint=True)
            )

    def optimizer_elsewhere(self) -> Optimizer:
        check_elsewhere(self.optimizer, self.model)
        return row_optimizer(self.optimizer)

    def learning_rate(self, step: int) -> float:
        if self._has_schedule:
            self.optimizer.iterations.assign(step)
            return float(self.optimizer.learning_rate)
        if self._rate is None:  # reading a variable takes a tenth of a small network's step
            self._rate = float(self.optimizer.learning_rate)
        return self._rate

    def set_learning_rate(self, rate: float) -> None:
        self._rate = None
        self.optimizer.learning_rate = rate

    def _variables(self) -> dict[str, Any]:
        return dict(zip(self._names, self.model.weights, strict=True))

    def _trainable(self) -> dict[str, Any]:
        return dict(zip(self._trained, self.model.trainable_variables, strict=True))

    def _array(self, variable: Any) -> Array:
        values: Array = variable.numpy()
        return values

    def _assign(self, variable: Any, values: Array) -> None:
        variable.assign(values)

    def _generators(self) -> list[Any]:
        """Return the model's variables that are not weights: its random generators."""
        weights = {id(weight) for weight in self.model.weights}
        return [variable for variable in self.model.variables if id(variable) not in weights]

    # In the graph ----------------------------------------------------------------------------------------

    def _steps(self, features: Any, labels: Tensor, size: Tensor, optional: Given) -> Tensor:
        """Take a step for each `size` rows; return the losses, (steps,). `optional` has weights (rows,) and rates
        (steps,).
        """
        steps = (tf.shape(labels)[0] + size - 1) // size

        def step(number: Tensor, losses: tf.TensorArray) -> tuple[Tensor, tf.TensorArray]:
            def minibatch(array: Tensor) -> Tensor:
                return array[number * size : (number + 1) * size]

            part = {"weights": minibatch(optional["weights"])} if "weights" in optional else {}
            rate = optional["rates"][number] if "rates" in optional else None
            rows = self._fetch(number)
            loss, gradients, moving = self._loss_and_gradients(
                map_arrays(minibatch, features), *rows, minibatch(labels), part
            )
            self._move(*self._apply(gradients, moving, rate))
            return number + 1, losses.write(number, loss)

        losses = tf.TensorArray(tf.float32, size=steps)
        _, losses = tf.while_loop(lambda number, _: number < steps, step, (0, losses), parallel_iterations=1)
        return losses.stack()

    def _fetch(self, number: Tensor) -> tuple[Blocks, list[Tensor]]:
        """Return the rows that the minibatch reads, from outside of the graph."""
        if not self.tables:
            return {}, []
        specs = tf.nest.flatten(self._row_specs)
        fetched = tf.numpy_function(self._fetch_now, [number], [spec.dtype for spec in specs])
        for tensor, spec in zip(fetched, specs, strict=True):
            tensor.set_shape(spec.shape)
        blocks, places = tf.nest.pack_sequence_as(self._row_specs, fetched)
        return blocks, places

    def _fetch_now(self, number: Any) -> list[Array]:
        fetched = self._walk.fetch(int(number))
        flat: list[Array] = tf.nest.flatten((fetched.blocks, fetched.places))
        return flat

    def _move(self, moving: Blocks, rate: Tensor) -> None:
        """Update the rows of the last fetched minibatch."""
        if self.tables:
            tf.numpy_function(self._move_now, [rate, *(moving[name] for name in sorted(moving))], [])

    def _move_now(self, rate: Any, *gradients: Array) -> None:
        self._walk.move(dict(zip(sorted(self.tables.tables), gradients, strict=True)), float(rate))

    def _apply(
        self, gradients: list[Tensor], blocks: Blocks, rate: Tensor | None = None
    ) -> tuple[Blocks, Tensor]:
        """Update the model's variables, at this learning rate unless it is `KEEP`. Return the row gradients, clipped
        with the others, and the learning rate.
        """
        present = tf.convert_to_tensor(self.optimizer.learning_rate)
        if rate is not None and not self._has_schedule:
            present = tf.where(rate < 0, present, rate)
            self.optimizer.learning_rate = present
        if blocks:
            gradients, blocks = clip_gradients(self.optimizer, gradients, blocks)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return blocks, present

    @property
    def _has_schedule(self) -> bool:
        """True if the optimizer computes its learning rate, which cannot be set then."""
        return isinstance(self.optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule)

    def _assign_trainable(self, values: list[Tensor]) -> None:
        for variable, value in zip(self.model.trainable_variables, values, strict=True):
            variable.assign(value)

    def _clipped_gradients(self, *arguments: Any) -> tuple[Tensor, list[Tensor], Blocks]:
        loss, gradients, blocks = self._loss_and_gradients(*arguments)
        return loss, *clip_gradients(self.optimizer, gradients, blocks)

    def _loss_and_gradients(
        self, features: Any, blocks: Blocks, places: list[Tensor], labels: Tensor, optional: Given
    ) -> tuple[Tensor, list[Tensor], Blocks]:
        """Return the loss and its gradients with respect to the variables and the row blocks."""
        with tf.GradientTape() as tape:
            tape.watch(blocks)
            loss = self._loss(labels, self._call(features, blocks, places, training=True), optional)
            # Regularization affects the gradients, and is not reported in the loss.
            total = tf.add_n([loss, *self.model.losses])
        variables = [variable.value for variable in self.model.trainable_variables]
        gradients, of_blocks = tape.gradient(
            total, (variables, blocks), unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        dense = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return loss, dense, {name: tf.convert_to_tensor(gradient) for name, gradient in of_blocks.items()}

    def _outputs_and_loss(
        self, features: Any, blocks: Blocks, places: list[Tensor], labels: Tensor, optional: Given
    ) -> tuple[Tensor, Tensor]:
        outputs = self._infer(features, blocks, places)
        return outputs, self._loss(labels, outputs, optional)

    def _infer(self, features: Any, blocks: Blocks, places: list[Tensor]) -> Tensor:
        return self._call(features, blocks, places, training=False)

    def _infer_with(self, features: Any, blocks: Blocks, places: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Return the outputs, and the input of the last linear layer, if there is one."""
        with last_inputs(self.model) as inputs:
            outputs = self._infer(features, blocks, places)
        return outputs, [tf.cast(tensor, tf.float32) for tensor in inputs[-1:]]

    def _gradients_of_inputs(
        self, features: Any, blocks: Blocks, places: list[Tensor], slopes: Tensor
    ) -> dict[str, Tensor]:
        """Return the gradient of the sum of outputs times slopes by each array of numbers."""
        numbers = {name: tensor for name, tensor in features.items() if tensor.dtype.is_floating}
        with tf.GradientTape() as tape:
            tape.watch(numbers)
            outputs = self._infer(features, blocks, places)
        zero = tf.UnconnectedGradients.ZERO
        gradients: dict[str, Tensor] = tape.gradient(outputs, numbers, slopes, zero)
        return gradients

    def _call(self, features: Any, blocks: Blocks, places: list[Tensor], *, training: bool) -> Tensor:
        with self.tables.bound(features, blocks, places):
            outputs = self.model(features, training=training)
        return tf.cast(outputs, tf.float32) if outputs.dtype in _HALF else outputs

    def _loss(self, labels: Tensor, outputs: Tensor, optional: Given) -> Tensor:
        whole, shape = labels.dtype.is_integer, tuple(outputs.shape)
        members = 0
        if self._program.checks_shapes:
            check_outputs(tuple(labels.shape), shape, whole)
            members = count_members(labels.shape.rank, shape, whole)
        if members:
            labels, outputs = tf.repeat(labels, members, axis=0), tf.reshape(outputs, (-1, shape[2]))
        losses = tf.cast(self._program.call("loss", labels, outputs), tf.float32)
        check_losses(tuple(losses.shape))
        if members and losses.shape.rank:
            losses = tf.reduce_mean(tf.reshape(losses, (-1, members)), axis=1)
        if "weights" not in optional:
            return tf.reduce_mean(losses)
        if losses.shape.rank == 0:
            raise refuse_weights_for_scalar()
        return tf.reduce_mean(tf.reshape(losses, [-1]) * optional["weights"])


def _any_fetched(fetched: Fetched) -> tuple[Any, Any]:
    """Return the signatures of blocks and positions."""
    return map_arrays(any_rows, fetched.blocks), tf.nest.map_structure(any_rows, fetched.places)


def _check_one_tensor(outputs: object) -> None:
    if isinstance(outputs, dict | list | tuple):
        raise JobError("the model has several outputs; edl trains models with one")
