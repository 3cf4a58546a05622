"""Feature columns and labels for generated programs: `from edl import features as fc`.

    FEATURES = fc.Features(
        fc.standardize("age", mean=38.6, std=13.6),
        fc.one_hot(fc.vocabulary("department", ["engineering", "sales"])),
        fc.embedding(fc.hash_bucket("address", 1000), dim=16),
    )
    LABEL = fc.label("income")

The classes of `edl.spec.features` define each column; `edl.features.arrays` defines the accepted data types.
"""

from edl.features.categories import (
    bucket,
    category_id,
    concat,
    cross,
    day,
    hash_bucket,
    hour,
    list_of,
    minute,
    month,
    ngrams,
    vocabulary,
    weekday,
)
from edl.features.columns import codes, embedding, one_hot, sequence, stored
from edl.features.computed import computed, function
from edl.features.encodings import log_count, target_mean
from edl.features.labels import (
    ClassTarget,
    ClusterTarget,
    Mode,
    RankingTarget,
    RegressionTarget,
    SeveralTarget,
    Target,
    anomalies,
    class_label,
    clusters,
    forecast,
    label,
    labels,
    ranking,
    target,
)
from edl.features.number_features import (
    lags,
    log,
    normalize,
    numeric,
    periodic,
    piecewise_linear,
    raw,
    standardize,
    vector,
    year,
)
from edl.features.transform import DENSE, NUMBERS, Entry, Features, Inputs
from edl.features.weights import RowWeights, weights

__all__ = [
    "DENSE",
    "NUMBERS",
    "ClassTarget",
    "ClusterTarget",
    "Entry",
    "Features",
    "Inputs",
    "Mode",
    "RankingTarget",
    "RegressionTarget",
    "RowWeights",
    "SeveralTarget",
    "Target",
    "anomalies",
    "bucket",
    "category_id",
    "class_label",
    "clusters",
    "codes",
    "computed",
    "concat",
    "cross",
    "day",
    "embedding",
    "forecast",
    "function",
    "hash_bucket",
    "hour",
    "label",
    "labels",
    "lags",
    "list_of",
    "log",
    "log_count",
    "minute",
    "month",
    "ngrams",
    "normalize",
    "numeric",
    "one_hot",
    "periodic",
    "piecewise_linear",
    "ranking",
    "raw",
    "sequence",
    "standardize",
    "stored",
    "target",
    "target_mean",
    "vector",
    "vocabulary",
    "weekday",
    "weights",
    "year",
]
