"""DeepFM (Guo et al., 2017): a factorisation machine and a dense network over the same embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed, embed
from sqlflow_edl.analysis.models.base import Architecture, Model, Parameters
from sqlflow_edl.analysis.models.parts import CLASSES, HIDDEN_LAYERS, deep_size, linear_size
from sqlflow_edl.analysis.settings.dictionary import AttributeRow

_EMBEDDING_DIM = AttributeRow(
    "model.embedding_dim",
    "integer",
    "Length of the vector of each category.",
    8,
    low=1,
    high=1024,
    aliases=("embedding_dim", "model.embedding_size", "embedding_size"),
)


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Make every category, indicators too, an embedding of the one length; numbers are unchanged."""
    dim = int(parameters["embedding_dim"])  # type: ignore[arg-type]
    features = tuple(_field(placed, dim) for placed in columns)
    if not any(feature.dim for feature in features):
        raise SemanticError(
            "DeepFM learns from categories, and no column is one",
            span=span,
            hint="make one with BUCKETIZE(x, 10), or train a DNN",
        )
    return {"features": tuple(dict.fromkeys(features))}


def _field(placed: Placed, dim: int) -> spec.Feature:
    column = placed.column
    if spec.is_category(column):
        return embed(column, dim)
    category = spec.category_of(column)
    if column.array != "ids" or not spec.is_category(category):
        return column
    if column.dim not in (0, dim):
        raise SemanticError(
            f"DeepFM's categories share one embedding length, {dim}; here it is {column.dim}",
            span=placed.span,
            hint=f"write the category itself, and model.embedding_dim = {column.dim} for all",
        )
    return column if column.dim else embed(category, dim)


def _values(job: spec.JobSpec) -> dict[str, object]:
    """Return the template values: where numbers end and vectors begin in the concatenated features."""
    categories = list(spec.embeddings(job.features))
    numbers = sum(spec.width(feature) for feature in job.features if not feature.dim)
    plural = "number" if numbers == 1 else "numbers"
    return {
        "categories": len(categories),
        "embedding_dim": categories[0].dim,
        "numbers_comment": f"  # the {plural}, then the vectors" if numbers else "",
        "vectors": f"hidden[:, {numbers}:]" if numbers else "hidden",
    }


_ARCHITECTURE = Architecture(
    "deepfm",
    _assemble,
    size=lambda job: linear_size(job.features) + deep_size(job, job.features),
    values=_values,
)

MODELS = (
    Model(
        "DeepFMClassifier",
        "A factorisation machine and a dense network over the same embeddings (Guo et al., 2017), for two classes.",
        (*HIDDEN_LAYERS, _EMBEDDING_DIM, CLASSES),
        task="classification",
        architecture=_ARCHITECTURE,
        most_classes=2,
    ),
    Model(
        "DeepFMRegressor",
        "DeepFM with one output.",
        (*HIDDEN_LAYERS, _EMBEDDING_DIM),
        task="regression",
        architecture=_ARCHITECTURE,
    ),
)
