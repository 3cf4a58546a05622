"""Features that a model makes of rows: their values, for the report `features` of PREDICT and SHOW FEATURES, and for
programs, without its weights and without a framework.

A feature has a column by its signature, such as `one_hot(vocabulary(city))`. A number is as the model takes it; a
category is its level, or its id where ids have no levels; NULL stands for missing and unseen ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from edl.data.arrow_types import columns_and_batches
from edl.data.names import free_name
from edl.errors import SemanticError, did_you_mean
from edl.features import Entry, Features
from edl.models.archive import read_archive
from edl.models.registry.base import Registry
from edl.ragged import Ragged
from edl.spec import Category, Feature, JobSpec, category_of, is_category, is_dense, item_of, num_ids, width
from sqlflow_edl.analysis.inference.used_model import renamed_inputs
from sqlflow_edl.analysis.warm_start import signature
from sqlflow_edl.reports.text import number

_LARGEST = 2**63 - 1  # of the integers that Arrow takes without being told their type
_FIRST = {"month": 1, "day": 1, "weekday": 1, "hour": 0, "minute": 0}  # value of id 0


def reader(
    model: JobSpec, batches: Iterable[pa.RecordBatch], schema: pa.Schema, others: Sequence[str]
) -> pa.RecordBatchReader:
    """Return the features of the rows behind those columns of the query that the model does not read, by batches.

    schema: of the batches. Reading raises SemanticError if a value does not suit its feature.
    """
    features = Features(*model.features)
    names = [*others, *_names(model.features, others)]

    def seen(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = _columns(features, batch)
        arrays = [batch.column(name) for name in others] + [columns[feature] for feature in model.features]
        return pa.record_batch(arrays, names=names)

    result_schema = seen(pa.RecordBatch.from_pylist([], schema=schema)).schema
    return pa.RecordBatchReader.from_batches(
        result_schema, (seen(batch).cast(result_schema) for batch in batches)
    )


def _names(features: Sequence[Feature], others: Sequence[str]) -> list[str]:
    taken = list(others)
    for feature in features:
        taken.append(free_name(signature(feature), taken))
    return taken[len(others) :]


def _columns(features: Features, batch: pa.RecordBatch) -> dict[Feature, pa.Array]:
    arrays = features.transform(batch)
    return {
        feature: column
        for entry in features.entries
        for feature, column in _of_entry(entry, arrays[entry.name])
    }


def _of_entry(entry: Entry, values: Any) -> Iterator[tuple[Feature, pa.Array]]:
    """Yield the features of an entry with their values."""
    if entry.kind == "positions":
        numbers, first = entry.encodings
        for place, feature in enumerate(entry.features):
            bins = np.array([start for number, start in zip(numbers, first, strict=True) if number == place])
            yield feature, _lists(np.clip(values[:, [place]] - bins, 0, 1))
        return
    if entry.kind == "sequence":
        ends = np.cumsum([0, *np.count_nonzero(values, axis=1)])
        ids = levels(entry.category, values[values > 0] - 1)
        yield entry.feature, pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), ids)
        return
    if entry.kind in ("category", "list"):
        yield entry.feature, _levels(entry.category, values)
        return
    last = 0
    for feature in entry.features:
        size = width(feature) if is_dense(feature) else 1
        first_column, last = last, last + size
        matrix = values[:, first_column:last]
        category = category_of(feature)
        if feature.is_for_trees and is_category(category):
            id_column = np.nan_to_num(matrix[:, 0], nan=category.size).astype(np.int64)
            yield feature, levels(category, id_column)
        else:
            kind = pa.string() if entry.kind == "texts" else None
            yield feature, _lists(matrix) if size > 1 else pa.array(matrix[:, 0], kind, from_pandas=True)


def _lists(values: Any) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), from_pandas=True), values.shape[1])


def _levels(category: Category, ids: Any) -> pa.Array:
    if not isinstance(ids, Ragged):
        return levels(category, ids)
    offsets = pa.array(ids.offsets, pa.int64())
    return pa.LargeListArray.from_arrays(offsets, levels(category, ids.values))


def levels(category: Category, ids: Any) -> pa.Array:
    """Return the levels of the ids, NULL for missing or unseen."""
    item = item_of(category)
    if item.levels:
        is_long = any(isinstance(value, int) and value > _LARGEST for value in item.levels)
        kind = pa.decimal128(38, 0) if is_long else None
        others = [None] * (num_ids(category) - len(item.levels))
        return pa.array([*item.levels, *others], kind).take(pa.array(ids))
    if category.boundaries:
        return pa.array([*_intervals(category.boundaries), None]).take(pa.array(ids))
    first = _FIRST[category.part] if category.part else 0
    return pa.array(ids + first, mask=ids >= num_ids(category) - 1 - category.has_other)


def _intervals(boundaries: Sequence[float]) -> Iterator[str]:
    yield f"below {number(boundaries[0])}"
    for low, high in pairwise(boundaries):
        yield f"{number(low)} to {number(high)}"
    yield f"from {number(boundaries[-1])}"


@dataclass(frozen=True)
class Transform:
    """Fitted features of a model, which any number of threads may apply.

    reference: name@version, or the file of the archive. spec: the model's JobSpec.
    """

    reference: str
    spec: JobSpec

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the features read."""
        return tuple(self.spec.columns)

    def transform(self, rows: Any) -> pa.Table:
        """Return the other columns of the rows, and behind them the features, as SHOW FEATURES gives them.

        rows: an Arrow table, batch or reader, or a data frame of pandas or polars. Names of columns match exactly, else
        without case. Raises SemanticError for a missing column, or a value that does not suit its feature.
        """
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        names = _match_columns(self.columns, table.column_names, self.reference)
        model = msgspec.structs.replace(self.spec, inputs=renamed_inputs(self.spec, names))
        _, batches = columns_and_batches(table.to_reader())
        others = [name for name in table.column_names if name not in names.values()]
        return reader(model, batches, table.schema, others).read_all()


def load_transform(model: str | Path, registry: Registry | None) -> Transform:
    """Load the features of a model from a registry, or of an archive file; see `sqlflow_edl.load_transform`."""
    if registry is None:
        transform = Transform(str(model), read_archive(Path(model)).spec)
    else:
        with registry.fetch(str(model)) as (version, file):
            transform = Transform(version.reference, read_archive(file).spec)
    if transform.spec.forecast is not None or not transform.spec.features:
        kind = "a forecast" if transform.spec.forecast is not None else "an ensemble"
        raise SemanticError(f"{transform.reference} is {kind}, which has no features of single rows")
    return transform


def _match_columns(columns: tuple[str, ...], names: list[str], reference: str) -> Mapping[str, str]:
    """Map the model's columns to the columns of the rows."""
    folded = {name.casefold(): name for name in reversed(names)}
    by_column = {
        column: column if column in names else folded.get(column.casefold(), "") for column in columns
    }
    missing = [column for column, name in by_column.items() if not name]
    if missing:
        raise SemanticError(
            f"the rows lack {', '.join(missing)}, which {reference} reads",
            hint=did_you_mean(missing[0], names, list_up_to=12),
        )
    return by_column
