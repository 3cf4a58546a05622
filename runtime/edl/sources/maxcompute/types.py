"""Column types of MaxCompute and Arrow: types of read columns, and types of stored results.

| MaxCompute | Arrow |
|---|---|
| TINYINT, SMALLINT, INT, BIGINT | int8 … int64 |
| FLOAT, DOUBLE, DECIMAL(p, s), BOOLEAN | float, double, decimal128(p, s), bool |
| STRING, CHAR, VARCHAR, JSON | string |
| BINARY, DATE | binary, date32 |
| DATETIME | timestamp[ms] without a zone: wall-clock time in the source's zone |
| TIMESTAMP | timestamp[ns] in UTC |
| TIMESTAMP_NTZ | timestamp[ns] without a zone |
| ARRAY, MAP, STRUCT | list, map, struct of these |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import odps.types as odps_types
import pyarrow as pa
import pyarrow.compute as pc
from odps.tunnel.io.types import odps_type_to_arrow_type

from edl.errors import SourceError

_DIGITS = 38
_STORED: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20,0)",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.null(): "STRING",
}


@dataclass(frozen=True, slots=True)
class MaxComputeColumn:
    """Column with its Arrow type `kind`. `as_arrow`: the tunnel can send it in Arrow streams.

    `as_text`: it is shown as Python writes the values of pyodps, which Arrow does not have.
    """

    name: str
    odps: Any
    kind: pa.DataType
    as_arrow: bool
    as_text: bool = False


def columns(odps_columns: Iterable[Any]) -> list[MaxComputeColumn]:
    """Convert the columns of pyodps. Raises SourceError for a column of an unsupported type."""
    return [_column(column) for column in odps_columns]


def displayed_columns(odps_columns: Iterable[Any]) -> list[MaxComputeColumn]:
    """Convert the columns of a result for display: columns of unsupported types become texts."""
    return [
        _column(column)
        if _kind(column.type) is not None
        else MaxComputeColumn(column.name, column.type, pa.string(), as_arrow=False, as_text=True)
        for column in odps_columns
    ]


def schema(described: Sequence[MaxComputeColumn]) -> pa.Schema:
    return pa.schema([(column.name, column.kind) for column in described])


def from_wire(batch: pa.RecordBatch, described: Sequence[MaxComputeColumn], zone: str) -> pa.RecordBatch:
    """Convert a batch of the tunnel, in which timestamps are UTC without a zone, to a job's types."""
    arrays = [_read(array, column.odps, zone) for array, column in zip(batch.columns, described, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema(described))


def from_records(
    rows: Sequence[Sequence[Any]], described: Sequence[MaxComputeColumn], zone: str
) -> pa.RecordBatch:
    """Convert the values of pyodps's records, read in UTC, to a job's types."""
    cells = zip(*rows, strict=True) if rows else ((),) * len(described)
    arrays = [_from_values(values, column, zone) for values, column in zip(cells, described, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema(described))


def _from_values(values: Sequence[Any], column: MaxComputeColumn, zone: str) -> pa.Array:
    if column.as_text:
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    plain = pa.array([_to_arrow_value(value, column.odps) for value in values], _wire(column.odps))
    return _read(plain, column.odps, zone)


def declare_type(field: pa.Field) -> str:
    """Return the MaxCompute type of a column for the field. Raises SourceError if there is none."""
    kind = _find_type(field.type)
    if kind is None:
        raise SourceError(
            f"column {field.name} is of the type {field.type}, which MaxCompute cannot hold",
            hint="leave it out of the SELECT",
        )
    return kind


def to_wire(batch: pa.RecordBatch, zone: str) -> pa.RecordBatch:
    """Convert a batch for pyodps's writer: timestamps in UTC, unsupported types replaced by others."""
    arrays = [_convert_array(column, zone) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


# Reading -----------------------------------------------------------------------------------------------------


def _column(column: Any) -> MaxComputeColumn:
    kind = _kind(column.type)
    if kind is None:
        raise SourceError(
            f"column {column.name} is of the type {str(column.type).upper()}, which cannot be used",
            hint=f"cast it in the SELECT, for example CAST({column.name} AS STRING)",
        )
    return MaxComputeColumn(column.name, column.type, kind, _goes_as_arrow(column.type))


def _kind(kind: Any) -> pa.DataType | None:
    match kind:
        case odps_types.Array():
            value = _kind(kind.value_type)
            return pa.list_(value) if value is not None else None
        case odps_types.Map():
            key, value = _kind(kind.key_type), _kind(kind.value_type)
            return pa.map_(key, value) if key is not None and value is not None else None
        case odps_types.Struct():
            inner = [(name, _kind(field)) for name, field in kind.field_types.items()]
            return pa.struct(inner) if all(field is not None for _, field in inner) else None
        case odps_types.Timestamp():
            return pa.timestamp("ns", "UTC")
        case odps_types.IntervalDayTime():
            return None
    try:
        return _wire(kind)
    except TypeError:
        return None


def _wire(kind: Any) -> pa.DataType:
    """Return the type in the tunnel's Arrow stream. Raises TypeError if it has none."""
    if isinstance(kind, odps_types.Json):
        return pa.string()
    if isinstance(kind, odps_types.Decimal) and (kind.precision or _DIGITS + 1) > _DIGITS:
        return pa.decimal128(_DIGITS, 18)
    return odps_type_to_arrow_type(kind)


def _goes_as_arrow(kind: Any) -> bool:
    match kind:
        case odps_types.Array():
            return _goes_as_arrow(kind.value_type)
        case odps_types.Map():
            return _goes_as_arrow(kind.key_type) and _goes_as_arrow(kind.value_type)
        case odps_types.Struct():
            return all(_goes_as_arrow(field) for field in kind.field_types.values())
        case odps_types.Decimal():  # the old DECIMAL without digits has a different layout
            return (kind.precision or _DIGITS + 1) <= _DIGITS
    return not isinstance(kind, odps_types.Json)


def _read(array: pa.Array, kind: Any, zone: str) -> pa.Array:
    match kind:
        case odps_types.Datetime():
            moments = array.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", zone))
            return pc.local_timestamp(moments)
        case odps_types.Timestamp():
            return array.cast(pa.timestamp("ns", "UTC"))
        case odps_types.Array() | odps_types.Map() | odps_types.Struct():
            return _change_nested(array, _inner(kind), lambda part, inner: _read(part, inner, zone))
    return array


def _inner(kind: Any) -> list[Any]:
    match kind:
        case odps_types.Array():
            return [kind.value_type]
        case odps_types.Map():
            return [kind.key_type, kind.value_type]
    return list(kind.field_types.values())


def _to_arrow_value(value: Any, kind: Any) -> Any:
    """Convert a value of a record for Arrow."""
    if value is None:
        return None
    match kind:
        case odps_types.Array():
            return [_to_arrow_value(item, kind.value_type) for item in value]
        case odps_types.Map():
            return [
                (_to_arrow_value(k, kind.key_type), _to_arrow_value(v, kind.value_type))
                for k, v in value.items()
            ]
        case odps_types.Struct():
            items = value if isinstance(value, dict) else dict(zip(kind.field_types, value, strict=True))
            return {name: _to_arrow_value(items[name], field) for name, field in kind.field_types.items()}
        case odps_types.Timestamp() | odps_types.TimestampNTZ():
            return value.value  # nanoseconds
        case odps_types.Json():
            return json.dumps(value, ensure_ascii=False)  # decoded by pyodps
    return value


# Writing -----------------------------------------------------------------------------------------------------


def _find_type(kind: pa.DataType) -> str | None:
    if name := _STORED.get(kind):
        return name
    types = pa.types
    if types.is_decimal(kind):
        return (
            f"DECIMAL({kind.precision},{kind.scale})"
            if kind.precision <= _DIGITS and kind.scale <= 18
            else None
        )
    if types.is_timestamp(kind):
        if kind.tz:
            return "TIMESTAMP"
        return "DATETIME" if kind.unit in ("s", "ms") else "TIMESTAMP_NTZ"
    if types.is_date(kind):
        return "DATE"
    if types.is_time(kind):
        return "STRING"
    if types.is_duration(kind):
        return "BIGINT"
    if types.is_fixed_size_binary(kind):
        return "BINARY"
    return _declared_nested(kind)


def _declared_nested(kind: pa.DataType) -> str | None:
    types = pa.types
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        inner = [_find_type(kind.value_type)]
        shape = "ARRAY<{}>"
    elif types.is_map(kind):
        inner = [_find_type(kind.key_type), _find_type(kind.item_type)]
        shape = "MAP<{},{}>"
    elif types.is_struct(kind):
        inner = [_find_type(field.type) for field in kind]
        shape = f"STRUCT<{','.join(f'{field.name}:{{}}' for field in kind)}>"
    else:
        return None
    return shape.format(*inner) if all(inner) else None


def _convert_array(array: pa.Array, zone: str) -> pa.Array:
    kind = array.type
    types = pa.types
    if types.is_timestamp(kind):
        if kind.tz:
            return array.cast(pa.timestamp("ns", "UTC"))
        if kind.unit in ("s", "ms"):
            moments = pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="latest")
            return moments.cast(pa.timestamp("ms", "UTC"))
        return array.cast(pa.timestamp("ns"))
    if types.is_time(kind) or types.is_null(kind):
        return array.cast(pa.string())
    if types.is_duration(kind):
        return array.cast(pa.int64())
    if types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    if types.is_fixed_size_list(kind):
        array, kind = array.cast(pa.list_(kind.value_type)), pa.list_(kind.value_type)
    if types.is_unsigned_integer(kind):
        return array.cast(
            {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
        )
    if types.is_nested(kind):
        return _change_nested(
            array, [None] * kind.num_fields, lambda part, _: _remove_zones(_convert_array(part, zone))
        )
    return array


def _remove_zones(array: pa.Array) -> pa.Array:
    """Remove time zones: inside of nested values pyodps expects timestamps without a zone."""
    return array.cast(pa.timestamp(array.type.unit)) if pa.types.is_timestamp(array.type) else array


def _change_nested(
    array: pa.Array, inner: Sequence[Any], change: Callable[[pa.Array, Any], pa.Array]
) -> pa.Array:
    """Return the nested array with its inner arrays changed."""
    kind = array.type
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        parts = [change(array.field(index), inner_type) for index, inner_type in enumerate(inner)]
        return pa.StructArray.from_arrays(parts, names=[field.name for field in kind], mask=mask)
    if pa.types.is_map(kind):
        keys, items = change(array.keys, inner[0]), change(array.items, inner[-1])
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=mask)
    return pa.ListArray.from_arrays(array.offsets, change(array.values, inner[0]), mask=mask)
