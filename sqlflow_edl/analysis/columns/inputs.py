"""Inputs of a model: their features, and their names in COLUMN … FOR. Light to import, as the catalog is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean
from sqlflow_edl.syntax import ast

Fitted = spec.Feature | spec.Category
ModelInputs = dict[str, tuple[spec.Feature, ...]]


@dataclass(frozen=True, slots=True)
class Placed:
    """Fitted column with the input that COLUMN … FOR names (empty without one) and its source span."""

    column: Fitted
    input: str = ""
    span: Span | None = None


InputNames = Mapping[str, tuple[str, ...]]  # input -> its aliases in FOR
ONE_INPUT: InputNames = {"features": ("feature_columns",)}


def written_input(clause: ast.ColumnClause, inputs: InputNames, errors: list[SQLFlowError]) -> str:
    """Return the input of the model that the clause's FOR names; empty without FOR."""
    if clause.for_input is None:
        return ""
    input_name = clause.for_input.text
    by_alias = {
        name.casefold(): name_of_input
        for name_of_input, aliases in inputs.items()
        for name in (name_of_input, *aliases)
    }
    if input_name.casefold() in by_alias:
        return by_alias[input_name.casefold()]
    if len(inputs) == 1:
        message, hint = (
            f"the model has no input {input_name}; it has one, {ONE_INPUT['features'][0]}",
            "leave FOR out",
        )
    else:
        message = f"the model has no input {input_name}; it has {' and '.join(inputs)}"
        hint = did_you_mean(input_name, by_alias, list_up_to=0) or f"write FOR {' or FOR '.join(inputs)}"
    errors.append(SemanticError(message, span=clause.for_input.span, hint=hint))
    return ""


def embedding_dim(ids: int) -> int:
    """Return a power of two near ids ** 0.4, from 4 to 64: 16 for a thousand ids."""
    return min(64, max(4, 1 << math.ceil(0.4 * math.log2(max(2, ids)))))


def one_hot(column: Fitted) -> spec.Feature:
    """Make a category one-hot; other columns are unchanged."""
    return spec.OneHot(column) if spec.is_category(column) else column


def embed(
    category: spec.Category, dim: int = 0, combiner: str = "sum", initial: str = "uniform", table: int = 0
) -> spec.Embedding:
    """Return the vectors of a category, of the usual length without `dim`."""
    return spec.Embedding(category, dim or embedding_dim(spec.num_ids(category)), combiner, initial, table)
