"""Models of trees in a generated program: the parameters of the library, and its name of the objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edl.spec import ClassLabel, JobSpec, RegressionLabel
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.codegen.source import Call, Expression, layout, literal

# Loss -> the library's objective; of classes, for two and for more.
_OBJECTIVES: Mapping[str, Mapping[str, str]] = {
    "lightgbm": {
        "mean_squared_error": "regression",
        "mean_absolute_error": "regression_l1",
        "huber": "huber",
        "quantile": "quantile",
        "poisson": "poisson",
        "gamma": "gamma",
        "tweedie": "tweedie",
        "lambdarank": "lambdarank",
        "xendcg": "rank_xendcg",
        "two classes": "binary",
        "classes": "multiclass",
    },
    "xgboost": {
        "mean_squared_error": "reg:squarederror",
        "mean_absolute_error": "reg:absoluteerror",
        "huber": "reg:pseudohubererror",
        "quantile": "reg:quantileerror",
        "poisson": "count:poisson",
        "gamma": "reg:gamma",
        "tweedie": "reg:tweedie",
        "lambdarank": "rank:ndcg",
        "pairwise": "rank:pairwise",
        "mean_average_precision": "rank:map",
        "two classes": "binary:logistic",
        "classes": "multi:softprob",
    },
}
# Parameter of a loss -> its keyword.
_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "lightgbm": {"delta": "alpha", "quantile": "alpha", "power": "tweedie_variance_power"},
    "xgboost": {"delta": "huber_slope", "quantile": "quantile_alpha", "power": "tweedie_variance_power"},
}


def context(spec: JobSpec) -> dict[str, object]:
    """Return the values of the template beside those of every model: the call, and the groups of imports."""
    params = {
        **objective(spec),
        "learning_rate": spec.optimizer.params["learning_rate"],
        **trees.keywords(spec.framework, spec.model.params),
        "seed": spec.training.seed,
    }
    weighed: list[Expression | tuple[str, Expression]] = []
    if spec.loss.params.get("class_weights"):
        weighed.append(("class_weights", "CLASS_WEIGHTS"))
    written = ((name, literal(value)) for name, value in params.items())
    library = trees.LIBRARIES[spec.framework]
    features = "FEATURES" if spec.forecast is None else 'FEATURES["features"]'
    made = Call(library, (features, *written, *weighed))
    return {"model": layout(made, indent=4, prefix="return ")}


def imports(spec: JobSpec, stored: bool) -> list[str]:
    """Return the groups of imports. stored: lists are stored in files."""
    modules = ", ".join(["metrics", *(["schedules"] if spec.schedule else [])])
    modules = modules if spec.forecast is None else f"forecasting, {modules}"
    ours = ["from edl import features as fc", f"from edl import {modules}"]
    ours.append(f"from edl.trees import {trees.LIBRARIES[spec.framework]}")
    return [*(["from pathlib import Path"] if stored else []), "\n".join(ours)]


def objective(spec: JobSpec) -> dict[str, Any]:
    """Return the library's objective and its parameters; a delta is in the label's unit, not in deviations."""
    names, label = _OBJECTIVES[spec.framework], spec.label
    if isinstance(label, ClassLabel):
        if label.binary:
            return {"objective": names["two classes"]}
        return {"objective": names["classes"], "num_class": len(label.classes)}
    scale = label.std if isinstance(label, RegressionLabel) else 1.0
    params = {
        _PARAMETERS[spec.framework][name]: float(value) * (scale if name == "delta" else 1.0)  # type: ignore[arg-type]
        for name, value in spec.loss.params.items()
    }
    return {"objective": names[spec.loss.name], **params}
