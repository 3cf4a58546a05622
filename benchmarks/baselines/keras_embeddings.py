"""Keras as its guide writes it, with an Embedding layer for each category: tf.data, compile, fit."""

from __future__ import annotations

import keras
import tensorflow as tf

from benchmarks.baselines import Embedded, main_embedded
from benchmarks.baselines.keras_fit import Clock


def model_of(rows: Embedded) -> keras.Model:
    numbers = keras.Input((rows.numbers.shape[1],))
    ids = [keras.Input((), dtype="int64") for _ in rows.sizes]
    vectors = [keras.layers.Embedding(*size)(each) for size, each in zip(rows.sizes, ids, strict=True)]
    hidden = keras.layers.Concatenate()([numbers, *vectors])
    for units in rows.hidden_units:
        hidden = keras.layers.Dense(units, "relu")(hidden)
    outputs = keras.layers.Dense(1)(hidden)
    if rows.factorized:
        weights = [
            keras.layers.Embedding(size, 1)(each) for (size, _), each in zip(rows.sizes, ids, strict=True)
        ]
        linear = [keras.layers.Dense(1, use_bias=False)(numbers), *weights]
        stacked = keras.ops.stack(vectors, axis=1)
        square_of_sum = keras.ops.square(keras.ops.sum(stacked, axis=1))
        sum_of_squares = keras.ops.sum(keras.ops.square(stacked), axis=1)
        pairs = 0.5 * keras.ops.sum(square_of_sum - sum_of_squares, axis=1, keepdims=True)
        outputs = keras.layers.Add()([outputs, pairs, *linear])
    return keras.Model([numbers, *ids], outputs)


def train(rows: Embedded, epochs: int, batch_size: int) -> list[float]:
    labels = (rows.labels - rows.mean) / rows.std
    inputs = (rows.numbers, *rows.ids)
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).cache().shuffle(10_000).batch(batch_size)
    model = model_of(rows)
    loss = keras.losses.BinaryCrossentropy(from_logits=True) if rows.factorized else "mse"
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss=loss)
    clock = Clock()
    model.fit(dataset.prefetch(tf.data.AUTOTUNE), epochs=epochs, verbose=0, callbacks=[clock])
    return clock.seconds


if __name__ == "__main__":
    main_embedded(train)
