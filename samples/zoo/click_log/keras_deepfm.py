"""Who clicks: DeepFM in Keras, a weight and a vector for each of 2.6 million ids, in row tables.

The log-odds are the sum of the weights, the products of all pairs of vectors, and what a network makes of the vectors.
With `linear = True` they are the weights alone.
"""

import keras

from edl import metrics
from edl.keras import Embedding

from .rows import FIELDS, IDS, LABEL, ids_and_clicks


def custom_model(dim=8, hidden_units=(128, 64), linear=False):
    ids = keras.Input((FIELDS,), dtype="int64")
    weights = Embedding("weights", 1, "sum", initial="zeros", num_ids=FIELDS * IDS)(ids)
    if linear:
        return keras.Model(ids, Bias()(weights))
    vectors = Embedding("vectors", dim, num_ids=FIELDS * IDS)(ids)
    hidden = keras.layers.Flatten()(vectors)
    for units in hidden_units:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
    deep = keras.layers.Dense(1)(hidden)
    return keras.Model(ids, weights + products(vectors) + deep)


def products(vectors):
    """Return the sum of the products of all pairs: (n, fields, dim) to (n, 1)."""
    square_of_sum = keras.ops.square(keras.ops.sum(vectors, axis=1))
    sum_of_squares = keras.ops.sum(keras.ops.square(vectors), axis=1)
    return keras.ops.sum(square_of_sum - sum_of_squares, axis=1, keepdims=True) / 2


class Bias(keras.layers.Layer):
    """A number that is added."""

    def build(self, shape):
        self.bias = self.add_weight((1,), initializer="zeros")

    def call(self, values):
        return values + self.bias


def loss(labels, predictions):
    return keras.losses.binary_crossentropy(labels, predictions, from_logits=True)


def optimizer(lr=0.001):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    return ids_and_clicks(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)


def eval_metrics_fn():
    return {"auc": metrics.AUC()}
