"""Rows of Python values, as JSON or SQLite gives them, as Arrow columns of the types that a model was trained on.

A number may have a fraction where training had none, as in a table with a column of another type. A value of another
kind is a `ValueProblem` that names column, row and value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as types

from edl.data.arrow_types import times_of_day
from edl.errors import SemanticError, did_you_mean
from edl.features.column_types import LEAST_INEXACT

LONGEST_VALUE = 80  # characters of a value in a message

Values = Sequence[Any]


class ValueProblem(SemanticError):  # noqa: N818 - as a record of the answer
    """Value that its column cannot hold. row: counted from 0, or None if the column itself is the problem."""

    def __init__(self, message: str, column: str, row: int | None, value: object, expected: str) -> None:
        super().__init__(message)
        self.column = column
        self.row = row
        self.value = value
        self.expected = expected


def from_records(records: Sequence[object], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows that are given as dicts, name -> value. Names match without case; others are ignored.

    Raises ValueProblem for a row that is no dict, lacks a column, or has a value of another kind.
    """
    first = records[0] if records else {}
    names_given = _names(first, schema.names) if isinstance(first, Mapping) else {}
    columns = []
    for field in schema:
        name = names_given.get(field.name, field.name)
        try:
            values = [record[name] for record in records]  # type: ignore[index]
        except (KeyError, TypeError, IndexError):
            raise _missing_column(records, name) from None
        columns.append(to_column(values, field))
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def from_columns(columns: Mapping[str, object], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows that are given as a list for each column; names match without case, and other columns are ignored.
    Raises ValueProblem for a missing column, one of another length, or a value of another kind.
    """
    names_given = _names(columns, schema.names)
    arrays: list[pa.Array] = []
    for field in schema:
        if field.name not in names_given:
            near = did_you_mean(field.name, columns, list_up_to=0)
            raise ValueProblem(
                f"column {field.name} is missing" + (f"; {near}" if near else ""),
                field.name,
                None,
                None,
                "a list",
            )
        values = columns[names_given[field.name]]
        if not isinstance(values, list | tuple):
            raise ValueProblem(
                f"column {field.name} must be a list of values", field.name, None, values, "a list"
            )
        if arrays and len(values) != len(arrays[0]):
            count = f"{len(values)} value{'' if len(values) == 1 else 's'}"
            raise ValueProblem(
                f"column {field.name} has {count}, {schema.names[0]} has {len(arrays[0])}",
                *(field.name, None, len(values), f"{len(arrays[0])} values"),
            )
        arrays.append(to_column(values, field))
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def to_column(values: Values, field: pa.Field) -> pa.Array:
    """Return the values as a column. Raises ValueProblem for the first one of another kind."""
    kind = _kind(field.type)
    if set(map(type, values)) <= kind.types:
        try:
            return kind.convert(values, field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, ArithmeticError):
            pass  # the rows tell
    raise _problem(values, field, kind)


def describe_expected(kind: pa.DataType) -> str:
    """Return what a value of the type must be, as messages and documents say it."""
    return _kind(kind).expected


def json_type(kind: pa.DataType) -> dict[str, object]:
    """Return the JSON schema of a value of the type, or NULL."""
    return {**_kind(kind).json, "nullable": True}


# Kinds of values -------------------------------------------------------------------------------------------


class _ValueKind:
    """Python types of the values of some Arrow types, and their conversion. NULL is of every kind."""

    def __init__(
        self,
        expected: str,
        python: Sequence[type],
        convert: Callable[[Values, pa.DataType], pa.Array],
        json: dict[str, object],
    ) -> None:
        self.expected = expected
        self.types = frozenset((*python, type(None)))
        self.convert = convert
        self.json = json


def _numbers(values: Values, kind: pa.DataType) -> pa.Array:
    """Return integers where the type has them and all values are whole, otherwise float64."""
    if types.is_integer(kind) and not any(map(_is_fraction, values)):
        return pa.array([None if value is None else int(value) for value in values], kind)
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def _decimals(values: Values, kind: pa.DataType) -> pa.Array:
    if any(isinstance(value, float) and abs(value) >= LEAST_INEXACT for value in values):
        return _numbers(values, pa.float64())
    return pa.array([None if value is None else Decimal(str(value)) for value in values], kind)


def _is_fraction(value: float | None) -> bool:
    """Return True for a float that is no whole number, or may be in place of another one."""
    return isinstance(value, float) and (not value.is_integer() or abs(value) >= LEAST_INEXACT)


def _texts(values: Values, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind)


def _times(values: Values, kind: pa.DataType) -> pa.Array:
    """Read ISO 8601 texts. A zone is converted to UTC, which columns without a zone are taken to be in."""
    texts = pa.array(values, pa.string())
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        if kind.tz:
            return texts.cast(pa.timestamp(kind.unit)).cast(kind)
        return texts.cast(pa.timestamp(kind.unit, "UTC")).cast(kind)


def _dates(values: Values, kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.string()).cast(pa.date32()).cast(kind)


def _of_day(values: Values, kind: pa.DataType) -> pa.Array:
    return times_of_day(pa.array(values, pa.string()), kind)


def _bytes(values: Values, kind: pa.DataType) -> pa.Array:
    read = (base64.b64decode(value, validate=True) if isinstance(value, str) else value for value in values)
    return pa.array(list(read), kind)


def _truths(values: Values, kind: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else _truth(value) for value in values], kind)


def _truth(value: bool | int) -> bool:
    if value not in (0, 1):
        raise ValueError
    return bool(value)


_NUMBER: dict[str, object] = {"type": "number"}
_KINDS: tuple[tuple[Callable[[pa.DataType], bool], _ValueKind], ...] = (
    (types.is_boolean, _ValueKind("true or false", (bool, int), _truths, {"type": "boolean"})),
    (types.is_integer, _ValueKind("a number", (int, float), _numbers, _NUMBER)),
    (types.is_floating, _ValueKind("a number", (int, float), _numbers, _NUMBER)),
    (types.is_decimal, _ValueKind("a number", (int, float, str), _decimals, _NUMBER)),
    (types.is_string, _ValueKind("a text", (str,), _texts, {"type": "string"})),
    (
        types.is_date,
        _ValueKind("a date such as 2026-01-31", (str,), _dates, {"type": "string", "format": "date"}),
    ),
    (
        types.is_timestamp,
        _ValueKind(
            "a time such as 2026-01-31T12:30:00", (str,), _times, {"type": "string", "format": "date-time"}
        ),
    ),
    (
        types.is_time,
        _ValueKind("a time of day such as 12:30:00", (str,), _of_day, {"type": "string", "format": "time"}),
    ),
    (
        types.is_binary,
        _ValueKind("bytes in base64", (str, bytes), _bytes, {"type": "string", "format": "byte"}),
    ),
    (
        types.is_fixed_size_binary,
        _ValueKind("bytes in base64", (str, bytes), _bytes, {"type": "string", "format": "byte"}),
    ),
    (types.is_null, _ValueKind("null", (), _texts, {})),
)
_LIST = _ValueKind("a list of values", (list, tuple), _texts, {"type": "array", "items": {}})


def _kind(kind: pa.DataType) -> _ValueKind:
    return next((kind_of_type for is_kind, kind_of_type in _KINDS if is_kind(kind)), _LIST)


# Problems --------------------------------------------------------------------------------------------------


def _names(values: Mapping[Any, object], names: Sequence[str]) -> dict[str, str]:
    """Return the written name of each wanted column that is there."""
    folded = {str(name).casefold(): name for name in reversed(list(values))}
    by_name = {name: name if name in values else folded.get(name.casefold()) for name in names}
    return {name: as_written for name, as_written in by_name.items() if as_written is not None}


def _missing_column(records: Sequence[object], name: str) -> ValueProblem:
    """Return the problem of the first row without the column."""
    for row, record in enumerate(records):
        if not isinstance(record, Mapping):
            return ValueProblem(f"row {row} is not an object of columns", name, row, record, "an object")
        if name not in record:
            near = did_you_mean(name, map(str, record), list_up_to=0)
            hint = near or "write null for an unknown value"
            return ValueProblem(
                f"row {row} lacks the column {name}; {hint}", name, row, None, "a value or null"
            )
    raise AssertionError("every row has the column")


def _problem(values: Values, field: pa.Field, kind: _ValueKind) -> ValueProblem:
    """Return the problem of the first value that the column cannot hold."""
    for row, value in enumerate(values):
        try:
            if type(value) in kind.types:
                kind.convert([value], field.type)
                continue
        except (pa.ArrowException, ValueError, ArithmeticError):
            pass
        shown = repr(value)
        shown = shown if len(shown) <= LONGEST_VALUE else f"{shown[:LONGEST_VALUE]}…"
        return ValueProblem(
            f"column {field.name}, row {row}: {shown} is not {kind.expected}",
            field.name,
            row,
            value,
            kind.expected,
        )
    raise AssertionError("the values are those of their column")
