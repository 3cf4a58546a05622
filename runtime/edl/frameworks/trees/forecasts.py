"""Adapter of trees that forecast: they learn the label relative to the level and the scale of its series.

The features are two arrays: `features_dense`, the matrix of the trees, and `scale_dense` (n, 2), the level and the
scale of each row. The trees learn (label - level) / scale, and their predictions are put back into the unit of the
label, so one model fits series of different sizes, and values beyond those that it was trained on.
"""

from __future__ import annotations

import numpy as np

from edl.arrays import Array, Features
from edl.collectives.base import Group
from edl.errors import JobError
from edl.frameworks.adapter import Evaluated, Floats, Minibatches
from edl.frameworks.trees.adapter import Files, TreeAdapter
from edl.frameworks.trees.engine import Engine
from edl.frameworks.trees.models import Trees
from edl.program import Program
from edl.spec import width

MATRIX, SCALE = "features_dense", "scale_dense"


class ForecastAdapter(TreeAdapter):
    """Adapter of one model of trees whose label is a `ForecastLabel`."""

    def __init__(self, program: Program, model: Trees, engine: Engine, features: Features) -> None:
        super().__init__(program, model, engine, _parts(features)[0])

    def train(self, rows: Minibatches, workers: Group | None = None) -> Floats:
        matrix, level, scale = _parts(rows.features)
        return super().train(
            rows._replace(features=matrix, labels=_relative(rows.labels, level, scale)), workers
        )

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        matrix, level, scale = _parts(features)
        found = super().evaluate(matrix, _relative(labels, level, scale), weights)
        return Evaluated(found.outputs * scale + level, found.loss)

    def predict(self, features: Features) -> Array:
        matrix, level, scale = _parts(features)
        return super().predict(matrix) * scale + level

    def standalone(self) -> Files:
        raise JobError(
            "a forecast needs the last rows of its series, which a file of a model does not read",
            hint="SELECT … TO PREDICT reads them from a query",
        )

    def contributions(self, features: Features) -> Array:
        """Return the values in the unit of the label; the level is all in the base."""
        matrix, level, scale = _parts(features)
        found = super().contributions(matrix) * scale[:, :, np.newaxis]
        found[:, :, -1] += level
        others = [each for name, each in self.program.spec.inputs.items() if f"{name}_dense" != MATRIX]
        unused = sum(width(feature) for features in others for feature in features)
        return np.insert(found, [found.shape[2] - 1] * unused, 0.0, axis=2)


def _parts(features: Features) -> tuple[Array, Array, Array]:
    """Return the matrix, and the level and the scale, each (n, 1)."""
    if not isinstance(features, dict) or {MATRIX, SCALE} - set(features):
        raise JobError(
            "the features of a forecast are two inputs, features and scale",
            hint='FEATURES = fc.Inputs(features=fc.Features(…), scale=fc.Features(fc.raw("forecast.level"), …))',
        )
    level, scale = features[SCALE][:, :1], features[SCALE][:, 1:2]
    return features[MATRIX], level, scale


def _relative(labels: Array, level: Array, scale: Array) -> Array:
    """Return the values, the first column of the labels, relative to their series, (n, 1)."""
    return ((labels[:, :1] - level) / scale).astype(np.float32)
