"""RealMLP (Holzmüller, Grinsztajn and Steinwart, 2024): a dense network with high learning rates.

Of the paper: robust scaling with smooth clipping, learned scales of the features, the neural tangent parametrization,
activations by the kind of label, an own rate for biases, several cycles of the learning rate, AdamW. Numbers that
COLUMN does not mention are encoded in bins beside their scaled value, in place of periodic embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping

from edl import spec
from sqlflow_edl.analysis.models.base import Architecture, Length, Model
from sqlflow_edl.analysis.models.parts import (
    ACTIVATION,
    CLASSES,
    DROPOUT,
    HIDDEN_UNITS,
    deep_feature,
    deep_size,
    one_input,
)
from sqlflow_edl.analysis.settings.values import Setting

# Chosen on the tables of benchmarks.quality.
_DEFAULTS: Mapping[str, Setting] = {
    "model.hidden_units": (256, 256, 256),
    "model.activation": "selu",
    "model.dropout": 0.15,
    "optimizer": "adamw",
    "optimizer.learning_rate": 0.02,
    "optimizer.beta_2": 0.95,
    "optimizer.weight_decay": 0.02,
    "optimizer.schedule": "coslog",
}
_REGRESSION_DEFAULTS = {**_DEFAULTS, "model.activation": "mish"}
_LENGTH = Length(4000, (12, 60), 20, ((1_000, 32), (10_000, 128), (100_000, 256)))


def _size(job: spec.JobSpec) -> int:
    return sum(map(spec.width, job.features)) + deep_size(job, job.features)


_REAL_MLP = Architecture("real_mlp", one_input(deep_feature), size=_size, linear="NTPLinear")

MODELS = (
    Model(
        "RealMLPClassifier",
        "A dense network with tuned defaults (RealMLP) and a logit per class.",
        (HIDDEN_UNITS, ACTIVATION, DROPOUT, CLASSES),
        task="classification",
        architecture=_REAL_MLP,
        encodes=True,
        defaults=_DEFAULTS,
        length=_LENGTH,
    ),
    Model(
        "RealMLPRegressor",
        "A dense network with tuned defaults (RealMLP) and one output.",
        (HIDDEN_UNITS, ACTIVATION, DROPOUT),
        task="regression",
        architecture=_REAL_MLP,
        encodes=True,
        defaults=_REGRESSION_DEFAULTS,
        length=_LENGTH,
    ),
)
