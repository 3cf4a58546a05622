"""DeepFM in the style of Keras's guides, with Embedding layers for each column: tf.data, compile, fit."""

from __future__ import annotations

import keras
import tensorflow as tf

from benchmarks.baselines.clicks import DIM, HIDDEN_UNITS, IDS, Clicks, main_clicks
from benchmarks.baselines.keras_fit import Clock


def model_of(columns: int) -> keras.Model:
    ids = [keras.Input((), dtype="int64") for _ in range(columns)]
    vectors = [keras.layers.Embedding(IDS, DIM)(each) for each in ids]
    weights = [keras.layers.Embedding(IDS, 1, embeddings_initializer="zeros")(each) for each in ids]
    hidden = keras.layers.Concatenate()(vectors)
    for units in HIDDEN_UNITS:
        hidden = keras.layers.Dense(units, "relu")(hidden)
    stacked = keras.ops.stack(vectors, axis=1)
    square_of_sum = keras.ops.square(keras.ops.sum(stacked, axis=1))
    sum_of_squares = keras.ops.sum(keras.ops.square(stacked), axis=1)
    pairs = 0.5 * keras.ops.sum(square_of_sum - sum_of_squares, axis=1, keepdims=True)
    return keras.Model(ids, keras.layers.Add()([*weights, pairs, keras.layers.Dense(1)(hidden)]))


def train(rows: Clicks, epochs: int, batch_size: int) -> list[float]:
    dataset = tf.data.Dataset.from_tensor_slices((tuple(rows.ids), rows.clicks))
    dataset = dataset.cache().shuffle(10_000).batch(batch_size).prefetch(tf.data.AUTOTUNE)
    model = model_of(len(rows.ids))
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss=loss)
    clock = Clock()
    model.fit(dataset, epochs=epochs, verbose=0, callbacks=[clock])
    return clock.seconds


if __name__ == "__main__":
    main_clicks(train)
