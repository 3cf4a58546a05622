"""Layers and functions that a generated PyTorch program imports, defined in `edl.frameworks.torch.layers`."""

from __future__ import annotations

from edl.frameworks.torch.layers import (
    Concatenated,
    Embedding,
    MemberOutputs,
    Members,
    WeightedSum,
    by_class,
    checked_model,
    clipped,
)

__all__ = [
    "Concatenated",
    "Embedding",
    "MemberOutputs",
    "Members",
    "WeightedSum",
    "by_class",
    "checked_model",
    "clipped",
]
