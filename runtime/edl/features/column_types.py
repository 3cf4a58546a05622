"""Columns of unsuitable types for features and labels, found without rows: by one made-up row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from edl.errors import SemanticError, SQLFlowError
from edl.features.arrays import ColumnTypeError
from edl.features.labels import target
from edl.features.transform import Features
from edl.spec import Feature, Label, source_columns
from edl.spec.column import Column, nodes, sources
from edl.spec.computed import functions

LEAST_INEXACT = 2**53  # least whole number that a double may hold in place of another one
# Beginnings of the names of Arrow's types, and how their values are written.
_FORMS = (
    (("int", "uint", "half", "float", "double", "decimal"), "number"),
    (("bool",), "boolean"),
    (("date",), "date"),
    (("timestamp",), "timestamp"),
    (("string", "large_string"), "text"),
)
# Pairs of forms with other texts for equal values -> whether a category is to tell. One that lists its values reads 0
# and 1 as booleans, and counts unseen values in a note; but it may know a day, and not the day's first second.
_OTHER_TEXTS: Mapping[frozenset[str], Callable[[Column], bool]] = {
    frozenset(("date", "timestamp")): lambda category: True,
    frozenset(("text", "timestamp")): lambda category: not category.levels,
    frozenset(("number", "boolean")): lambda category: not category.levels,
}
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


def columns_of_large_ids(
    features: Iterable[Column], columns: Collection[str], *, hashed: bool = False
) -> list[str]:
    """Return the columns with ids of categories that a double may round to other ids.

    features: categories, too. hashed: also columns that are hashed, of which the ids are not known.
    """
    names = {
        name
        for feature in features
        for part in nodes(feature)
        if part.tells_neighbours and (_has_large(part) or (hashed and not part.levels))
        for name in source_columns(part)
    }
    return [column for column in columns if column in names]


def columns_written_otherwise(
    features: Iterable[Column], schema: pa.Schema, before: Mapping[str, str]
) -> list[str]:
    """Return the columns of the schema of which categories have other texts for equal values than in the training.

    before: types of the training's columns by their folded names.
    """
    places: dict[str, list[Column]] = {}
    for part in (part for feature in features for part in nodes(feature) if part.tells_neighbours):
        for name in source_columns(part):
            places.setdefault(name, []).append(part)
    other = []
    for field in schema:
        kinds = str(field.type), before.get(field.name.casefold(), "")
        differs = _OTHER_TEXTS.get(frozenset(map(_written_form, kinds)))
        if differs is not None and any(map(differs, places.get(field.name, ()))):
            other.append(field.name)
    return other


def _written_form(kind: str) -> str:
    """Return how values of a type of Arrow are written, one of `_FORMS`; else an empty text."""
    return next((form for beginnings, form in _FORMS if kind.startswith(beginnings)), "")


def check_ids(batch: pa.RecordBatch, columns: Collection[str]) -> None:
    """Raise SemanticError for an id in one of the columns that may have been rounded, as a float."""
    for name in columns:
        array = batch.column(name) if name in batch.schema.names else None
        if array is None or not types.is_floating(array.type):
            continue
        is_large = pc.greater_equal(pc.abs(array), float(LEAST_INEXACT))
        if pc.any(is_large).as_py():
            value = array.filter(is_large)[0].as_py()
            raise SemanticError(
                f"column {name} has the id {value:.0f} as a floating-point number, which cannot tell it from its "
                "neighbours",
                hint="give it as a whole number, as in training",
            )


def _has_large(category: Column) -> bool:
    return any(isinstance(level, int) and abs(level) >= LEAST_INEXACT for level in category.levels)


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
