"""Gradient boosted decision trees (Friedman, 2001) of LightGBM and XGBoost."""

from __future__ import annotations

from collections.abc import Sequence

from edl import spec
from edl.errors import Span
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed
from sqlflow_edl.analysis.models.base import Architecture, Model, Parameters
from sqlflow_edl.analysis.models.parts import CLASSES
from sqlflow_edl.analysis.settings import trees


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Take the columns as `columns.trees.fitted` made them, each once."""
    features = (placed.column for placed in columns if not spec.is_category(placed.column))
    return {"features": tuple(dict.fromkeys(features))}


ARCHITECTURE = Architecture("trees", _assemble)
MODELS = (
    Model(
        f"{trees.FAMILY}Classifier",
        "Gradient boosted decision trees (Friedman, 2001) with a margin per class.",
        (*trees.ATTRIBUTES, trees.LENGTH, CLASSES),
        task="classification",
        frameworks=tuple(trees.LIBRARIES),
        architecture=ARCHITECTURE,
    ),
    Model(
        f"{trees.FAMILY}Regressor",
        "Gradient boosted decision trees for a number.",
        (*trees.ATTRIBUTES, trees.LENGTH),
        task="regression",
        frameworks=tuple(trees.LIBRARIES),
        architecture=ARCHITECTURE,
    ),
    Model(
        f"{trees.FAMILY}Ranker",
        "Gradient boosted decision trees that order the rows of a group by relevance (LambdaMART; Burges, 2010).",
        (trees.GROUP, *trees.ATTRIBUTES, *(each.attribute for each in trees.OF_RANKERS), trees.LENGTH),
        task="ranking",
        frameworks=tuple(trees.LIBRARIES),
        architecture=ARCHITECTURE,
    ),
)
