"""Bare Keras loop: tensors in memory, a compiled training step, a Python loop over minibatches."""

from __future__ import annotations

import time

import keras
import numpy as np
import tensorflow as tf

from benchmarks.baselines import Arrays, main


def train(arrays: Arrays, epochs: int, batch_size: int) -> list[float]:
    x, y = arrays
    model = keras.Sequential(
        [
            keras.Input((x.shape[1],)),
            *(keras.layers.Dense(units, "relu") for units in (100, 150, 50)),
            keras.layers.Dense(1),
        ]
    )
    optimizer = keras.optimizers.Adam(0.001)
    optimizer.build(model.trainable_variables)

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]
    def step(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(features, training=True) - labels))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    seconds = []
    for epoch in range(epochs):
        began = time.perf_counter()
        order = np.random.default_rng(epoch).permutation(len(x))
        features, labels = tf.constant(x[order]), tf.constant(y[order])
        for start in range(0, len(x), batch_size):
            loss = step(features[start : start + batch_size], labels[start : start + batch_size])
        loss.numpy()
        seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    main(train)
