"""Models of trees in a generated program: the parameters of the library, and its name of the objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edl.spec import JobSpec
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.codegen.source import CallExpression, Expression, layout, literal

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
        "squared_log_error": "reg:squaredlogerror",
        "huber": "reg:pseudohubererror",
        "quantile": "reg:quantileerror",
        "poisson": "count:poisson",
        "gamma": "reg:gamma",
        "tweedie": "reg:tweedie",
        "lambdarank": "rank:ndcg",
        "pairwise": "rank:pairwise",
        "mean_average_precision": "rank:map",
        "hinge": "binary:hinge",
        "two classes": "binary:logistic",
        "classes": "multi:softprob",
    },
}
# Parameter of a loss -> its keyword.
_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "lightgbm": {"delta": "alpha", "quantile": "alpha", "power": "tweedie_variance_power"},
    "xgboost": {"delta": "huber_slope", "quantile": "quantile_alpha", "power": "tweedie_variance_power"},
}


def model(spec: JobSpec) -> str:
    """Return the call that makes the model."""
    params = {
        **objective(spec),
        "learning_rate": spec.optimizer.params["learning_rate"],
        **trees.keywords(spec.framework, spec.model.params, spec.inputs["features"]),
        "seed": spec.training.seed,
    }
    features = "FEATURES" if spec.forecast is None else 'FEATURES["features"]'
    arguments: list[Expression | tuple[str, Expression]] = [features]
    arguments += [(name, literal(value)) for name, value in params.items()]
    if spec.loss.params.get("class_weights"):
        arguments.append(("class_weights", "CLASS_WEIGHTS"))
    return layout(
        CallExpression(trees.LIBRARIES[spec.framework], tuple(arguments)), indent=4, prefix="return "
    )


def objective(spec: JobSpec) -> dict[str, Any]:
    """Return the library's objective and its parameters; a delta is in the label's unit, not in deviations."""
    names, label = _OBJECTIVES[spec.framework], spec.label
    if label.has_classes:
        if label.is_binary:
            return {"objective": names.get(spec.loss.name, names["two classes"])}
        return {"objective": names["classes"], "num_class": len(label.classes)}
    params = {
        _PARAMETERS[spec.framework][name]: float(value) * (label.std if name == "delta" else 1.0)  # type: ignore[arg-type]
        for name, value in spec.loss.params.items()
    }
    return {"objective": names[spec.loss.name], **params}
