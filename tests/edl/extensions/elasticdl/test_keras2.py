"""Functions of TensorFlow on symbolic tensors, and feature columns in a layer."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from edl.extensions.elasticdl.keras2 import install


@pytest.fixture(autouse=True)
def install_parts() -> None:
    install()


def test_operations_on_symbolic_tensors_are_layers() -> None:
    backend = tf.keras.backend
    inputs = tf.keras.Input(shape=(6,))
    halves = tf.reshape(inputs, (-1, 2, 3))
    total = backend.sum(0.5 * backend.square(halves), axis=1)
    model = keras.Model(inputs, tf.concat([total, tf.sigmoid(inputs)], axis=1))
    rows = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    expected = np.concatenate([(rows.reshape(5, 2, 3) ** 2).sum(1) / 2, 1 / (1 + np.exp(-rows))], axis=1)
    np.testing.assert_allclose(model(rows), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict(rows, verbose=0), expected, rtol=1e-6)


def test_an_operation_over_a_list_of_symbolic_tensors_gets_them_all() -> None:
    first, second = tf.keras.Input(shape=(2,)), tf.keras.Input(shape=(2,))
    model = keras.Model([first, second], tf.stack([first, second], axis=1))
    assert model([np.ones((3, 2)), np.zeros((3, 2))]).numpy().tolist() == [[[1, 1], [0, 0]]] * 3


def test_operations_on_tensors_stay_as_they_are() -> None:
    assert tf.reshape(tf.range(4), (2, 2)).numpy().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.reshape(tf.range(4), (3, 2))
    with pytest.raises((TypeError, ValueError)):
        tf.concat([object()], 1)


def test_feature_columns_are_side_by_side_in_the_order_of_their_names() -> None:
    column = tf.feature_column
    jobs = column.categorical_column_with_vocabulary_list("job", ["cook", "smith"])
    layer = tf.keras.layers.DenseFeatures(
        [
            column.numeric_column("size", shape=(2,)),
            column.indicator_column(jobs),
            column.bucketized_column(column.numeric_column("age"), [30, 60]),
            column.embedding_column(jobs, 3),
        ]
    )
    rows = {
        "age": tf.constant([25.0, 60.0]),
        "job": tf.constant([["smith"], ["tailor"]]),
        "size": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
    }
    dense = layer(rows).numpy()
    assert dense.shape == (2, 3 + 3 + 2 + 2) == (2, layer.compute_output_shape({"age": (2,)})[1])
    [table] = layer.trainable_weights
    np.testing.assert_array_equal(dense[0], [1, 0, 0, *table.numpy()[1], 0, 1, 1, 2])
    np.testing.assert_array_equal(dense[1], [0, 0, 1, 0, 0, 0, 0, 0, 3, 4])
