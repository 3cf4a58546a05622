"""Estimated size of a model from the widths of its layers, without loading a framework."""

from __future__ import annotations

from edl.embeddings.sizes import FLOAT_BYTES, slots
from edl.spec import JobSpec, width
from sqlflow_edl.analysis.catalog import MODELS


def parameters(spec: JobSpec) -> int | None:
    """Count the trainable numbers of the model, or return None if only the framework knows."""
    model = MODELS.find(spec.model.name)
    return model.architecture.size(spec) if model else None


def memory(spec: JobSpec) -> int | None:
    """Return the bytes of parameters, gradients and the optimizer's slots together."""
    count = parameters(spec)
    return None if count is None else count * FLOAT_BYTES * (2 + slots(spec.optimizer))


def input_width(spec: JobSpec) -> int:
    """Return the number of float32 values of a row, embeddings looked up."""
    return sum(map(width, spec.features))
