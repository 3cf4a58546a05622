"""Keras on TensorFlow.

Steps over many minibatches are one `tf.function` with a loop in the graph: no trip to Python between two steps. It is
traced once per job, because its signature leaves the number of rows open; the last, smaller minibatch takes the same
way. (XLA gains nothing on top and compiles anew for every number of rows.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

import edl.keras  # noqa: F401 (refuses another backend)
from edl.errors import JobError
from edl.nn.adapter import (
    Evaluated,
    Floats,
    Gradients,
    Minibatches,
    check_fit,
    check_losses,
    check_outputs,
    refuse_weights_for_scalar,
)
from edl.nn.structure import Array, Features, map_arrays
from edl.program import Program, user_code

Tensor = Any
Given = Mapping[str, Tensor]  # weights, rates: those that a call has


def start(threads: int) -> None:
    with contextlib.suppress(RuntimeError):  # TensorFlow is running: its pools keep their size
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.experimental.enable_op_determinism()


def seed(value: int) -> None:
    keras.backend.clear_session()
    keras.utils.set_random_seed(value % 2**32)


def create(program: Program, features: Features, labels: Array | None) -> KerasAdapter:
    model = program.call("custom_model")
    if not isinstance(model, keras.Model):
        raise JobError(f"custom_model in {program.file} returns a {type(model).__name__}, not a keras.Model")
    return KerasAdapter(program, model, features, labels)


class KerasAdapter:
    framework = "keras"

    def __init__(
        self, program: Program, model: keras.Model, features: Features, labels: Array | None
    ) -> None:
        self.model = model
        self._program = program
        with user_code(program.file, "the model"):
            outputs = model(features, training=False)  # creates the weights of layers that wait for a shape
        _check_one_tensor(outputs)
        self._names = [f"{position}.{weight.name}" for position, weight in enumerate(model.weights)]
        self._trainable = _names_of(model.trainable_variables, model.weights, self._names)
        rows = map_arrays(_any_rows, features)
        self._predict = _compiled(self._infer, rows)
        if labels is not None:
            self._prepare_training(rows, labels, outputs)

    def _prepare_training(self, rows: Any, labels: Array, outputs: Tensor) -> None:
        check_outputs(labels.shape, tuple(outputs.shape), labels.dtype.kind == "i")
        self.optimizer = self._program.call("optimizer")
        if not isinstance(self.optimizer, keras.optimizers.Optimizer):
            kind = type(self.optimizer).__name__
            raise JobError(
                f"optimizer in {self._program.file} returns a {kind}, not a keras.optimizers.Optimizer"
            )
        self.optimizer.build(self.model.trainable_variables)
        label, size = _any_rows(labels), tf.TensorSpec((), tf.int32)
        self._train = _Variants(self._steps, rows, label, size)
        self._gradients = _Variants(self._loss_and_gradients, rows, label)
        self._evaluate = _Variants(self._outputs_and_loss, rows, label)

    def train(self, rows: Minibatches) -> Floats:
        with self._user_code("the training step"):
            losses = self._train(
                rows.features, rows.labels, rows.size, weights=rows.weights, rates=rows.rates
            )
        values: Floats = losses.numpy()
        return values

    def gradients(self, features: Features, labels: Array, weights: Floats | None = None) -> Gradients:
        with self._user_code("the training step"):
            loss, gradients = self._gradients(features, labels, weights=weights)
        return Gradients(float(loss), dict(zip(self._trainable, gradients, strict=True)))

    def apply(self, gradients: Mapping[str, Any]) -> None:
        ordered = [tf.convert_to_tensor(gradients[name]) for name in self._trainable]
        self.optimizer.apply(ordered, self.model.trainable_variables)

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        with self._user_code("the evaluation"):
            outputs, loss = self._evaluate(features, labels, weights=weights)
        return Evaluated(outputs.numpy(), float(loss))

    def predict(self, features: Features) -> Array:
        with self._user_code("the prediction"):
            outputs: Array = self._predict(features).numpy()
        return outputs

    def get_weights(self) -> dict[str, Array]:
        return {
            name: weight.numpy().copy() for name, weight in zip(self._names, self.model.weights, strict=True)
        }

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        own = dict(zip(self._names, self.model.weights, strict=True))
        check_fit({name: tuple(weight.shape) for name, weight in own.items()}, weights)
        for name, weight in own.items():
            weight.assign(weights[name])

    def set_learning_rate(self, rate: float) -> None:
        self.optimizer.learning_rate = rate

    # In the graph ----------------------------------------------------------------------------------------

    def _steps(self, features: Any, labels: Tensor, size: Tensor, given: Given) -> Tensor:
        """A step for each `size` rows; the losses, (steps,). given: weights (rows,), rates (steps,)."""
        steps = (tf.shape(labels)[0] + size - 1) // size

        def step(number: Tensor, losses: tf.TensorArray) -> tuple[Tensor, tf.TensorArray]:
            def minibatch(array: Tensor) -> Tensor:
                return array[number * size : (number + 1) * size]

            part = {"weights": minibatch(given["weights"])} if "weights" in given else {}
            if "rates" in given:
                self.optimizer.learning_rate = given["rates"][number]
            loss, gradients = self._loss_and_gradients(
                map_arrays(minibatch, features), minibatch(labels), part
            )
            self.optimizer.apply(gradients, self.model.trainable_variables)
            return number + 1, losses.write(number, loss)

        losses = tf.TensorArray(tf.float32, size=steps)
        _, losses = tf.while_loop(lambda number, _: number < steps, step, (0, losses), parallel_iterations=1)
        return losses.stack()

    def _loss_and_gradients(self, features: Any, labels: Tensor, given: Given) -> tuple[Tensor, list[Tensor]]:
        with tf.GradientTape() as tape:
            loss = self._loss(labels, self.model(features, training=True), given)
            total = tf.add_n(
                [loss, *self.model.losses]
            )  # penalties move weights, and are no part of the figure
        variables = [variable.value for variable in self.model.trainable_variables]
        gradients = tape.gradient(total, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _outputs_and_loss(self, features: Any, labels: Tensor, given: Given) -> tuple[Tensor, Tensor]:
        outputs = self.model(features, training=False)
        return outputs, self._loss(labels, outputs, given)

    def _infer(self, features: Any) -> Tensor:
        return self.model(features, training=False)

    def _loss(self, labels: Tensor, outputs: Tensor, given: Given) -> Tensor:
        check_outputs(tuple(labels.shape), tuple(outputs.shape), labels.dtype.is_integer)
        losses = tf.cast(self._program.call("loss", labels, outputs), tf.float32)
        check_losses(tuple(losses.shape))
        if "weights" not in given:
            return tf.reduce_mean(losses)
        if losses.shape.rank == 0:
            raise refuse_weights_for_scalar()
        return tf.reduce_mean(tf.reshape(losses, [-1]) * given["weights"])

    def _user_code(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return user_code(self._program.file, doing)


class _Variants:
    """A compiled function for each combination of optional arguments that it is called with, traced when it is.

    The function takes those that are not None as its last argument, name -> float32 (n,).
    """

    def __init__(self, function: Callable[..., Any], *signature: Any) -> None:
        self._function = function
        self._signature = signature
        self._compiled: dict[tuple[str, ...], Any] = {}

    def __call__(self, *arguments: Any, **optional: Floats | None) -> Any:
        given = {name: array for name, array in optional.items() if array is not None}
        names = tuple(given)
        if names not in self._compiled:
            last = {name: tf.TensorSpec((None,), tf.float32) for name in names}
            self._compiled[names] = _compiled(self._function, *self._signature, last)
        return self._compiled[names](*arguments, given)


def _compiled(function: Callable[..., Any], *signature: Any) -> Any:
    return tf.function(function, input_signature=signature, autograph=False)


def _any_rows(array: Array) -> tf.TensorSpec:
    return tf.TensorSpec((None, *array.shape[1:]), array.dtype)


def _names_of(variables: list[Any], weights: list[Any], names: list[str]) -> list[str]:
    by_id = {id(weight): name for weight, name in zip(weights, names, strict=True)}
    return [by_id[id(variable)] for variable in variables]


def _check_one_tensor(outputs: object) -> None:
    if isinstance(outputs, dict | list | tuple):
        raise JobError("the model has several outputs; edl trains models with one")
