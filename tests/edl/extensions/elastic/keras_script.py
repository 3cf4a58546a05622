"""A training loop of a user with Keras: `keras_script.py FOLDER KILLS PAUSE LOADERS MICRO`, see `script.py`."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import edl

ROWS, EPOCHS = 610, 5
FOLDER, KILLS, PAUSE = Path(sys.argv[1]), json.loads(sys.argv[2]), float(sys.argv[3])
MICRO = int(sys.argv[5])
RANK, RESTART = (int(os.environ.get(name, "0")) for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))
WORKERS = int(os.environ.get("WORLD_SIZE", "1"))

features = np.random.default_rng(0).standard_normal((ROWS, 4)).astype(np.float32)
labels = features @ np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
first = keras.initializers.Constant(0.1 if RESTART == 0 else 7.0)  # a replacement must get them from a peer
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer=first)])
optimizer = keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.05, 10, 0.8), momentum=0.9)
dataset = edl.elastic.dataset(ROWS, batch_size=50, epochs=EPOCHS, micro_batch=MICRO)
edl.elastic.checkpoint(model, optimizer)
(FOLDER / f"pid-{RANK}").write_text(str(os.getpid()))


@tf.function
def gradients_of(x: tf.Tensor, y: tf.Tensor) -> list[tf.Tensor]:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    found: list[tf.Tensor] = tape.gradient(loss, model.trainable_variables)
    return found


@edl.elastic.run
def train() -> None:
    for epoch in dataset.epochs():
        for step, rows in enumerate(dataset):
            missing = epoch == 0 and edl.elastic.world_size() < WORKERS
            threading.Event().wait(0.5 if missing else PAUSE)  # time for another worker to join
            gradients = gradients_of(tf.constant(features[rows]), tf.constant(labels[rows]))
            if step >= 2 and [RANK, RESTART, epoch] in KILLS:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            with (FOLDER / f"rows-{RANK}-{RESTART}").open("a") as file:
                print(json.dumps([epoch, edl.elastic.world_size(), rows.tolist()]), file=file)


train()
if edl.elastic.rank() == 0:
    found = [float(each) for weights in model.get_weights() for each in weights.reshape(-1)]
    (FOLDER / "weights").write_text(json.dumps(found))
