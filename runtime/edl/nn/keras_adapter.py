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
        label, weight, size = (
            _any_rows(labels),
            tf.TensorSpec((None,), tf.float32),
            tf.TensorSpec((), tf.int32),
        )
        self._train = _compiled(self._steps, rows, label, size)
        self._train_weighted = _compiled(self._steps, rows, label, size, weight)
        self._gradients = _compiled(self._loss_and_gradients, rows, label)
        self._gradients_weighted = _compiled(self._loss_and_gradients, rows, label, weight)
        self._evaluate = _compiled(self._outputs_and_loss, rows, label)

    def train(self, rows: Minibatches) -> Floats:
        with self._user_code("the training step"):
            if rows.weights is None:
                losses = self._train(rows.features, rows.labels, rows.size)
            else:
                losses = self._train_weighted(rows.features, rows.labels, rows.size, rows.weights)
        values: Floats = losses.numpy()
        return values

    def gradients(self, features: Features, labels: Array, weights: Floats | None = None) -> Gradients:
        with self._user_code("the training step"):
            if weights is None:
                loss, gradients = self._gradients(features, labels)
            else:
                loss, gradients = self._gradients_weighted(features, labels, weights)
        return Gradients(float(loss), dict(zip(self._trainable, gradients, strict=True)))

    def apply(self, gradients: Mapping[str, Any]) -> None:
        ordered = [tf.convert_to_tensor(gradients[name]) for name in self._trainable]
        self.optimizer.apply(ordered, self.model.trainable_variables)

    def evaluate(self, features: Features, labels: Array) -> Evaluated:
        with self._user_code("the evaluation"):
            outputs, loss = self._evaluate(features, labels)
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

    def _steps(self, features: Any, labels: Tensor, size: Tensor, weights: Tensor | None = None) -> Tensor:
        """A step for each `size` rows; the losses, (steps,)."""
        steps = (tf.shape(labels)[0] + size - 1) // size

        def step(number: Tensor, losses: tf.TensorArray) -> tuple[Tensor, tf.TensorArray]:
            def minibatch(array: Tensor) -> Tensor:
                return array[number * size : (number + 1) * size]

            part = None if weights is None else minibatch(weights)
            loss, gradients = self._loss_and_gradients(
                map_arrays(minibatch, features), minibatch(labels), part
            )
            self.optimizer.apply(gradients, self.model.trainable_variables)
            return number + 1, losses.write(number, loss)

        losses = tf.TensorArray(tf.float32, size=steps)
        _, losses = tf.while_loop(lambda number, _: number < steps, step, (0, losses), parallel_iterations=1)
        return losses.stack()

    def _loss_and_gradients(
        self, features: Any, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        with tf.GradientTape() as tape:
            loss = self._mean_loss(labels, self.model(features, training=True), weights)
            total = tf.add_n(
                [loss, *self.model.losses]
            )  # penalties move weights, and are no part of the figure
        variables = [variable.value for variable in self.model.trainable_variables]
        gradients = tape.gradient(total, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _outputs_and_loss(self, features: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self.model(features, training=False)
        return outputs, self._mean_loss(labels, outputs, None)

    def _infer(self, features: Any) -> Tensor:
        return self.model(features, training=False)

    def _mean_loss(self, labels: Tensor, outputs: Tensor, weights: Tensor | None) -> Tensor:
        check_outputs(tuple(labels.shape), tuple(outputs.shape), labels.dtype.is_integer)
        losses = tf.cast(self._program.call("loss", labels, outputs), tf.float32)
        check_losses(tuple(losses.shape))
        if weights is None:
            return tf.reduce_mean(losses)
        if losses.shape.rank == 0:
            raise refuse_weights_for_scalar()
        return tf.math.divide_no_nan(
            tf.tensordot(tf.reshape(losses, [-1]), weights, 1), tf.reduce_sum(weights)
        )

    def _user_code(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return user_code(self._program.file, doing)


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
