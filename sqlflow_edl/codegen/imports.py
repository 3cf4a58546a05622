"""Import lines of a generated module."""

from __future__ import annotations

from collections.abc import Mapping

from edl.spec import JobSpec
from sqlflow_edl.codegen import frameworks

# Kind of architecture -> the imports of its module from edl.keras or edl.torch.
_HELPERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "keras": {
        "deep": ("concatenated", "feature_inputs"),
        "wide_deep": ("concatenated", "feature_inputs", "weighted_sum"),
        "deepfm": ("concatenated", "feature_inputs", "weighted_sum"),
        "own": ("checked_model", "concatenated", "feature_inputs"),
        "own, arrays": ("checked_model", "feature_inputs"),
    },
    "torch": {
        "deep": ("Concatenated",),
        "wide_deep": ("Concatenated", "WeightedSum"),
        "deepfm": ("Concatenated", "WeightedSum"),
        "own": ("Concatenated", "checked_model"),
        "own, arrays": ("checked_model",),
    },
}


def imports(spec: JobSpec, kind: str, body: list[str], stored: bool) -> list[str]:
    """Return the groups of imports.

    kind: of architecture. body: of the loss. stored: lists are stored in files.
    """
    text = "\n".join(body)
    standard = [
        *(["import math"] if "math." in text else []),
        *(["from pathlib import Path"] if stored else []),
    ]
    helpers = [*_HELPERS[spec.framework][kind], *(["by_class"] if "by_class" in text else [])]
    if spec.framework == "keras":
        library = ["import keras"]
    else:
        own = spec.own.functions if spec.own else ()
        library = ["import torch"] if "optimizer" not in own or "torch." in text else []
        library += ["from torch import nn"]
        library += ["from torch.nn import functional as F"] if "F." in text else []
        helpers += ["clipped"] if frameworks.is_clipped(spec.optimizer) else []
    ours = ["from edl import features as fc"]
    ours += [f"from edl import {', '.join(modules)}"] if (modules := _modules(spec)) else []
    ours += [f"from edl.{spec.framework} import {', '.join(in_order(helpers))}"] if helpers else []
    return ["\n".join(group) for group in (standard, library, ours) if group]


def _modules(spec: JobSpec) -> list[str]:
    own_metrics = spec.own is not None and "eval_metrics_fn" in spec.own.functions
    return [*([] if own_metrics else ["metrics"]), *(["schedules"] if spec.schedule else [])]


def in_order(names: list[str]) -> list[str]:
    """Sort classes before functions, as formatters order them."""
    return sorted(names, key=lambda name: (name[0].islower(), name))
