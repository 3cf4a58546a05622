"""Assignment of features to the inputs of a model, and their form: one-hot, embedding, or unchanged.

Each architecture has its inputs, their names in COLUMN … FOR, and a function that assigns the fitted columns to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean
from edl.spec.features import CATEGORY_TYPES, DENSE_TYPES, LIST_TYPES
from sqlflow_edl.analysis.catalog import Architecture, Entry
from sqlflow_edl.analysis.columns.drafts import Fitted
from sqlflow_edl.analysis.columns.functions import embedding_dim
from sqlflow_edl.syntax import ast

LARGEST_ONE_HOT = {
    "linear": 1000,
    "deep": 16,
}  # ids of a one-hot category; larger ones are embeddings

ModelInputs = dict[str, tuple[spec.Feature, ...]]


@dataclass(frozen=True, slots=True)
class Placed:
    """Fitted column with the input that COLUMN … FOR names (empty without one) and its source span."""

    column: Fitted
    input: str = ""
    span: Span | None = None


_ONE: Mapping[str, tuple[str, ...]] = {"features": ("feature_columns",)}
NAMES: Mapping[Architecture, Mapping[str, tuple[str, ...]]] = {  # input -> its aliases in FOR
    "linear": _ONE,
    "deep": _ONE,
    "wide_deep": {
        "wide": ("linear", "linear_feature_columns", "wide_feature_columns"),
        "deep": ("dnn", "dnn_feature_columns", "deep_feature_columns"),
    },
    "deepfm": _ONE,
    "own": _ONE,
}


def named(clause: ast.ColumnClause, architecture: Architecture, errors: list[SQLFlowError]) -> str:
    """Return the input that the clause's FOR names; empty without FOR."""
    if clause.for_input is None:
        return ""
    written = clause.for_input.text
    inputs = NAMES[architecture]
    known = {name.casefold(): own for own, aliases in inputs.items() for name in (own, *aliases)}
    if written.casefold() in known:
        return known[written.casefold()]
    if len(inputs) == 1:
        message, hint = (
            f"the model has no input {written}; it has one, {_ONE['features'][0]}",
            "leave FOR out",
        )
    else:
        message = f"the model has no input {written}; it has {' and '.join(inputs)}"
        hint = did_you_mean(written, known) or f"write FOR {next(iter(inputs))}"
    errors.append(SemanticError(message, span=clause.for_input.span, hint=hint))
    return ""


def assemble(
    model: Entry, columns: Sequence[Placed], label: spec.Label, dim: int, span: Span | None
) -> ModelInputs:
    """Return the features of each input.

    dim: length that a model gives all its embeddings. span: of the model's name.
    """
    return _ASSEMBLERS[model.architecture](columns, label, dim, span)


def deep_feature(column: Fitted) -> spec.Feature:
    """Make a category one-hot while it is small, and a part of a date always; else an embedding."""
    if not isinstance(column, CATEGORY_TYPES):
        return column
    ids = spec.num_ids(column)
    if ids <= LARGEST_ONE_HOT["deep"] or isinstance(column, spec.DatePart):
        return spec.OneHot(column)
    return spec.Embedding(column, embedding_dim(ids))


def _linear(columns: Sequence[Placed], label: spec.Label, dim: int, span: Span | None) -> ModelInputs:
    return {"features": tuple(_linear_feature(each.column, label) for each in columns)}


def _linear_feature(column: Fitted, label: spec.Label) -> spec.Feature:
    """Give a category a weight for each id and output: as one-hot while it is small, else as an embedding."""
    if not isinstance(column, CATEGORY_TYPES):
        return column
    few = spec.num_ids(column) <= LARGEST_ONE_HOT["linear"]
    return spec.OneHot(column) if few else spec.Embedding(column, label.outputs)


def _deep(columns: Sequence[Placed], label: spec.Label, dim: int, span: Span | None) -> ModelInputs:
    return {"features": tuple(deep_feature(each.column) for each in columns)}


def _wide_deep(columns: Sequence[Placed], label: spec.Label, dim: int, span: Span | None) -> ModelInputs:
    """Assign columns without FOR: numbers and embeddings deep, one-hots and crosses wide, other categories to both.

    An input that would be empty shares the columns of the other: deep takes the crosses, wide the numbers.
    """
    wide: list[spec.Feature] = []
    deep: list[spec.Feature] = []
    for each in columns:
        where = (each.input,) if each.input else _wide_or_deep(each.column)
        if "wide" in where:
            wide.append(_wide_feature(each, label))
        if "deep" in where:
            deep.append(deep_feature(each.column))
    free = [each.column for each in columns if not each.input]
    wide = wide or [column for column in free if isinstance(column, DENSE_TYPES)]
    deep = deep or [deep_feature(column) for column in free]
    for name, features in (("wide", wide), ("deep", deep)):
        if not features:
            raise SemanticError(
                f"the model's input {name} has no column", span=span, hint=f"write COLUMN … FOR {name}"
            )
    return {"wide": tuple(dict.fromkeys(wide)), "deep": tuple(dict.fromkeys(deep))}


def _wide_or_deep(column: Fitted) -> tuple[str, ...]:
    if isinstance(column, spec.Cross | spec.OneHot):
        return ("wide",)
    return ("wide", "deep") if isinstance(column, CATEGORY_TYPES) else ("deep",)


def _wide_feature(placed: Placed, label: spec.Label) -> spec.Feature:
    """Make a category one-hot whatever its size: the wide part looks its weights up.

    An embedding of length one is that weight.
    """
    column = placed.column
    if isinstance(column, spec.Embedding) and column.dim == 1 and column.combiner == "sum":
        column = column.category
    if isinstance(column, spec.Embedding):
        raise SemanticError(
            "an embedding is for the input deep; wide takes numbers, categories and indicators",
            span=placed.span,
            hint="write the category itself, or FOR deep",
        )
    if isinstance(column, LIST_TYPES):
        return _linear_feature(column, label)
    return spec.OneHot(column) if isinstance(column, CATEGORY_TYPES) else column


def _deepfm(columns: Sequence[Placed], label: spec.Label, dim: int, span: Span | None) -> ModelInputs:
    """Make every category, indicators too, an embedding of the one length; numbers are unchanged."""
    features = tuple(_field(each, dim) for each in columns)
    if not any(isinstance(feature, spec.Embedding) for feature in features):
        raise SemanticError(
            "DeepFM learns from categories, and no column is one",
            span=span,
            hint="make one with BUCKETIZE(x, 10), or train a DNN",
        )
    return {"features": tuple(dict.fromkeys(features))}


def _field(placed: Placed, dim: int) -> spec.Feature:
    column = placed.column
    if isinstance(column, DENSE_TYPES):
        return column
    if isinstance(column, spec.Embedding) and column.dim != dim:
        raise SemanticError(
            f"DeepFM's categories share one embedding length, {dim}; here it is {column.dim}",
            span=placed.span,
            hint=f"write the category itself, and model.embedding_dim = {column.dim} for all",
        )
    if isinstance(column, spec.Embedding):
        return column
    return spec.Embedding(column.category if isinstance(column, spec.OneHot) else column, dim)


_Assembler = Callable[[Sequence[Placed], spec.Label, int, Span | None], ModelInputs]
_ASSEMBLERS: Mapping[Architecture, _Assembler] = {
    "linear": _linear,
    "deep": _deep,
    "wide_deep": _wide_deep,
    "deepfm": _deepfm,
    "own": _deep,
}
