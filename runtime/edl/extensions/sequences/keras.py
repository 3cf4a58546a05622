"""Sequences of ids and other features as one tensor, for generated Keras programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from edl.features import Features
from edl.frameworks.keras.layers import concatenated


def sequence_features(
    features: Features, inputs: dict[str, Any], layer: str, dim: int, units: Sequence[int]
) -> Any:
    """Return features and what is read of each sequence, side by side: (rows, width).

    layer, dim, units: as of `edl.extensions.sequences.torch.SequenceFeatures`.
    """
    others = [column for column in features.columns if column.array != "sequence"]
    blocks = [concatenated(Features(*others), inputs)] if others else []
    for entry in features.entries:
        if entry.kind == "sequence":
            size = getattr(entry.feature, "vector", 0) or dim  # 0 where it is unset
            vectors = keras.layers.Embedding(entry.num_ids, size, mask_zero=layer == "bilstm")(
                inputs[entry.name]
            )
            if layer == "bilstm":
                blocks.append(_read_both_ways(vectors, units))
            else:
                blocks.append(_attend(vectors, inputs[entry.name], size))
    return blocks[0] if len(blocks) == 1 else keras.layers.Concatenate()(blocks)


def _read_both_ways(vectors: Any, units: Sequence[int]) -> Any:
    """Return the states of stacked bidirectional LSTMs at both ends: (rows, 2 units)."""
    *lower, last = units
    for number in lower:
        vectors = keras.layers.Bidirectional(keras.layers.LSTM(number, return_sequences=True))(vectors)
    return keras.layers.Bidirectional(keras.layers.LSTM(last))(vectors)


def _attend(vectors: Any, ids: Any, dim: int) -> Any:
    """Return the mean of what a layer makes of the vectors and their positions, with learned weights: (rows, dim)."""
    positions = keras.ops.cumsum(keras.ops.ones_like(ids), axis=1) - 1
    deviation = keras.initializers.RandomNormal(0.0, dim**-0.5)
    vectors = vectors + keras.layers.Embedding(ids.shape[1], dim, embeddings_initializer=deviation)(positions)
    vectors = keras.layers.Dense(dim, activation="relu")(vectors)
    is_id = keras.ops.cast(keras.ops.expand_dims(ids > 0, 2), "float32")
    scores = keras.layers.Dense(1)(vectors) - 1e9 * (1 - is_id)
    weights = keras.ops.softmax(scores, axis=1) * is_id
    return keras.ops.sum(weights * vectors, axis=1)
