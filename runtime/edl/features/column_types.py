"""Columns of unsuitable types for features and labels, found without rows: by one made-up row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from edl.errors import SQLFlowError
from edl.features.arrays import ColumnTypeError
from edl.features.labels import target
from edl.features.transform import Features
from edl.spec import Feature, Label, source_columns
from edl.spec.column import nodes, sources
from edl.spec.computed import functions

LEAST_INEXACT = 2**53  # least whole number that a double may hold in place of another one
_VALUES: tuple[object, ...] = ("", b"", 0, False, [], {})


def find_unfit_columns(
    features: Iterable[Feature], label: Label | None, schema: pa.Schema, columns: Collection[str]
) -> dict[str, ColumnTypeError]:
    """Return an error for each column if a feature, or the label, does not take its type in the schema.

    label: to be compared with predictions; None if it is not read. Other columns than `columns` are not looked at. A
    type does not tell the meaning of a value, so rows may still have errors. A column of NULLs alone has none, whatever
    its type.
    """
    selected = set(columns)
    batch = pa.RecordBatch.from_arrays([example(field.type) for field in schema], names=schema.names)
    unfit: dict[str, ColumnTypeError] = {}
    for compute in _computations(features, label, selected):
        # without a value that makes sense, anything else may be wrong
        with contextlib.suppress(SQLFlowError, pa.ArrowException, ArithmeticError, LookupError, ValueError):
            try:
                compute(batch)
            except ColumnTypeError as error:
                if error.column in selected:
                    unfit.setdefault(error.column, error)
    return unfit


def columns_of_large_ids(features: Iterable[Feature], columns: Collection[str]) -> list[str]:
    """Return those of the columns that hold ids of categories which would be others if a double rounded them."""
    names = {
        name
        for feature in features
        for part in nodes(feature)
        if part.tells_neighbours
        and (
            not part.levels
            or any(isinstance(level, int) and abs(level) >= LEAST_INEXACT for level in part.levels)
        )
        for name in source_columns(part)
    }
    return [column for column in columns if column in names]


def _computations(
    features: Iterable[Feature], label: Label | None, selected: set[str]
) -> Iterator[Callable[[pa.RecordBatch], object]]:
    for feature in features:
        has_functions = any(
            True for source in sources(feature) for _ in functions(source)
        )  # of a user's: not run here
        if not has_functions and not selected.isdisjoint(source_columns(feature)):
            yield Features(feature).transform
    if label is not None and label.column in selected:
        to_predict = target(label)
        yield lambda batch: to_predict.transform(batch, "evaluate")


def example(kind: pa.DataType) -> pa.Array:
    """Return a column of the type with one value, or with NULL if none is simple."""
    for value in _VALUES:
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            return pa.array([value], kind)
    return pa.nulls(1, kind)
