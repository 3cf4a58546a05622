"""Columnar transform: from a batch of table rows to the arrays that a model takes.

All numbers, and the one-hot sums of lists, become one matrix, the positions of numbers in their bins another, and so do
numbers that the model embeds periodically; any other category becomes one array of ids; there is no loop over rows. A
model concatenates its inputs in the order of `Features.entries`: the numbers first, then the encodings of the positions
and the periodic embeddings, then the one-hot rows and embedding vectors in the order of the columns.

The matrices are float32, which networks compute in; the features of trees are a float64 matrix alone, because trees
only compare numbers, and float32 would make equal what differs (16,777,216 and 16,777,217).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features.categories import Encoder, Ids, encoder
from edl.features.columns import check_tables, read_texts
from edl.features.encodings import Encoder as StatisticsEncoder
from edl.features.kinds import RowsOfBatch, check, compute_values
from edl.features.number_features import bins_of
from edl.spec import (
    Category,
    Feature,
    RawText,
    category_of,
    is_category,
    is_dense,
    is_encoding,
    num_ids,
    source_columns,
    width,
)

DENSE, POSITIONS, PERIODIC, TEXTS = "dense", "positions", "periodic", "texts"
NUMBERS = ("dense", "positions", "periodic")  # kinds of entries that are matrices


@dataclass(frozen=True, slots=True)
class Entry:
    """Array of the transform's result.

    `kind` is dense (float32, of trees float64, (n, width), the values of each feature), positions (float32 of shape (n,
    number of features): bins below the number, with the fraction of its own bin, or -1; `width` is the width of their
    encodings), periodic (float32 of shape (n, number of features): numbers that the model embeds, all by as many
    frequencies), category (int64 ids of shape (n,) in [0, num_ids), of the one feature; `width` is the width of its
    one-hot row or embedding vector), list (the same for lists of ids), sequence (int64 (n, width) in [0, num_ids),
    see `edl.spec.Sequence`), or texts (objects of shape (n, number of features): str, or None for NULL).
    """

    name: str  # "dense", "positions", "periodic_16", or "f" and the feature's position, after the prefix
    kind: Literal["dense", "positions", "periodic", "category", "list", "sequence", "texts"]
    features: tuple[Feature, ...]
    width: int
    num_ids: int = 0

    @property
    def feature(self) -> Feature:
        """First feature; of a category the only one."""
        return self.features[0]

    @property
    def category(self) -> Category:
        """Category of the ids. Raises TypeError for an entry of numbers."""
        category = category_of(self.feature)
        if not is_category(category):
            raise TypeError(f"{type(self.feature).__name__} has no ids")
        return category

    @property
    def encodings(self) -> tuple[list[int], list[float]]:
        """Column and first position of each value that the model encodes positions in: clip(position - first, 0, 1).

        The bin that precedes the first one contains all numbers and no NULL.
        """
        bins = bins_of(self.features)
        return [number for number, _ in bins], [float(first) for _, first in bins]


class Features:
    """Features of one model input, in order, and the transform that computes them.

    `columns` are the features, `entries` the arrays that `transform` returns, in order, and `source_columns` the
    columns of a batch that it reads. `width` is the number of values per row once all entries are concatenated.
    `prefix` precedes the arrays' names.
    """

    def __init__(self, *columns: Feature, prefix: str = "") -> None:
        for column in columns:
            _check_feature(column)
        if not columns:
            raise SemanticError("a model needs at least one feature")
        check_tables(columns)
        self.columns: tuple[Feature, ...] = columns
        self.entries: tuple[Entry, ...] = tuple(_entries(columns, prefix))
        self.source_columns: tuple[str, ...] = tuple(
            dict.fromkeys(n for c in columns for n in source_columns(c))
        )
        self.width: int = sum(entry.width for entry in self.entries)
        self._encoders: dict[Category, Encoder] = {
            category: encoder(category) for category in map(category_of, columns) if is_category(category)
        }
        self._statistics: dict[Feature, StatisticsEncoder] = {
            column: StatisticsEncoder(column) for column in columns if is_encoding(column)
        }

    def __repr__(self) -> str:
        return f"Features({', '.join(map(repr, self.columns))})"

    def transform(
        self, batch: pa.RecordBatch, shared_ids: dict[Category, Ids] | None = None
    ) -> dict[str, Any]:
        """Return the entries' arrays by name: "dense" and "positions" float32 (n, k), "dense" of trees float64,
        C-contiguous; others int64 (n,) or `edl.Ragged`.

        Columns are selected by name; others in the batch are ignored. Features over one category share one array.
        `shared_ids` holds ids of the batch that are computed already; others are added. Raises SemanticError for a
        missing column or one of an unsupported type.
        """
        _check_columns(self.source_columns, batch.schema)
        ids = {} if shared_ids is None else shared_ids
        ids |= {category: encode(batch) for category, encode in self._encoders.items() if category not in ids}
        rows = RowsOfBatch(batch, ids, self._statistics)
        return {entry.name: _array(entry, rows) for entry in self.entries}


class Inputs:
    """Features by the name of the model's input; used like `Features`, and each input by `inputs["deep"]`.

    The names of an input's arrays begin with its name (`deep_dense`, `wide_f0`), so the arrays of all inputs form one
    dict. The ids of a category that two inputs use are computed once.
    """

    def __init__(self, **inputs: Features) -> None:
        if not inputs:
            raise SemanticError("a model needs at least one input")
        self._inputs = {
            name: Features(*features.columns, prefix=f"{name}_") for name, features in inputs.items()
        }
        self.entries: tuple[Entry, ...] = tuple(
            entry for features in self._inputs.values() for entry in features.entries
        )
        self.source_columns: tuple[str, ...] = tuple(
            dict.fromkeys(column for features in self._inputs.values() for column in features.source_columns)
        )

    def __getitem__(self, name: str) -> Features:
        if name not in self._inputs:
            raise SemanticError(f"the model has no input {name}", hint=did_you_mean(name, self._inputs))
        return self._inputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._inputs)

    def __repr__(self) -> str:
        return f"Inputs({', '.join(f'{name}={features!r}' for name, features in self._inputs.items())})"

    def transform(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """Return the arrays of all inputs by name, see `Features.transform`."""
        arrays: dict[str, Any] = {}
        ids: dict[Any, Any] = {}
        for features in self._inputs.values():
            arrays |= features.transform(batch, ids)
        return arrays


def _array(entry: Entry, rows: RowsOfBatch) -> Any:
    if entry.kind in NUMBERS:
        return _matrix(entry, rows)
    if entry.kind == "texts":
        return np.column_stack([read_texts(cast(RawText, feature), rows) for feature in entry.features])
    ids = rows.ids[entry.category]
    return _in_order(ids, entry.width) if entry.kind == "sequence" else ids


def _check_feature(column: Feature) -> None:
    check(column)
    if not column.array:
        raise SemanticError(
            f"{type(column).__name__} gives ids, a model takes numbers",
            hint="wrap it in one_hot or embedding, or for trees in codes",
        )


def _entries(columns: tuple[Feature, ...], prefix: str) -> Iterable[Entry]:
    dense = tuple(filter(is_dense, columns))
    if dense:
        yield Entry(f"{prefix}{DENSE}", "dense", dense, sum(map(width, dense)))
    binned = tuple(column for column in columns if column.array == "positions")
    if binned:
        yield Entry(f"{prefix}{POSITIONS}", "positions", binned, sum(map(width, binned)))
    periodic = [column for column in columns if column.array == "periodic"]
    for frequencies in dict.fromkeys(map(width, periodic)):
        same = tuple(column for column in periodic if column.width == frequencies)
        yield Entry(f"{prefix}{PERIODIC}_{frequencies}", "periodic", same, sum(map(width, same)))
    texts = tuple(column for column in columns if column.array == "texts")
    if texts:
        yield Entry(f"{prefix}{TEXTS}", "texts", texts, len(texts))
    for position, column in enumerate(columns):
        category = category_of(column)
        if not is_category(category) or column in dense:
            continue
        name = f"{prefix}f{position}"
        if column.array == "sequence":
            yield Entry(name, "sequence", (column,), column.width, 1 + num_ids(category))
        else:
            kind: Literal["category", "list"] = "list" if category.has_lists else "category"
            yield Entry(name, kind, (column,), column.width, num_ids(category))


def _check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    present = Counter(schema.names)
    missing = [name for name in names if name not in present]
    if missing:
        raise SemanticError(
            f"the data has no column {', '.join(missing)}", hint=did_you_mean(missing[0], present)
        )
    twice = [name for name in names if present[name] > 1]
    if twice:
        raise SemanticError(f"the data has several columns {', '.join(twice)}", hint="rename them with AS")


# Arrays ----------------------------------------------------------------------------------------------------


def _matrix(entry: Entry, rows: RowsOfBatch) -> npt.NDArray[Any]:
    """Compute the matrix of the entry's features: their values, or the numbers that the model encodes.

    Columns are computed in float64, then narrowed unless they are for trees.
    """
    is_exact = any(feature.is_for_trees for feature in entry.features)
    widths = [feature.width if entry.kind == DENSE else 1 for feature in entry.features]
    matrix = np.empty((rows.batch.num_rows, sum(widths)), dtype=np.float64 if is_exact else np.float32)
    last = 0
    for feature, columns in zip(entry.features, widths, strict=True):
        first, last = last, last + columns
        matrix[:, first:last] = compute_values(feature, rows)
    return matrix


def _in_order(ids: Any, length: int) -> npt.NDArray[np.int64]:
    """Return 1 + the ids of lists in their order, (n, length): the last ones, and 0 behind a shorter list."""
    kept = np.minimum(np.diff(ids.offsets), length)
    places = np.arange(length)
    taken = places < kept[:, None]
    ordered = np.zeros(taken.shape, dtype=np.int64)
    ordered[taken] = ids.values[((ids.offsets[1:] - kept)[:, None] + places)[taken]] + 1
    return ordered


# Vectors ---------------------------------------------------------------------------------------------------


def compute_vectors(features: Features, batch: pa.RecordBatch) -> npt.NDArray[np.float32]:
    """Return the features of a few rows as a model concatenates them, float32 (rows, features.width).

    Raises SemanticError for a feature with numbers that a model learns.
    """
    arrays = features.transform(batch)
    parts = [_vector(entry, arrays[entry.name]) for entry in features.entries]
    return np.concatenate(parts, axis=1, dtype=np.float32)


def _vector(entry: Entry, array: Any) -> npt.NDArray[np.float32]:
    if entry.kind == "dense":
        return np.asarray(array, np.float32)
    if entry.kind == "positions":
        columns, first = entry.encodings
        return np.asarray((array[:, columns] - np.asarray(first, np.float32)).clip(0, 1), np.float32)
    if entry.kind == "category" and not entry.feature.dim:
        return np.asarray(np.equal.outer(array, np.arange(entry.num_ids)), np.float32)
    raise SemanticError(f"{entry.feature} has numbers that a model learns, so a row of it is no vector")
