"""Mini-batch k-means, which finds clusters of rows without a label.

Its loss is the squared distance to the nearest centre, whose gradient steps are those of k-means (Bottou and Bengio,
1995), so the strategies of networks apply. The start is that of `edl.frameworks.torch.clusters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edl import spec
from edl.errors import SemanticError, Span
from edl.spec.features import CATEGORY_TYPES
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed
from sqlflow_edl.analysis.models.base import Architecture, Length, Model, Parameters
from sqlflow_edl.analysis.models.parts import LARGEST_ONE_HOT_LINEAR
from sqlflow_edl.analysis.settings.dictionary import Attribute
from sqlflow_edl.analysis.settings.values import Setting

CLUSTERS = Attribute(
    "model.n_clusters",
    "integer",
    "Number of clusters.",
    8,
    low=2,
    high=1000,
    aliases=("n_clusters", "num_clusters", "model.num_clusters", "model.k"),
)
# The start is near the result, so few and small steps are enough.
_DEFAULTS: Mapping[str, Setting] = {
    "optimizer": "adam",
    "optimizer.learning_rate": 0.02,
    "optimizer.schedule": "cosine",
}
_LENGTH = Length(400, (2, 20), 0, ((10_000, 256), (100_000, 512)), 1024)


def assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Make categories one-hot. Raises SemanticError for features whose form is learned from a label."""
    return {"features": tuple(_feature(each) for each in columns)}


def _feature(placed: Placed) -> spec.Feature:
    column, names = placed.column, ", ".join(map(str, spec.sources(placed.column)))
    if isinstance(column, spec.TargetMean | spec.Embedding | spec.Periodic):
        raise SemanticError(
            f"this form of {names} is learned from a label, and the model has none",
            span=placed.span,
            hint="use the number itself, or a category of few values",
        )
    if not isinstance(column, CATEGORY_TYPES):
        return column
    if (ids := spec.num_ids(column)) > LARGEST_ONE_HOT_LINEAR:
        raise SemanticError(
            f"{names} is a category of {ids:,} ids, and without a label it has at most {LARGEST_ONE_HOT_LINEAR:,}",
            span=placed.span,
            hint="leave it out of the SELECT, or group its values there",
        )
    return spec.OneHot(column)


def _size(job: spec.JobSpec) -> int:
    return job.label.outputs * sum(map(spec.width, job.features))


MODELS = (
    Model(
        "KMeans",
        "Clusters by mini-batch k-means (Sculley, 2010) with a k-means++ start; TRAIN without a LABEL.",
        (CLUSTERS,),
        aliases=("MiniBatchKMeans", "KMeansClustering"),
        task="clustering",
        frameworks=("torch",),
        architecture=Architecture("clusters", assemble, size=_size),
        defaults=_DEFAULTS,
        length=_LENGTH,
    ),
)
