"""Import lines of a generated module."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from edl.spec import JobSpec

# Classes and functions that edl.keras and edl.torch have for programs.
_HELPERS: Mapping[str, tuple[str, ...]] = {
    "keras": (
        "FeatureScales",
        "NTPDense",
        "by_class",
        "checked_model",
        "concatenated",
        "feature_inputs",
        "joined",
        "member_inputs",
        "member_outputs",
        "weighted_sum",
    ),
    "torch": (
        "Centres",
        "ClusterTargets",
        "Concatenated",
        "DeepClusters",
        "FeatureScales",
        "IsolationForest",
        "MemberOutputs",
        "Members",
        "NTPLinear",
        "TiDE",
        "WeightedSum",
        "by_class",
        "checked_model",
        "clipped",
        "joined",
        "quantile_losses",
        "rescaled",
    ),
}


def imports(spec: JobSpec, code: str, stored: bool) -> list[str]:
    """Return the groups of imports.

    code: the definition of model, loss and optimizer. stored: lists are stored in files.
    """
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    standard = [
        *(["import math"] if "math" in used else []),
        *(["from pathlib import Path"] if stored else []),
    ]
    if spec.framework == "keras":
        library = ["import keras"]
    else:
        library = [
            *(["import torch"] if "torch" in used else []),
            "from torch import nn",
            *(["from torch.nn import functional as F"] if "F" in used else []),
        ]
    helpers = [name for name in _HELPERS[spec.framework] if name in used]
    ours = ["from edl import features as fc"]
    ours += [f"from edl import {', '.join(modules)}"] if (modules := _modules(spec)) else []
    ours += [f"from edl.{spec.framework} import {', '.join(helpers)}"] if helpers else []
    return ["\n".join(group) for group in (standard, library, ours) if group]


def _modules(spec: JobSpec) -> list[str]:
    own_metrics = spec.own is not None and "eval_metrics_fn" in spec.own.functions
    found = ["forecasting"] if spec.forecast else []
    return [*found, *([] if own_metrics else ["metrics"]), *(["schedules"] if spec.schedule else [])]


def in_order(names: list[str]) -> list[str]:
    """Sort classes before functions, as formatters order them."""
    return sorted(names, key=lambda name: (name[0].islower(), name))
