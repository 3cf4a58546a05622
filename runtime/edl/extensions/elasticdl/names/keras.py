"""Names of `tensorflow.python.keras`: names of Keras 3, and functions that only Keras 2 had.

A name is looked up in `tf.keras` and in its modules, so that the one module answers for all below it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from edl.extensions.elasticdl.keras2 import DenseFeatures as DenseFeatures

_MODULES = (
    "layers",
    "metrics",
    "losses",
    "backend",
    "regularizers",
    "initializers",
    "constraints",
    "activations",
)
_MORE = ("optimizers", "callbacks", "models", "utils", "preprocessing", "applications", "datasets")


def accuracy(labels: Any, predictions: Any) -> Any:
    """Return 1.0 where a prediction equals its label, else 0.0."""
    return tf.cast(tf.equal(labels, predictions), tf.float32)


def __getattr__(name: str) -> Any:
    for place in (tf.keras, *(getattr(tf.keras, module) for module in (*_MODULES, *_MORE))):
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"Keras 3 has no {name}")
