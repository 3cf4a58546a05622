"""Isolation forest, which finds unusual rows without a label.

Its trees are made of a sample of the rows when the model is made, see `edl.frameworks.torch.isolation_forest`; one
epoch trains the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping

from edl import spec
from sqlflow_edl.analysis.models.base import Architecture, Length, Model
from sqlflow_edl.analysis.models.parts import assemble_unlabelled
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.values import Setting

TREES = AttributeRow(
    "model.n_trees",
    "integer",
    "Number of trees.",
    100,
    low=1,
    high=1000,
    aliases=("n_trees", "n_estimators", "model.n_estimators", "num_trees", "model.num_trees"),
)
SAMPLE_ROWS = AttributeRow(
    "model.sample_rows",
    "integer",
    "Rows of each tree.",
    256,
    low=2,
    high=4096,
    aliases=("sample_rows", "max_samples", "model.max_samples"),
)
CONTAMINATION = AttributeRow(
    "model.contamination",
    "number",
    "Share of anomalies, beyond the threshold, among the training rows.",
    0.1,
    low=0.0001,
    high=0.5,
    aliases=("contamination", "nu", "model.nu"),
)
_DEFAULTS: Mapping[str, Setting] = {
    "optimizer": "adam",
    "optimizer.learning_rate": 0.002,
    "optimizer.schedule": "cosine",
}


def _values(job: spec.JobSpec) -> Mapping[str, object]:
    names = {"trees": "n_trees", "sample_rows": "sample_rows", "contamination": "contamination"}
    return {name: job.model.params[parameter] for name, parameter in names.items()}


MODELS = (
    Model(
        "IsolationForest",
        "Anomalies by an isolation forest (Liu, Ting and Zhou, 2008); TRAIN without a LABEL.",
        (TREES, SAMPLE_ROWS, CONTAMINATION),
        aliases=("IForest",),
        task="anomaly detection",
        frameworks=("torch",),
        architecture=Architecture("isolation_forest", assemble_unlabelled, values=_values),
        defaults=_DEFAULTS,
        length=Length(1, (1, 1), 0, (), 4096),
    ),
)
