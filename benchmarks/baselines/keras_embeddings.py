"""Training in the style of Keras's guide, with an Embedding layer for each category: tf.data, compile, fit."""

from __future__ import annotations

import keras
import tensorflow as tf

from benchmarks.baselines import Embedded, main_embedded
from benchmarks.baselines.keras_fit import Clock


def model_of(rows: Embedded) -> keras.Model:
    numbers = keras.Input((rows.numbers.shape[1],))
    ids = [keras.Input((), dtype="int64") for _ in rows.deep.ids]
    linear_ids = [keras.Input((), dtype="int64") for _ in rows.linear.ids]
    vectors = [keras.layers.Embedding(*size)(each) for size, each in zip(rows.deep.sizes, ids, strict=True)]
    hidden = keras.layers.Concatenate()([numbers, *vectors])
    for units in rows.hidden_units:
        hidden = keras.layers.Dense(units, "relu")(hidden)
    outputs = [keras.layers.Dense(1)(hidden)]
    for (size, _), each in zip(rows.linear.sizes, linear_ids, strict=True):
        outputs.append(keras.layers.Embedding(size, 1)(each))
    if rows.linear.ids:
        outputs.append(keras.layers.Dense(1, use_bias=False)(numbers))
    if rows.pairs:
        stacked = keras.ops.stack(vectors, axis=1)
        square_of_sum = keras.ops.square(keras.ops.sum(stacked, axis=1))
        sum_of_squares = keras.ops.sum(keras.ops.square(stacked), axis=1)
        outputs.append(0.5 * keras.ops.sum(square_of_sum - sum_of_squares, axis=1, keepdims=True))
    added = keras.layers.Add()(outputs) if len(outputs) > 1 else outputs[0]
    return keras.Model([numbers, *ids, *linear_ids], added)


def train(rows: Embedded, epochs: int, batch_size: int) -> list[float]:
    labels = (rows.labels - rows.mean) / rows.std
    inputs = tuple(rows.arrays)
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).cache().shuffle(10_000).batch(batch_size)
    model = model_of(rows)
    loss = keras.losses.BinaryCrossentropy(from_logits=True) if rows.linear.ids else "mse"
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss=loss)
    clock = Clock()
    model.fit(dataset.prefetch(tf.data.AUTOTUNE), epochs=epochs, verbose=0, callbacks=[clock])
    return clock.seconds


if __name__ == "__main__":
    main_embedded(train)
