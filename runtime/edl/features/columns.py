"""Features of categories' ids, and of texts as they are: their constructors, checks and values.

The constructors of feature columns check their arguments, as in `fc.standardize("age", mean=38.6, std=13.6)`, and
return the spec object of the same name. A SemanticError names the invalid argument and column.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from edl.errors import SemanticError, SpecError, did_you_mean
from edl.features.arrays import texts
from edl.features.computed import column as column_of
from edl.features.kinds import (
    RowsOfBatch,
    check,
    check_category,
    check_count,
    check_fields,
    check_name,
    compute_values,
)
from edl.spec import (
    Category,
    Codes,
    Embedding,
    Feature,
    ListOf,
    NGrams,
    OneHot,
    RawText,
    Sequence,
    embeddings,
    num_ids,
    sources,
)
from edl.spec.categories import Plain
from edl.spec.features import COMBINERS, INITIALS


def one_hot(category: Category) -> OneHot:
    """Return 1 at the row's id, or at each of a list, 0 elsewhere; the last places are for NULL and unseen values."""
    return check(OneHot(category))


def embedding(
    category: Category, dim: int, combiner: str = "sum", initial: str = "uniform", table: int = 0
) -> Embedding:
    """Return a trained vector of `dim` values for each id. `initial` values: uniform, normal or zeros.

    Neighbouring embeddings with one number of a `table` share their vectors.
    """
    return check(Embedding(category, dim, combiner, initial, table))


def sequence(
    category: ListOf | NGrams, length: int, vector: int | msgspec.UnsetType = msgspec.UNSET
) -> Sequence:
    """Return the ids of a list in their order, 1 + id, at most the last `length`, with 0 behind them.

    vector: numbers for each id in a model that does not say them.
    """
    return check(Sequence(category, length, vector))


def codes(category: Plain) -> Codes:
    """Return the id as a number, for trees; NULL is NaN."""
    return check(Codes(category))


def raw_text(column: str, null: str | msgspec.UnsetType = msgspec.UNSET) -> RawText:
    """Return the text as it is, for a model of a file; `null` replaces NULL."""
    return check(RawText(column, null))


def stored(path: str | Path) -> tuple[Any, ...]:
    """Return the JSON list in a file: a vocabulary or boundaries too long for a program's text.

    Raises SpecError if the file is missing, or is no list of texts and numbers.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=tuple[str | int | float, ...])
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror}", hint="it belongs beside the program"
        ) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is not a list of texts or numbers: {error}") from None


# Checks ----------------------------------------------------------------------------------------------------


@check_fields.register
def _check_one_hot(column: OneHot) -> None:
    check_category(column.category, "model", "one_hot")


@check_fields.register
def _check_embedding(column: Embedding) -> None:
    check_category(column.category, "model", "embedding")
    check_count(column.dim, "dim of an embedding")
    if column.combiner not in COMBINERS:
        hint = did_you_mean(str(column.combiner), COMBINERS)
        raise SemanticError(f"an embedding has no combiner {column.combiner!r}", hint=hint)
    if column.initial not in INITIALS:
        hint = did_you_mean(str(column.initial), INITIALS)
        raise SemanticError(f"an embedding has no initial values {column.initial!r}", hint=hint)
    if isinstance(column.table, bool) or not isinstance(column.table, int) or column.table < 0:
        raise SemanticError(f"table of an embedding must be 0 or a positive integer, not {column.table!r}")


@check_fields.register
def _check_sequence(column: Sequence) -> None:
    check_category(column.category, "sequence", "sequence")
    check_count(column.length, "length of a sequence")


@check_fields.register
def _check_codes(column: Codes) -> None:
    check_category(column.category, "encoding", "codes")


@check_fields.register
def _check_raw_text(column: RawText) -> None:
    check_name(column.column, "raw_text")
    if not isinstance(column.null, str | msgspec.UnsetType):
        raise SemanticError(f"null of column {column.column} must be a text, not {column.null!r}")


def check_tables(columns: Iterable[Feature]) -> None:
    """Raise SemanticError if features with one table are no neighbours, or their vectors differ in kind."""
    seen: set[int] = set()
    for table, run in groupby(columns, key=lambda feature: feature.table):
        sharing = list(embeddings(run))
        names = ", ".join(str(source) for feature in sharing for source in sources(feature))
        if table and table in seen:
            raise SemanticError(
                f"the embedding of {names} is apart from others of table {table}", hint="put them together"
            )
        if table and len(set(map(_vectors, sharing))) > 1:
            raise SemanticError(
                f"the embeddings of {names} share a table, and differ in their vectors or ids"
            )
        seen.add(table)


def _vectors(column: Embedding) -> tuple[object, ...]:
    """Return all that embeddings of one table have in common."""
    category = column.category
    weighted = category.weights != "" if category.made_of == "category" else None
    return num_ids(category), column.dim, column.combiner, column.initial, category.has_lists, weighted


# Values ----------------------------------------------------------------------------------------------------


@compute_values.register
def _codes(feature: Codes, rows: RowsOfBatch) -> npt.NDArray[np.float64]:
    ids = rows.ids[feature.category]
    return np.where(ids == feature.category.size, np.nan, ids)[:, None]


def read_texts(feature: RawText, rows: RowsOfBatch) -> npt.NDArray[Any]:
    """Return the texts of a column, objects (n, 1): str, and None for NULL without a text of its own.

    Raises ColumnTypeError for a column of lists or records.
    """
    values = texts(column_of(rows.batch, feature.column), feature.column)
    null = None if feature.null is msgspec.UNSET else feature.null
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = [
        null if value is None else value.decode(errors="replace") if isinstance(value, bytes) else value
        for value in values.to_pylist()
    ]
    return column


@compute_values.register
def _one_hot(feature: OneHot, rows: RowsOfBatch) -> npt.NDArray[np.float32]:
    """Sum the one-hot rows of lists of ids, (n, size)."""
    ids, size = rows.ids[feature.category], feature.width
    sums = np.zeros(len(ids) * size, dtype=np.float32)
    np.add.at(
        sums, ids.rows * np.int64(size) + ids.values, np.float32(1) if ids.weights is None else ids.weights
    )
    return sums.reshape(len(ids), size)
