"""Adapter of trees that forecast: they learn the label relative to the level and the scale of its series.

The features are two arrays: `features_dense`, the matrix of the trees, and `scale_dense` (n, 2), the level and the
scale of each row. The trees learn (label - level) / scale, and their predictions are put back into the unit of the
label, so one model fits series of different sizes, and values beyond those that it was trained on. Each quantile has
trees of its own, in as many rounds as the forecast.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edl.arrays import Array, Features
from edl.collectives.base import Group
from edl.errors import JobError
from edl.frameworks.adapter import Evaluated, Floats, Minibatches
from edl.frameworks.trees.adapter import TreeAdapter
from edl.frameworks.trees.engine import Engine
from edl.frameworks.trees.models import Trees
from edl.frameworks.trees.objectives import LIGHTGBM
from edl.program import Program
from edl.spec import width
from edl.spec.forecast import SHIFTS

MATRIX, SCALE = "features_dense", "scale_dense"


def forecast_adapter(program: Program, model: Trees, engine: Engine, features: Features) -> ForecastAdapter:
    """Return the adapter of a model with its quantiles, which have the parameters of the model."""
    matrix, _, _ = _parts(features)
    others = []
    for quantile in program.spec.label.quantiles:
        quantile_model = copy.copy(model)
        quantile_model.params = {**model.params, "objective": "quantile", "alpha": quantile}
        grown = type(engine)(quantile_model, LIGHTGBM["quantile"])  # type: ignore[call-arg]  # LightGBM's takes two
        others.append(TreeAdapter(program, quantile_model, grown, matrix))
    return ForecastAdapter(program, model, engine, features, others)


class ForecastAdapter(TreeAdapter):
    """Adapter of one model of trees for a `ForecastLabel`."""

    def __init__(
        self,
        program: Program,
        model: Trees,
        engine: Engine,
        features: Features,
        quantiles: Sequence[TreeAdapter],
    ) -> None:
        super().__init__(program, model, engine, _parts(features)[0])
        self._quantiles = {f"quantile_{place}.": adapter for place, adapter in enumerate(quantiles)}
        self._shifts = np.zeros(len(quantiles))  # of the quantiles, in units of the scale

    def train(self, rows: Minibatches, workers: Group | None = None) -> Floats:
        matrix, level, scale = _parts(rows.features)
        relative = rows._replace(features=matrix, labels=_relative(rows.labels, level, scale))
        for adapter in self._quantiles.values():
            adapter.train(relative, workers)
        return super().train(relative, workers)

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        matrix, level, scale = _parts(features)
        relative = _relative(labels, level, scale)
        evaluated = super().evaluate(matrix, relative, weights)
        others = [adapter.evaluate(matrix, relative).outputs for adapter in self._quantiles.values()]
        return Evaluated(self._shift_quantiles([evaluated.outputs, *others]) * scale + level, evaluated.loss)

    def predict(self, features: Features) -> Array:
        matrix, level, scale = _parts(features)
        others = [adapter.predict(matrix) for adapter in self._quantiles.values()]
        return self._shift_quantiles([super().predict(matrix), *others]) * scale + level

    def _shift_quantiles(self, outputs: Sequence[Array]) -> Array:
        """Return the forecasts and the shifted quantiles as one array, (n, 1 + quantiles)."""
        shifted: Array = np.hstack(outputs) + np.r_[0.0, self._shifts]
        return shifted

    def get_weights(self) -> dict[str, Array]:
        weights = {**super().get_weights(), **({SHIFTS: self._shifts} if self._quantiles else {})}
        return self._with_others(weights, lambda adapter: adapter.get_weights())

    def keep(self) -> dict[str, Array]:
        return self._with_others(super().keep(), lambda adapter: adapter.keep())

    def get_state(self) -> dict[str, Array]:
        return self._with_others(super().get_state(), lambda adapter: adapter.get_state())

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        super().set_weights(weights)
        self._shifts = np.asarray(weights.get(SHIFTS, self._shifts), dtype=np.float64)
        for prefix, adapter in self._quantiles.items():
            adapter.set_weights(_arrays_with_prefix(weights, prefix))

    def set_state(self, state: Mapping[str, Array]) -> None:
        super().set_state(state)
        for prefix, adapter in self._quantiles.items():
            adapter.set_state(_arrays_with_prefix(state, prefix))

    def set_learning_rate(self, rate: float) -> None:
        super().set_learning_rate(rate)
        for adapter in self._quantiles.values():
            adapter.set_learning_rate(rate)

    def _with_others(
        self, arrays_of_median: dict[str, Array], of: Callable[[TreeAdapter], Mapping[str, Array]]
    ) -> dict[str, Array]:
        """Return the arrays of this adapter and, with their prefix, the arrays of the quantiles' adapters."""
        others = {
            prefix + name: array
            for prefix, adapter in self._quantiles.items()
            for name, array in of(adapter).items()
        }
        return arrays_of_median | others

    def _matrix(self, features: Features) -> Array:
        return _parts(features)[0]

    def contributions(self, features: Features) -> Array:
        """Return the values in the unit of the label; the level is all in the base."""
        matrix, level, scale = _parts(features)
        values = super().contributions(matrix) * scale[:, :, np.newaxis]
        values[:, :, -1] += level
        others = [columns for name, columns in self.program.spec.inputs.items() if f"{name}_dense" != MATRIX]
        unused = sum(width(feature) for features in others for feature in features)
        return np.insert(values, [values.shape[2] - 1] * unused, 0.0, axis=2)


def _parts(features: Features) -> tuple[Array, Array, Array]:
    """Return the matrix, and the level and the scale, each (n, 1)."""
    if not isinstance(features, dict) or {MATRIX, SCALE} - set(features):
        raise JobError(
            "the features of a forecast are two inputs, features and scale",
            hint='FEATURES = fc.Inputs(features=fc.Features(…), scale=fc.Features(fc.raw("forecast.level"), …))',
        )
    level, scale = features[SCALE][:, :1], features[SCALE][:, 1:2]
    return features[MATRIX], level, scale


def _arrays_with_prefix(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the arrays with the prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _relative(labels: Array, level: Array, scale: Array) -> Array:
    """Return the values, the first column of the labels, relative to their series, (n, 1)."""
    return ((labels[:, :1] - level) / scale).astype(np.float32)
