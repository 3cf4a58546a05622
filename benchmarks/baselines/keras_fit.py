"""Training in the style of Keras's guide: tf.data with cache, shuffle, batch and prefetch; compile, fit.

Keras decides whether to use jit.
"""

from __future__ import annotations

import time

import keras
import tensorflow as tf

from benchmarks.baselines import Arrays, main


class Clock(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self.seconds.append(time.perf_counter() - self.began)


def train(arrays: Arrays, epochs: int, batch_size: int) -> list[float]:
    x, y = arrays
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(10_000).batch(batch_size)
    model = keras.Sequential(
        [
            keras.Input((x.shape[1],)),
            *(keras.layers.Dense(units, "relu") for units in (100, 150, 50)),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss="mse")
    clock = Clock()
    model.fit(dataset.prefetch(tf.data.AUTOTUNE), epochs=epochs, verbose=0, callbacks=[clock])
    return clock.seconds


if __name__ == "__main__":
    main(train)
