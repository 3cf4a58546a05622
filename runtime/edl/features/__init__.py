"""Feature columns and labels for generated programs: `from edl import features as fc`.

    FEATURES = fc.Features(
        fc.standardize("age", mean=38.6, std=13.6),
        fc.one_hot(fc.vocabulary("department", ["engineering", "sales"])),
        fc.embedding(fc.hash_bucket("address", 1000), dim=16),
    )
    LABEL = fc.label("income")

The classes of `edl.spec.features` define each column; `edl.features.arrays` defines the accepted data types.
"""

from edl.features.columns import (
    bucket,
    category_id,
    codes,
    concat,
    cross,
    day,
    embedding,
    hash_bucket,
    hour,
    list_of,
    log,
    minute,
    month,
    normalize,
    numeric,
    one_hot,
    piecewise_linear,
    raw,
    standardize,
    stored,
    vector,
    vocabulary,
    weekday,
    year,
)
from edl.features.inputs import Inputs
from edl.features.labels import (
    ClassTarget,
    Mode,
    RankingTarget,
    RegressionTarget,
    Target,
    class_label,
    label,
    ranking,
    target,
)
from edl.features.transform import DENSE, Entry, Features
from edl.features.weights import RowWeights, weights

__all__ = [
    "DENSE",
    "ClassTarget",
    "Entry",
    "Features",
    "Inputs",
    "Mode",
    "RankingTarget",
    "RegressionTarget",
    "RowWeights",
    "Target",
    "bucket",
    "category_id",
    "class_label",
    "codes",
    "concat",
    "cross",
    "day",
    "embedding",
    "hash_bucket",
    "hour",
    "label",
    "list_of",
    "log",
    "minute",
    "month",
    "normalize",
    "numeric",
    "one_hot",
    "piecewise_linear",
    "ranking",
    "raw",
    "standardize",
    "stored",
    "target",
    "vector",
    "vocabulary",
    "weekday",
    "weights",
    "year",
]
