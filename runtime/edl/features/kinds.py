"""Tables of the kinds of feature columns: `check_fields` and `compute_values`, and what their rows have in common.

Each has a function for each kind, beside the constructor of that kind. Readers of a JobSpec use the
same checks as constructors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa

from edl.errors import SemanticError
from edl.features.computed import check as check_computed
from edl.spec import Category, Computed, Feature
from edl.spec.column import Column, Place

AnyColumn = TypeVar("AnyColumn", bound=Column)
_TAKES: Mapping[Place, str] = {  # what stands there
    "item": "the category of an item",
    "encoding": "a category with one id per row",
    "sequence": "lists",
    "model": "a category",
}
_MAKERS: Mapping[Place, str] = {  # what makes one
    "item": "category_id, hash_bucket and vocabulary make one",
    "encoding": "bucket, category_id, hash_bucket, vocabulary and cross make one; lists become one_hot",
    "sequence": "list_of and ngrams make them",
    "model": "bucket, category_id, hash_bucket, vocabulary, cross, list_of and concat make one",
}


def check(column: AnyColumn) -> AnyColumn:
    """Return the column itself. Raises SemanticError if one of its values has a wrong type or is out of range."""
    check_fields(column)
    return column


@singledispatch
def check_fields(column: object) -> None:
    """Raise SemanticError for the first wrong value of a column."""
    raise SemanticError(f"not a feature column: {column!r}")


@dataclass(frozen=True, slots=True)
class RowsOfBatch:
    """Rows of a batch with the ids of their categories. statistics: encoders of the features that are statistics."""

    batch: pa.RecordBatch
    ids: Mapping[Category, Any]
    statistics: Mapping[Feature, Any]


@singledispatch
def compute_values(feature: object, rows: RowsOfBatch) -> Any:
    """Return the values of a feature, (n, width), or the one number that the model encodes, (n, 1).

    They are float64, in which a timestamp's seconds differ, or the sums of one-hot rows in float32.
    """
    raise TypeError(f"{type(feature).__name__} has no values")


def check_name(value: object, what: str) -> None:
    if not isinstance(value, str) or not value:
        raise SemanticError(f"{what} needs the name of a column, not {value!r}")


def check_source(column: Any) -> None:
    """Check the column of a feature. It may be a computed one if it reads numbers, or texts in JSON."""
    source = column.column
    reads = "texts" if isinstance(source, Computed) and source.operator == "JSON_TEXT" else "numbers"
    if isinstance(source, Computed) and column.computed == reads:
        check_computed(source)
    else:
        check_name(column.column, type(column).__name__.lower())


def check_number(column: Any, field: str) -> None:
    check_finite(getattr(column, field), f"{field} of column {column.column}")


def check_finite(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SemanticError(f"{what} must be a finite number, not {value!r}")


def check_count(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63 - 1:
        raise SemanticError(f"{what} must be a positive integer, not {value!r}")


def check_numbers(column: Any, *fields: str) -> None:
    check_source(column)
    for field in fields:
        check_number(column, field)


def check_boundaries(column: Any) -> None:
    check_source(column)
    for value in column.boundaries:
        check_finite(value, f"a boundary of column {column.column}")
    for lower, upper in pairwise(column.boundaries):
        if lower >= upper:
            raise SemanticError(
                f"boundaries of column {column.column} must ascend, {upper} follows {lower}",
                hint="sort them and remove duplicates",
            )


def check_delimiter(column: Any) -> None:
    if not isinstance(column.delimiter, str) or not column.delimiter:
        raise SemanticError(
            f"the delimiter of column {column.column} must be a text, not {column.delimiter!r}"
        )


def check_distinct(values: tuple[object, ...], what: str) -> None:
    if len(set(values)) < len(values):
        value, times = Counter(values).most_common(1)[0]
        raise SemanticError(f"{what} holds {value!r} {times} times")


def fits(column: object, place: Place) -> bool:
    """Return True for a category that may stand there."""
    return isinstance(column, Column) and place in column.places


def check_category(category: object, place: Place, function: str) -> None:
    """Check the category that the function is called with. Raises SemanticError if it is none that may stand there."""
    if not fits(category, place):
        raise SemanticError(f"{function} takes {_TAKES[place]}, not {category!r}", hint=_MAKERS[place])
    check_fields(category)


def check_size(column: Any) -> None:
    check_source(column)
    check_count(column.size, f"size of column {column.column}")
