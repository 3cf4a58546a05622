"""Which of three cultivars a wine is of, with a model of Keras, and with rows that stand in a table.

python samples/python/wine_keras.py              # in this process
python samples/python/wine_keras.py --workers 2  # in two workers, which run this script up to edl.train
"""

import argparse

import keras
import numpy as np
import pyarrow as pa
from sklearn.datasets import load_wine

import edl

wines = load_wine(as_frame=True)
table = pa.Table.from_pandas(wines.frame)
mean, std = wines.data.mean().to_numpy(), wines.data.std().to_numpy()


def feed(batch, mode):
    """Arrays of a record batch: all columns but the last, and the class that stands there."""
    *columns, target = batch.columns
    return (np.stack([column.to_numpy() for column in columns], axis=1) - mean) / std, target.to_numpy()


def model():
    return keras.Sequential(
        [keras.Input((13,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()

    trained = edl.train(
        model,
        table,
        feed=feed,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.Adam(0.02),
        epochs=20,
        batch_size=16,
        validation=0.3,
        metrics=["accuracy", "log_loss"],
        early_stopping=3,
        keep="best",
        workers=options.workers,
    )
    for name, value in trained.metrics.items():
        print(f"{name:<10} {value:.3f}")
