"""The JobSpec and the feature columns it holds: plain typed data, light to import."""

from edl.spec.features import (
    Bucket,
    Category,
    CategoryId,
    ClassLabel,
    Cross,
    Embedding,
    Feature,
    HashBucket,
    Label,
    Log,
    Normalize,
    Numeric,
    OneHot,
    RegressionLabel,
    Standardize,
    Vocabulary,
    num_ids,
    source_columns,
    width,
    with_columns,
)
from edl.spec.job import (
    VERSION,
    Cluster,
    Component,
    Field,
    JobSpec,
    Output,
    Query,
    Rows,
    Training,
    from_json,
    to_json,
)

__all__ = [
    "VERSION", "Bucket", "Category", "CategoryId", "ClassLabel", "Cluster", "Component", "Cross", "Embedding",
    "Feature", "Field", "HashBucket", "JobSpec", "Label", "Log", "Normalize", "Numeric", "OneHot", "Output",
    "Query", "RegressionLabel", "Rows", "Standardize", "Training", "Vocabulary", "from_json", "num_ids",
    "source_columns", "to_json", "width", "with_columns",
]
