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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features.arrays import Floats, numbers
from edl.features.calendar import TIME_PARTS, parts, years
from edl.features.categories import Encoder, Ids, encoder
from edl.features.checks import check, check_tables
from edl.features.computed import column as column_of
from edl.features.encodings import Encoder as StatisticsEncoder
from edl.features.lists import Lists
from edl.spec import (
    Category,
    Codes,
    Embedding,
    Encoding,
    Feature,
    Log,
    Normalize,
    Numeric,
    OneHot,
    Periodic,
    PiecewiseLinear,
    Raw,
    Sequence,
    Standardize,
    Vector,
    Year,
    is_dense,
    num_ids,
    source_columns,
    width,
)
from edl.spec.features import DENSE_TYPES, LIST_TYPES, TREE_TYPES, Dense

DENSE, POSITIONS, PERIODIC = "dense", "positions", "periodic"
NUMBERS = ("dense", "positions", "periodic")  # kinds of entries that are matrices
_LARGEST = 1e30  # of a feature: sums of such numbers in a network do not overflow float32


@dataclass(frozen=True, slots=True)
class Entry:
    """Array of the transform's result.

    `kind` is dense (float32, of trees float64, (n, width), the values of each feature), positions (float32 of shape (n,
    number of features): bins below the number, with the fraction of its own bin, or -1; `width` is the width of their
    encodings), periodic (float32 of shape (n, number of features): numbers that the model embeds, all by as many
    frequencies), category (int64 ids of shape (n,) in [0, num_ids), of the one feature; `width` is the width of its
    one-hot row or embedding vector), list (the same for lists of ids), or sequence (int64 (n, width) in [0, num_ids),
    see `edl.spec.Sequence`).
    """

    name: str  # "dense", "positions", "periodic_16", or "f" and the feature's position, after the prefix
    kind: Literal["dense", "positions", "periodic", "category", "list", "sequence"]
    features: tuple[Feature, ...]
    width: int
    num_ids: int = 0

    @property
    def feature(self) -> Feature:
        """First feature; of a category the only one."""
        return self.features[0]

    @property
    def encodings(self) -> tuple[list[int], list[float]]:
        """Column and first position of each value that the model encodes positions in: clip(position - first, 0, 1).

        The bin that precedes the first one contains all numbers and no NULL.
        """
        bins = [
            (number, float(first))
            for number, feature in enumerate(self.features)
            if isinstance(feature, PiecewiseLinear)
            for first in range(-int(feature.nulls), feature.bins)
        ]
        return [number for number, _ in bins], [first for _, first in bins]


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
            column.category: encoder(column.category)
            for column in columns
            if isinstance(column, OneHot | Embedding | Sequence | Codes | Encoding)
        }
        self._statistics: dict[Feature, StatisticsEncoder] = {
            column: StatisticsEncoder(column) for column in columns if isinstance(column, Encoding)
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
        arrays: dict[str, Any] = {}
        for entry in self.entries:
            if entry.kind == "dense":
                arrays[entry.name] = _matrix(entry, batch, ids, self._statistics)
            elif entry.kind == "positions":
                arrays[entry.name] = _positions(entry, batch)
            elif entry.kind == "periodic":
                arrays[entry.name] = _standardize_periodic(entry, batch)
            elif isinstance(entry.feature, Sequence):
                arrays[entry.name] = _in_order(ids[entry.feature.category], entry.width)
            elif isinstance(entry.feature, OneHot | Embedding):
                arrays[entry.name] = ids[entry.feature.category]
        return arrays


def _check_feature(column: Feature) -> None:
    check(column)
    if not isinstance(column, (*DENSE_TYPES, *TREE_TYPES, OneHot, Embedding, Sequence)):
        raise SemanticError(
            f"{type(column).__name__} gives ids, a model takes numbers",
            hint="wrap it in one_hot or embedding, or for trees in codes",
        )


def _entries(columns: tuple[Feature, ...], prefix: str) -> Iterable[Entry]:
    dense = tuple(filter(is_dense, columns))
    if dense:
        yield Entry(f"{prefix}{DENSE}", "dense", dense, sum(map(width, dense)))
    binned = tuple(column for column in columns if isinstance(column, PiecewiseLinear))
    if binned:
        yield Entry(f"{prefix}{POSITIONS}", "positions", binned, sum(map(width, binned)))
    periodic = [column for column in columns if isinstance(column, Periodic)]
    for frequencies in dict.fromkeys(column.frequencies for column in periodic):
        same = tuple(column for column in periodic if column.frequencies == frequencies)
        yield Entry(f"{prefix}{PERIODIC}_{frequencies}", "periodic", same, sum(map(width, same)))
    for position, column in enumerate(columns):
        if isinstance(column, OneHot | Embedding) and column not in dense:
            kind: Literal["category", "list"] = (
                "list" if isinstance(column.category, LIST_TYPES) else "category"
            )
            yield Entry(f"{prefix}f{position}", kind, (column,), width(column), num_ids(column.category))
        elif isinstance(column, Sequence):
            size = 1 + num_ids(column.category)
            yield Entry(f"{prefix}f{position}", "sequence", (column,), column.length, size)


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


# Dense columns ---------------------------------------------------------------------------------------------


def _matrix(
    entry: Entry,
    batch: pa.RecordBatch,
    ids: Mapping[Category, Ids],
    statistics: Mapping[Feature, StatisticsEncoder],
) -> npt.NDArray[Any]:
    """Compute the dense matrix.

    Columns are computed in float64, in which a timestamp's seconds differ, then narrowed unless they are for trees.
    """
    exact = any(isinstance(feature, TREE_TYPES) for feature in entry.features)
    matrix = np.empty((batch.num_rows, entry.width), dtype=np.float64 if exact else np.float32)
    last = 0
    for feature in entry.features:
        first, last = last, last + width(feature)
        if isinstance(feature, Raw):
            matrix[:, first] = _raw(feature, column_of(batch, feature.column))
        elif isinstance(feature, Codes):
            of_rows: Any = ids[feature.category]
            matrix[:, first] = np.where(of_rows == feature.category.size, np.nan, of_rows)
        elif isinstance(feature, OneHot):
            matrix[:, first:last] = _added_up(ids[feature.category], last - first)
        elif isinstance(feature, Encoding):
            of_categories: Any = ids[feature.category]
            matrix[:, first:last] = statistics[feature].values(of_categories, batch)
        elif isinstance(feature, DENSE_TYPES):
            values = _read(feature, column_of(batch, feature.column))
            _store(feature, values, np.empty_like(values), matrix[:, first:last])
    return matrix


def _read(feature: Dense, array: pa.Array) -> Floats:
    """Return the numbers of a column, float64 (n, width)."""
    if isinstance(feature, Vector):
        return Lists(array, feature.column, feature.delimiter).vectors(width(feature))
    read = years if isinstance(feature, Year) else numbers
    return read(array, str(feature.column))[:, None]


def _positions(entry: Entry, batch: pa.RecordBatch) -> npt.NDArray[np.float32]:
    """Compute the positions of numbers in their bins."""
    matrix = np.empty((batch.num_rows, len(entry.features)), dtype=np.float32)
    for number, feature in enumerate(entry.features):
        if isinstance(feature, PiecewiseLinear):
            values = numbers(column_of(batch, feature.column), str(feature.column))
            missing = -1.0 if feature.nulls else feature.bins / 2
            positions = np.interp(values, feature.boundaries, np.arange(feature.bins + 1))
            matrix[:, number] = np.where(np.isfinite(values), positions, missing)
    return matrix


def _standardize_periodic(entry: Entry, batch: pa.RecordBatch) -> npt.NDArray[np.float32]:
    """Compute the standardised numbers of periodic embeddings."""
    matrix = np.empty((batch.num_rows, len(entry.features)), dtype=np.float32)
    for number, feature in enumerate(entry.features):
        if isinstance(feature, Periodic):
            values = numbers(column_of(batch, feature.column), str(feature.column))[:, None]
            _store(feature, values, np.empty_like(values), matrix[:, number : number + 1])
    return matrix


def _added_up(ids: Any, size: int) -> npt.NDArray[np.float32]:
    """Sum the one-hot rows of lists of ids, (n, size)."""
    sums = np.zeros(len(ids) * size, dtype=np.float32)
    np.add.at(
        sums, ids.rows * np.int64(size) + ids.values, np.float32(1) if ids.weights is None else ids.weights
    )
    return sums.reshape(len(ids), size)


def _in_order(ids: Any, length: int) -> npt.NDArray[np.int64]:
    """Return 1 + the ids of lists in their order, (n, length): the last ones, and 0 behind a shorter list."""
    kept = np.minimum(np.diff(ids.offsets), length)
    places = np.arange(length)
    taken = places < kept[:, None]
    ordered = np.zeros(taken.shape, dtype=np.int64)
    ordered[taken] = ids.values[((ids.offsets[1:] - kept)[:, None] + places)[taken]] + 1
    return ordered


def _raw(feature: Raw, array: pa.Array) -> Floats:
    """Return the numbers of a column, float64 (n,); what is not finite is missing."""
    column = str(feature.column)
    if feature.part == "year":
        return years(array, column)
    if feature.part:
        date_part, is_valid = parts(array, feature.part, column)
        first = 0 if feature.part in TIME_PARTS else 1
        return np.where(is_valid, date_part + first, np.nan)
    values = numbers(array, column)
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)


