"""Who clicks: wide and deep in Keras. The network alone has to find what pairs of ids have to do with each other."""

import keras

from edl.keras import Embedding

from .keras_deepfm import LABEL, eval_metrics_fn, feed, loss, optimizer, scores
from .rows import FIELDS, IDS

__all__ = ["LABEL", "custom_model", "eval_metrics_fn", "feed", "loss", "optimizer", "scores"]


def custom_model(dim=8, hidden_units=(256, 128)):
    ids = keras.Input((FIELDS,), dtype="int64")
    wide = Embedding("weights", 1, "sum", initial="zeros", num_ids=FIELDS * IDS)(ids)
    hidden = keras.layers.Flatten()(Embedding("vectors", dim, num_ids=FIELDS * IDS)(ids))
    for units in hidden_units:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
    return keras.Model(ids, wide + keras.layers.Dense(1)(hidden))
