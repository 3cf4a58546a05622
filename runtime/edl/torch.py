"""Layers and functions that a generated PyTorch program imports, defined in `edl.frameworks.torch`."""

from __future__ import annotations

from edl.frameworks.least_squares import LeastSquares
from edl.frameworks.newton import Newton
from edl.frameworks.torch.clusters import Centres, ClusterTargets, DeepClusters
from edl.frameworks.torch.isolation_forest import IsolationForest
from edl.frameworks.torch.layers import (
    Concatenated,
    Embedding,
    MemberOutputs,
    Members,
    WeightedSum,
    by_class,
    checked_model,
    clipped,
    joined,
    rescaled,
)
from edl.frameworks.torch.real_mlp import FeatureScales, NTPLinear
from edl.frameworks.torch.tide import TiDE, quantile_losses

__all__ = [
    "Centres",
    "ClusterTargets",
    "Concatenated",
    "DeepClusters",
    "Embedding",
    "FeatureScales",
    "IsolationForest",
    "LeastSquares",
    "MemberOutputs",
    "Members",
    "NTPLinear",
    "Newton",
    "TiDE",
    "WeightedSum",
    "by_class",
    "checked_model",
    "clipped",
    "joined",
    "quantile_losses",
    "rescaled",
]
