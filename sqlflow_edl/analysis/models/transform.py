"""Transform: features that are fitted to rows, without a model that learns from them.

It has no framework and no job: the process that compiles the statement fits the features, and stores them.
"""

from __future__ import annotations

from collections.abc import Sequence

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.columns.inputs import ModelInputs, Placed, one_hot
from sqlflow_edl.analysis.entries import Task
from sqlflow_edl.analysis.models.base import Architecture, Model, Parameters

TASK: Task = "transformation"
WHY_NOT = "models that are trained; a Transform fits its columns to all rows"


def assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Keep the columns as they are. A category is one-hot until another model chooses its form.

    Raises SemanticError for a statistic of the label, which there is not.
    """
    return {"features": tuple(_feature(placed) for placed in columns)}


def _feature(placed: Placed) -> spec.Feature:
    column = placed.column
    if spec.is_encoding(column) and column.needs_label:
        raise SemanticError(
            f"TARGET_ENCODE of {', '.join(map(str, spec.sources(column)))} is a mean of labels, and there are none",
            span=placed.span,
            hint="write it in COLUMN of the models that use the transform",
        )
    return one_hot(column)


def check_predicts(job: spec.JobSpec, reference: str) -> None:
    """Raise SemanticError if the model is a transform: it has no program and no prediction."""
    if job.framework == spec.NO_FRAMEWORK:
        name = expressions.model(reference)
        raise SemanticError(
            f"{reference} is a transform, which predicts nothing",
            hint=f"SHOW FEATURES FOR {name} (query), COLUMN FEATURES({name}) and sqlflow_edl.load_transform apply it",
        )


MODELS = (
    Model(
        "Transform",
        "Fitted columns alone, for FEATURES in other models; TRAIN without a LABEL.",
        aliases=("TransformOnly",),
        task=TASK,
        frameworks=(spec.NO_FRAMEWORK,),
        architecture=Architecture("transform", assemble),
    ),
)
