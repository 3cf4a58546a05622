"""Training loops of Keras with `optimizer.apply`, in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from edl.errors import JobError, SemanticError
from edl.extensions import elastic
from edl.extensions.elastic.keras_optimizer import Variables
from edl.extensions.elastic.state import ScriptState

X = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def model(*more: keras.Layer) -> keras.Model:
    return keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.2)), *more]
    )


class Loop:
    """A model with a batch normalization, and its loop. `seen` has the rows of each part."""

    def __init__(self, *more: keras.Layer) -> None:
        self.model = model(*more)
        self.optimizer = keras.optimizers.SGD(0.1, momentum=0.5)
        self.seen: list[Any] = []

    def elastic(self, micro_batch: int = 0) -> Loop:
        dataset = elastic.dataset(50, batch_size=16, epochs=2, micro_batch=micro_batch)
        elastic.checkpoint(self.model, self.optimizer)

        @elastic.run
        def train() -> None:
            for _ in dataset.epochs():
                self.train(dataset)

        train()
        return self

    def train(self, parts: Any) -> Loop:
        for rows in parts:
            self.seen.append(rows)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(X[rows], training=True) - Y[rows]) ** 2)
            variables = self.model.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
        return self

    @property
    def weights(self) -> list[float]:
        return [float(each) for array in self.model.get_weights() for each in array.reshape(-1)]


def test_the_loop_computes_what_a_plain_one_computes() -> None:
    loop = Loop(keras.layers.BatchNormalization()).elastic()
    assert [len(part) for part in loop.seen] == [16, 16, 16, 2] * 2
    plain = Loop(keras.layers.BatchNormalization()).train(loop.seen)
    assert loop.weights == pytest.approx(plain.weights, rel=1e-6)
    assert int(loop.optimizer.iterations) == 8


def test_accumulated_micro_batches_give_the_same_gradients() -> None:
    halves, whole = Loop().elastic(micro_batch=5), Loop().elastic()
    assert max(map(len, halves.seen)) == 5
    assert halves.weights == pytest.approx(whole.weights, abs=1e-6)
    assert int(halves.optimizer.iterations) == 8


def test_a_model_and_its_optimizer_continue_with_the_state_of_others() -> None:
    ours, theirs = Loop(), Loop().elastic()
    ours.optimizer.build(ours.model.trainable_variables)
    states = [
        ScriptState([Variables(each.model.weights), Variables(each.optimizer.variables)])
        for each in (ours, theirs)
    ]
    states[0].set_weights(states[1].get_weights())
    states[0].set_state(states[1].get_state())
    assert ours.weights == theirs.weights
    assert int(ours.optimizer.iterations) == 8
    assert np.asarray(ours.optimizer.variables[2]).any()  # momentum
    with pytest.raises(JobError, match="models of different shapes"):
        Variables(model(keras.layers.Dense(2)).weights).load_state_dict(
            Variables(ours.model.weights).state_dict()
        )


def without_weights() -> None:
    elastic.checkpoint(keras.Sequential([keras.layers.Dense(1)]), keras.optimizers.SGD())


def weights_of_another_model() -> None:
    loop = Loop()
    elastic.checkpoint(loop.model, loop.optimizer)
    loop.optimizer.apply([tf.ones((3, 1)), tf.ones(1)], model().trainable_variables)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (without_weights, "has no weights yet"),
        (weights_of_another_model, "is not a trainable weight of the model"),
    ],
)
def test_misuse_is_named(call: Callable[[], None], text: str) -> None:
    with pytest.raises(SemanticError, match=text):
        call()


def test_a_step_inside_of_a_tf_function_says_where_it_belongs() -> None:
    loop = Loop()
    elastic.checkpoint(loop.model, loop.optimizer)
    step = tf.function(lambda: loop.optimizer.apply([tf.ones((3, 1)), tf.ones(1)]))
    with pytest.raises(Exception, match="return the gradients from it, and apply them outside"):
        step()
