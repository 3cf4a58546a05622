"""WITH attributes of EVALUATE without a model, over predictions that stand in the rows."""

from __future__ import annotations

from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow
from sqlflow_edl.analysis.settings.uses import BY, EVALUATE

PREDICTION, PROBABILITY, KIND = "evaluate.prediction", "evaluate.probability", "evaluate.kind"
THRESHOLD, WEIGHT = "evaluate.threshold", "evaluate.weight_column"
COLUMNS = (PREDICTION, PROBABILITY, WEIGHT)  # attributes that name columns

_SHARED = ("evaluate.report", THRESHOLD, BY, "validation.metrics")

MEASUREMENT = (
    AttributeRow(
        PREDICTION,
        "text",
        "Column with the predicted class or number; without it, the more probable class by evaluate.probability.",
        aliases=("prediction",),
    ),
    AttributeRow(
        PROBABILITY,
        "class columns",
        "Column with the probability of the second of two classes, in their natural order, or a column for each class, "
        "such as {'no': p_no, 'yes': p_yes}.",
        aliases=("probability", "evaluate.probabilities"),
    ),
    AttributeRow(
        KIND,
        "text",
        "Metrics of classes or of numbers. By default regression for numbers with fractions, and "
        "classification for everything else, and with evaluate.probability.",
        choices=("classification", "regression"),
    ),
    AttributeRow(
        WEIGHT,
        "text",
        "Column with the weight of each row in all metrics.",
        aliases=("weight_column", "sample_weight", "weight_col"),
    ),
    *(row for row in EVALUATE if row.name in _SHARED),
)
