"""Layers and functions that a generated Keras program imports, defined in `edl.frameworks.keras`."""

from __future__ import annotations

from edl.frameworks.keras.layers import (
    Embedding,
    by_class,
    checked_model,
    concatenated,
    feature_inputs,
    joined,
    member_inputs,
    member_outputs,
    weighted_sum,
)
from edl.frameworks.keras.real_mlp import FeatureScales, NTPDense
from edl.frameworks.least_squares import LeastSquares
from edl.frameworks.newton import Newton

__all__ = [
    "Embedding",
    "FeatureScales",
    "LeastSquares",
    "NTPDense",
    "Newton",
    "by_class",
    "checked_model",
    "concatenated",
    "feature_inputs",
    "joined",
    "member_inputs",
    "member_outputs",
    "weighted_sum",
]
