"""Import lines of a generated module."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from edl.spec import TREES, JobSpec
from sqlflow_edl.analysis.settings.trees import LIBRARIES
from sqlflow_edl.codegen.user_model import own_import

# Classes and functions that edl.keras, edl.torch and edl.trees have for programs.
_HELPERS: Mapping[str, tuple[str, ...]] = {
    "keras": (
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
    ),
    "torch": (
        "Centres",
        "ClusterTargets",
        "Concatenated",
        "DeepClusters",
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
    ),
    **{framework: (name,) for framework, name in LIBRARIES.items()},
}
# Classes that extensions have for programs.
_OF_EXTENSIONS: Mapping[str, tuple[str, ...]] = {
    "edl.extensions.decomposition": (
        "AlternatingLeastSquares",
        "Autoencoder",
        "ExactComponents",
        "FactorProducts",
        "PrincipalComponents",
    ),
    "edl.extensions.sequences.keras": ("sequence_features",),
    "edl.extensions.sequences.torch": ("SequenceFeatures",),
}


def imports(spec: JobSpec, code: str, stored: bool) -> list[str]:
    """Return the groups of imports. edl.keras comes before keras: it sets what TensorFlow reads when it is loaded.

    code: the definition of model, loss and optimizer. stored: lists are stored in files.
    """
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    standard = ["import math"] if "math" in used else []
    if stored:
        standard.append("from pathlib import Path")
    is_keras = spec.framework == "keras"
    library = ["import keras  # after edl.keras, which sets its backend"] if is_keras else []
    if spec.framework == "torch":
        library = ["import torch"] if "torch" in used else []
        library.append("from torch import nn")
        if "F" in used:
            library.append("from torch.nn import functional as F")
    has_metrics = spec.own is None or "eval_metrics_fn" not in spec.own.functions
    uses = {"forecasting": spec.forecast, "metrics": has_metrics, "schedules": spec.schedule}
    modules = [name for name, use in uses.items() if use]
    helpers = [name for name in _HELPERS[spec.framework] if name in used]
    package = "trees" if spec.framework in TREES else spec.framework
    ours = ["from edl import features as fc"]
    if modules:
        ours.append(f"from edl import {', '.join(modules)}")
    if helpers:
        ours.append(f"from edl.{package} import {', '.join(helpers)}")
    for module, names in _OF_EXTENSIONS.items():
        if not used.isdisjoint(names):
            ours.append(f"from {module} import {', '.join(filter(used.__contains__, names))}")
    user_import = [own_import(spec.own)] if spec.own else []
    by_order = (ours, library) if is_keras else (library, ours)
    return list(map("\n".join, filter(None, (standard, *by_order, user_import))))
