"""Mini-batch k-means and deep embedded clustering, which find clusters of rows without a label.

The loss is the squared distance to the nearest centre. Its gradient steps are the steps of k-means (Bottou and Bengio,
1995), so the strategies of networks apply. `edl.frameworks.torch.clusters` makes the start.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from edl import spec
from edl.errors import SemanticError
from sqlflow_edl.analysis.models.base import Architecture, Length, MarkedRows, Model
from sqlflow_edl.analysis.models.parts import assemble_unlabelled
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.values import Setting

if TYPE_CHECKING:
    import pyarrow as pa

TOLERANCE = AttributeRow(
    "train.tolerance",
    "number",
    "End the training after an epoch in which the loss falls by less than this share of it; 0 never.",
    0.0,
    low=0,
    high=1,
    aliases=("tolerance", "model.tolerance"),
)
CLUSTERS = AttributeRow(
    "model.n_clusters",
    "integer",
    "Number of clusters.",
    8,
    low=2,
    high=1000,
    aliases=(
        "n_clusters",
        "num_clusters",
        "model.num_clusters",
        "model.k",
        "center_count",
        "model.center_count",
    ),
)
DISTANCE = AttributeRow(
    "model.distance",
    "text",
    "Distance of a row from a centre: euclidean, the default, or cosine, of rows of any length.",
    choices=("euclidean", "cosine"),
    aliases=("distance", "distance_type", "model.distance_type", "distance_measure"),
)
SCALE = AttributeRow(
    "model.scale_features",
    "boolean",
    "Divide numbers by their standard deviation, by default; without it they only lose their mean.",
    aliases=("scale_features", "standardize_features", "model.standardize_features"),
)
INITIAL = AttributeRow(
    "model.init_column",
    "text",
    "Selected column that is true in as many rows as there are clusters: their first centres. It is not a feature.",
    aliases=("init_column", "kmeans_init_col", "model.kmeans_init_col"),
)
MOST_NUMBERS = 100_000  # of initial centres, which the JobSpec holds
# The start is near the result, so few and small steps are enough.
_DEFAULTS: Mapping[str, Setting] = {
    "optimizer": "adam",
    "optimizer.learning_rate": 0.02,
    "optimizer.schedule": "cosine",
}
_LENGTH = Length(400, (2, 20), 0, ((10_000, 256), (100_000, 512)), 1024, least_steps=20)


DEEP = (
    replace(CLUSTERS, default=10),
    AttributeRow(
        "model.pretrain_dims",
        "integers",
        "Units of the encoder's layers; the last ones are the codes, and the decoder has the layers "
        "in reverse.",
        (100, 100, 10),
        low=1,
        high=65_536,
        aliases=("pretrain_dims",),
    ),
    AttributeRow(
        "model.run_pretrain",
        "boolean",
        "Train the autoencoder before the clusters.",
        True,
        aliases=("run_pretrain",),
    ),
    AttributeRow(
        "model.pretrain_epochs",
        "integer",
        "Epochs of the autoencoder over the first rows of the training.",
        30,
        low=0,
        high=10_000,
        aliases=("pretrain_epochs",),
    ),
    AttributeRow(
        "model.pretrain_lr",
        "number",
        "Initial step size of the autoencoder; it is divided by 10 when the error does not fall.",
        1.0,
        low=1e-9,
        high=100,
        aliases=("pretrain_lr",),
    ),
    AttributeRow(
        "model.kmeans_init",
        "integer",
        "Starts of k-means on the codes; the best one is used.",
        20,
        low=1,
        high=1000,
        aliases=("kmeans_init",),
    ),
)
# The divergence is 0 of rows that are all unsure, too, so the epoch with the lowest one is not the best.
_DEEP_DEFAULTS: Mapping[str, Setting] = {
    "optimizer": "adam",
    "optimizer.learning_rate": 0.001,
    "loss": "cluster_divergence",
    "train.keep": "last",
}
_DEEP_LENGTH = Length(1000, (5, 50), 0, ((100_000, 256),), 1024, least_steps=200)


def _deep_values(job: spec.JobSpec) -> Mapping[str, object]:
    return {"epochs": job.model.params["pretrain_epochs"] if job.model.params["run_pretrain"] else 0}


def _deep_size(job: spec.JobSpec) -> int:
    dims = [int(units) for units in job.model.params["pretrain_dims"]]  # type: ignore[union-attr,arg-type]  # integers
    widths = [sum(map(spec.width, job.features)), *dims]
    layers = sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths))
    return layers + job.label.outputs * dims[-1]


def _start_from_rows(job: spec.JobSpec, rows: pa.Table | None, count: int) -> spec.JobSpec:
    """Return the JobSpec with the features of the marked rows as initial centres."""
    from edl.features import Features
    from edl.features.transform import compute_vectors

    clusters, width = job.label.outputs, sum(map(spec.width, job.features))
    if rows is None or count != clusters:
        marked = f"{count:,} rows are" if count != 1 else "1 row is"
        raise SemanticError(
            f"{marked} marked as first centres, and there are {clusters} clusters",
            hint="the column is true in one row for each cluster, and false or NULL in the others",
        )
    if clusters * width > MOST_NUMBERS:
        raise SemanticError(
            f"{clusters} centres of {width} features are too many to be given",
            hint=f"at most {MOST_NUMBERS:,} numbers are possible; leave it out for a start by k-means++",
        )
    [batch] = rows.combine_chunks().to_batches()
    centres = compute_vectors(Features(*job.inputs["features"]), batch)
    if len({tuple(centre) for centre in centres.tolist()}) < clusters:
        raise SemanticError("marked rows have equal features, so their clusters would have the same centre")
    initial = tuple(tuple(float(f"{number:.9g}") for number in centre) for centre in centres.tolist())
    model = msgspec.structs.replace(job.model, params={**job.model.params, "initial_centres": initial})
    return msgspec.structs.replace(job, model=model)


def _size(job: spec.JobSpec) -> int:
    return job.label.outputs * sum(map(spec.width, job.features))


MODELS = (
    Model(
        "KMeans",
        "Clusters by mini-batch k-means (Sculley, 2010) with a k-means++ start; TRAIN without a LABEL.",
        (CLUSTERS, TOLERANCE, DISTANCE, SCALE, INITIAL),
        aliases=("MiniBatchKMeans", "KMeansClustering"),
        task="clustering",
        frameworks=("torch",),
        architecture=Architecture("clusters", assemble_unlabelled, size=_size),
        defaults=_DEFAULTS,
        length=_LENGTH,
        marked_rows=MarkedRows(INITIAL.name, _start_from_rows),
    ),
    Model(
        "DeepEmbeddedClustering",
        "Clusters of the codes of an autoencoder (DEC; Xie et al., 2016); TRAIN without a LABEL.",
        DEEP,
        aliases=("DeepEmbeddingClusterModel", "DeepEmbeddingCluster"),
        task="clustering",
        frameworks=("torch",),
        architecture=Architecture("deep_clusters", assemble_unlabelled, size=_deep_size, values=_deep_values),
        defaults=_DEEP_DEFAULTS,
        length=_DEEP_LENGTH,
    ),
)
