"""Wide and deep (Cheng et al., 2016): a linear model and a dense network, added up."""

from __future__ import annotations

from collections.abc import Sequence

from edl import spec
from edl.errors import SemanticError, Span
from sqlflow_edl.analysis.columns.inputs import Fitted, ModelInputs, Placed, embed, one_hot
from sqlflow_edl.analysis.models.base import Architecture, Model, Parameters
from sqlflow_edl.analysis.models.parts import (
    CLASSES,
    HIDDEN_LAYERS,
    deep_feature,
    deep_size,
    linear_feature,
    linear_size,
)


def _assemble(
    columns: Sequence[Placed], label: spec.Label, parameters: Parameters, span: Span | None
) -> ModelInputs:
    """Assign columns without FOR: numbers and embeddings deep, one-hots and crosses wide, other categories to both.

    An input that would be empty shares the columns of the other: deep takes the crosses, wide the numbers.
    """
    wide: list[spec.Feature] = []
    deep: list[spec.Feature] = []
    for placed in columns:
        where = (placed.input,) if placed.input else _wide_or_deep(placed.column)
        if "wide" in where:
            wide.append(_wide_feature(placed, label))
        if "deep" in where:
            deep.append(deep_feature(placed.column, label))
    free = [placed.column for placed in columns if not placed.input]
    wide = wide or [column for column in free if not spec.is_category(column) and _is_number(column)]
    deep = deep or [deep_feature(column, label) for column in free]
    for name, features in (("wide", wide), ("deep", deep)):
        if not features:
            raise SemanticError(
                f"the model's input {name} has no column", span=span, hint=f"write COLUMN … FOR {name}"
            )
    return {"wide": tuple(dict.fromkeys(wide)), "deep": tuple(dict.fromkeys(deep))}


def _wide_or_deep(column: Fitted) -> tuple[str, ...]:
    if column.is_one_hot or column.made_of == "columns":  # or a cross
        return ("wide",)
    return ("wide", "deep") if spec.is_category(column) else ("deep",)


def _is_number(column: spec.Feature) -> bool:
    return column.array in ("dense", "positions", "periodic") and not column.is_for_trees


def _wide_feature(placed: Placed, label: spec.Label) -> spec.Feature:
    """Make a category one-hot whatever its size: the wide part looks its weights up.

    An embedding is that weight too: the linear function of a vector is a number for each id.
    """
    column = placed.column
    if column.table:
        raise SemanticError(
            "the input wide takes no embedding that shares its vectors with another",
            span=placed.span,
            hint="write the category itself, or FOR deep",
        )
    if column.dim:
        column, combiner = spec.category_of(column), column.combiner
        if spec.is_category(column) and column.has_lists and combiner != "sum":
            return embed(column, label.outputs, combiner=combiner)
    return linear_feature(column, label) if column.has_lists else one_hot(column)


def _size(job: spec.JobSpec) -> int:
    return linear_size(job.inputs["wide"]) * job.label.outputs + deep_size(job, job.inputs["deep"])


_ARCHITECTURE = Architecture(
    "wide_deep",
    _assemble,
    inputs={
        "wide": ("linear", "linear_feature_columns", "wide_feature_columns"),
        "deep": ("dnn", "dnn_feature_columns", "deep_feature_columns"),
    },
    size=_size,
)

MODELS = (
    Model(
        "DNNLinearCombinedClassifier",
        "Wide and deep (Cheng et al., 2016): a linear model and a dense network, added up.",
        (*HIDDEN_LAYERS, CLASSES),
        ("WideAndDeepClassifier", "WideDeepClassifier"),
        task="classification",
        architecture=_ARCHITECTURE,
    ),
    Model(
        "DNNLinearCombinedRegressor",
        "Wide and deep with one output.",
        HIDDEN_LAYERS,
        ("WideAndDeepRegressor", "WideDeepRegressor"),
        task="regression",
        architecture=_ARCHITECTURE,
    ),
)
