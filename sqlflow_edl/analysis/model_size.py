"""Estimated size of a model from the widths of its layers, without loading a framework."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from edl.embeddings.sizes import FLOAT_BYTES, slots
from edl.spec import Embedding, Feature, JobSpec, OneHot, num_ids, width
from sqlflow_edl.analysis.catalog import MODELS, Architecture


def parameters(spec: JobSpec) -> int | None:
    """Count the trainable numbers of the model, or return None if only the framework knows."""
    model = MODELS.find(spec.model.name)
    return _COUNTS[model.architecture](spec) if model else None


def memory(spec: JobSpec) -> int | None:
    """Return the bytes of parameters, gradients and the optimizer's slots together."""
    count = parameters(spec)
    return None if count is None else count * FLOAT_BYTES * (2 + slots(spec.optimizer))


def input_width(spec: JobSpec) -> int:
    """Return the number of float32 values of a row, embeddings looked up."""
    return _width(spec.features)


def _width(features: Iterable[Feature]) -> int:
    return sum(width(feature) for feature in features)


def _tables(features: Iterable[Feature]) -> int:
    """Count the numbers of the embeddings."""
    embeddings = (feature for feature in features if isinstance(feature, Embedding))
    return sum(num_ids(feature.category) * feature.dim for feature in embeddings)


def _weights(features: Iterable[Feature]) -> int:
    """Count the weights of a linear sum over the numbers and the ids, for one output."""
    return sum(
        num_ids(feature.category) if isinstance(feature, OneHot | Embedding) else width(feature)
        for feature in features
    )


def _layers(widths: Iterable[int]) -> int:
    """Count weights and biases of layers of these widths, inputs first."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths))


def _deep(spec: JobSpec, features: Sequence[Feature]) -> int:
    """Count embeddings and the dense layers over them, normalised or not; without hidden layers, a linear model."""
    units = spec.model.params.get("hidden_units")
    hidden = [int(each or 0) for each in units] if isinstance(units, tuple) else []
    scales = 2 * sum(hidden) if spec.model.params.get("batch_norm") else 0
    return _tables(features) + _layers([_width(features), *hidden, spec.label.outputs]) + scales


def _wide_deep(spec: JobSpec) -> int:
    return _weights(spec.inputs["wide"]) * spec.label.outputs + _deep(spec, spec.inputs["deep"])


_COUNTS: Mapping[Architecture, Callable[[JobSpec], int]] = {
    "linear": lambda spec: _deep(spec, spec.features),
    "deep": lambda spec: _deep(spec, spec.features),
    "wide_deep": _wide_deep,
    "deepfm": lambda spec: _weights(spec.features) + _deep(spec, spec.features),
}