def _store(feature: Dense, values: Floats, scratch: Floats, out: npt.NDArray[Any]) -> None:
    """Scale values and store them; those beyond ±`_LARGEST` become it, whatever the rows beside them are."""
    with np.errstate(over="ignore", invalid="ignore"):
        _SCALES[type(feature)](feature, values, scratch)
    # Written so that it holds also if some are not finite.
    if scratch.size and not (scratch.min() >= -_LARGEST and scratch.max() <= _LARGEST):
        scratch = np.clip(np.nan_to_num(scratch), -_LARGEST, _LARGEST)
    out[...] = scratch


def _fill(values: Floats, usable: npt.NDArray[np.bool_], mean: float | Floats, out: Floats) -> None:
    np.copyto(out, values)
    if not usable.all():
        np.copyto(out, mean, where=~usable)


def _numeric(feature: Numeric, values: Floats, out: Floats) -> None:
    _fill(values, np.isfinite(values), feature.mean, out)


def _standardize(feature: Standardize | Year | Periodic, values: Floats, out: Floats) -> None:
    _fill(values, np.isfinite(values), feature.mean, out)
    _shift_and_divide(out, feature.mean, feature.std)


def _limit_values(feature: Standardize, values: Floats, out: Floats) -> None:
    _standardize(feature, values, out)
    if feature.limit:
        out /= np.sqrt(1 + np.square(out / feature.limit))


def _normalize(feature: Normalize, values: Floats, out: Floats) -> None:
    _fill(values, np.isfinite(values), feature.mean, out)
    _shift_and_divide(out, feature.min, feature.max - feature.min)


def _vector(feature: Vector, values: Floats, out: Floats) -> None:
    mean, std = np.asarray(feature.mean), np.asarray(feature.std)
    _fill(values, np.isfinite(values), mean, out)
    if len(std):
        out -= mean
        np.divide(out, std, out=out, where=std != 0)
        out[:, std == 0] = 0.0


def _shift_and_divide(values: Floats, by: float, scale: float) -> None:
    if scale == 0:
        values.fill(0.0)
    else:
        values -= by
        values /= scale


def _log(feature: Log, values: Floats, out: Floats) -> None:
    _fill(values, np.isfinite(values) & (values > -1), feature.mean, out)
    np.log1p(out, out=out)


_SCALES: Mapping[type, Callable[[Any, Floats, Floats], None]] = {
    Numeric: _numeric,
    Standardize: _limit_values,
    Normalize: _normalize,
    Log: _log,
    Year: _standardize,
    Periodic: _standardize,
    Vector: _vector,
}
