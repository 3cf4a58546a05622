"""Layers and functions that a generated Keras program imports, defined in `edl.frameworks.keras.layers`."""

from __future__ import annotations

from edl.frameworks.keras.layers import (
    Embedding,
    by_class,
    checked_model,
    concatenated,
    feature_inputs,
    member_inputs,
    member_outputs,
    weighted_sum,
)

__all__ = [
    "Embedding",
    "by_class",
    "checked_model",
    "concatenated",
    "feature_inputs",
    "member_inputs",
    "member_outputs",
    "weighted_sum",
]
