"""Dense network over all features, and the linear model, which is one without hidden layers."""

from __future__ import annotations

from sqlflow_edl.analysis.models.base import Architecture, Model
from sqlflow_edl.analysis.models.parts import (
    CLASSES,
    HIDDEN_LAYERS,
    deep_feature,
    deep_size,
    linear_feature,
    one_input,
)

_DEEP = Architecture("deep", one_input(deep_feature), size=lambda job: deep_size(job, job.features))
_LINEAR = Architecture("deep", one_input(linear_feature), size=lambda job: deep_size(job, job.features))

MODELS = (
    Model(
        "DNNClassifier",
        "A dense network with a logit per class.",
        (*HIDDEN_LAYERS, CLASSES),
        task="classification",
        architecture=_DEEP,
    ),
    Model(
        "DNNRegressor",
        "A dense network with one output.",
        HIDDEN_LAYERS,
        task="regression",
        architecture=_DEEP,
    ),
    Model(
        "LinearClassifier",
        "A linear model with a logit per class.",
        (CLASSES,),
        task="classification",
        architecture=_LINEAR,
    ),
    Model("LinearRegressor", "A linear model with one output.", task="regression", architecture=_LINEAR),
)
