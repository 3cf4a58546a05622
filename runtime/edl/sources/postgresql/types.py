"""Types of PostgreSQL's columns, and conversion of the values that psycopg loads to Arrow, a column at a time.

| column | Arrow |
|---|---|
| boolean, smallint … bigint, real, double precision | of the same width |
| numeric(p, s) of at most 38 digits | decimal128; any other numeric is a double |
| date, time, timestamp, timestamptz | date32, time64, timestamp, timestamp in UTC |
| texts, enums, uuid, json, xml, inet, bit | string; char(n) without the blanks at its end |
| bytea | binary |
| arrays of these | list; of one dimension |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from edl.data.arrow_types import of_database, plain_name, times_of_day
from edl.data.displayed_rows import text_where_unfit
from edl.data.names import check_unique, quote_part
from edl.errors import UnfitValueError
from edl.sources.postgresql.connection import Array, Described
from edl.sources.postgresql.driver import psycopg

_DIGITS = 38  # limit of a decimal
# values that have no place in a type of Arrow
_NOWHERE: tuple[tuple[Callable[[Any], bool], tuple[str, ...]], ...] = (
    (pa.types.is_date, ("'infinity'", "'-infinity'")),
    (pa.types.is_timestamp, ("'infinity'", "'-infinity'")),
    (pa.types.is_time, ("'24:00'",)),
    (pa.types.is_decimal, ("'NaN'",)),
)
_FIRST, _LAST = "0001-01-01", "9999-12-31"  # dates that Arrow reads
_MOMENT = r"^(?P<local>.*\d)(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d*):?(?P<seconds>\d*)$"
_LONG = r"^-?\d{16}"  # begins with more digits than every double keeps
_TEXTS = (
    "text", "varchar", "bpchar", "name", '"char"', "unknown", "uuid", "json", "jsonb", "xml", "inet", "cidr", "macaddr",
    "macaddr8", "bit", "varbit", "timetz",
)  # fmt: skip
_PLAIN = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_AS_TEXT = frozenset(_TEXTS) - {"text", "varchar", "unknown"}
# type -> expression to write instead of a column of it
_INSTEAD = {
    "interval": "EXTRACT(epoch FROM {0}) AS {0}",
    "money": "{0}::numeric AS {0}",
    "vector": "{0}::real[] AS {0}",
    "halfvec": "{0}::real[] AS {0}",
}


@dataclass(frozen=True, slots=True)
class PostgreSQLColumn:
    """Column of a query.

    `type` is the server's name of the type, and `cast` the type by which ADBC reads the same values; empty if it is
    the column's own. `is_foreign`: Arrow has no such type, and the values are the server's texts.
    """

    name: str
    kind: pa.DataType
    type: str = ""
    cast: str = ""
    is_foreign: bool = False


def columns(described: Sequence[Described], others: Mapping[int, tuple[str, bool]]) -> list[PostgreSQLColumn]:
    """Return the columns of a result.

    `others` has the types that are not part of PostgreSQL: their name, and True if they are texts.
    """
    return [_column(column, others) for column in described]


def schema(described: Sequence[PostgreSQLColumn]) -> pa.Schema:
    """Return the Arrow schema. Raises SourceError for two columns of one name."""
    check_unique(column.name for column in described)
    return pa.schema([(column.name, column.kind) for column in described])


def describe_columns(described: Sequence[PostgreSQLColumn]) -> pa.Schema:
    """Return the Arrow schema. It names the types that only PostgreSQL has."""
    return pa.schema(
        [_describe_column(column, field) for column, field in zip(described, schema(described), strict=True)]
    )


def _describe_column(column: PostgreSQLColumn, field: pa.Field) -> pa.Field:
    if not column.is_foreign:
        return field
    name = quote_part(column.name)
    instead = _INSTEAD.get(column.type, "{0}::text AS {0}").format(name)
    return of_database(column.name, field.type, column.type, instead)


def displayed_batch(described: Sequence[PostgreSQLColumn], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Convert the rows for display: a column is text where a value does not fit its type."""
    cells = zip(*rows, strict=True)
    arrays = [_display_column(column, values) for column, values in zip(described, cells, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in described])


def stored_expression(column: PostgreSQLColumn, table: str) -> str:
    """Return the expression of a column of the table by which ADBC reads its values, named as it."""
    name = quote_part(column.name)
    value = f"{table}.{name}"
    if column.type == "inet":  # a cast would add the length of the mask
        value = f"inet_out({value})"
    return f"{value}::{column.cast} AS {name}" if column.cast else value


def batch(described: Sequence[PostgreSQLColumn], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Convert the rows to Arrow. Raises UnfitValueError for a value that its column's type cannot hold."""
    cells = zip(*rows, strict=True) if rows else ((),) * len(described)
    arrays = [array(column, values) for column, values in zip(described, cells, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in described])


def array(column: PostgreSQLColumn, values: Sequence[Any]) -> pa.Array:
    """Convert the values of one column. Raises UnfitValueError for a value that its type cannot hold."""
    try:
        return _array(column, values)
    except (pa.ArrowException, TypeError, ValueError):
        raise _find_unfit(column, values) from None


def problem(column: PostgreSQLColumn, table: str) -> str | None:
    """Return the condition of a stored value that Arrow cannot hold, or None if its type has no such value."""
    name = f"{table}.{quote_part(column.name)}"
    kind: Any = column.kind
    is_list = pa.types.is_list(kind)
    inner = kind.value_type if is_list else kind
    conditions = [f"coalesce(array_ndims({name}), 1) > 1"] if is_list else []
    element = f"ANY ({name})" if is_list else name
    conditions += [f"{value} = {element}" for fits, values in _NOWHERE if fits(inner) for value in values]
    return " OR ".join(conditions) or None


def null_expression(name: str, kind: pa.DataType) -> str:
    """Return an expression of NULL, of a type that ADBC reads as `kind`, named as a column."""
    types = pa.types
    is_list = types.is_list(kind)
    inner = kind.value_type if is_list else kind
    declared = next((name_of_type for name_of_type, arrow in _PLAIN.items() if arrow == inner), "numeric")
    return f"NULL::{declared}{'[]' if is_list else ''} AS {quote_part(name)}"


def unfit_error(column: PostgreSQLColumn, example: str) -> UnfitValueError:
    """Return the error of a value that cannot be converted, with the expression to write instead."""
    name, kind, hint = quote_part(column.name), column.kind, ""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        is_known = (
            f"isfinite({name})" if "infinity" in example else f"{name} BETWEEN '{_FIRST}' AND '{_LAST}'"
        )
        hint = f"write CASE WHEN {is_known} THEN {name} END AS {name}"
    elif pa.types.is_time(kind):
        hint = f"write EXTRACT(epoch FROM {name}) AS {name}"
    elif pa.types.is_decimal(kind):
        hint = f"write {name}::double precision AS {name}"
    elif pa.types.is_list(kind):
        hint = f"a list has one dimension; write {name}::text AS {name}"
    shown = f"{example[:39]}…" if len(example) > 40 else example
    message = f"column {column.name} holds {shown!r}, which is not a {plain_name(kind)}"
    return UnfitValueError(message, column=column.name, hint=hint)


def _column(described: Described, others: Mapping[int, tuple[str, bool]]) -> PostgreSQLColumn:
    info = psycopg.adapters.types.get(described.oid)
    if info is None:
        name, is_text = others.get(described.oid, (f"number {described.oid}", False))
        return PostgreSQLColumn(described.name, pa.string(), name, "text", not is_text)
    is_array = described.oid == info.array_oid
    kind, cast = _kind(info.name, -1 if is_array else described.modifier)
    name = f"{info.name}[]" if is_array else info.name
    if kind is None or name == "inet[]":
        return PostgreSQLColumn(described.name, pa.string(), name, "text", is_foreign=True)
    if not is_array:
        return PostgreSQLColumn(described.name, kind, name, cast)
    return PostgreSQLColumn(described.name, pa.list_(kind), name, f"{cast}[]" if cast else "")


def _kind(name: str, modifier: int) -> tuple[pa.DataType | None, str]:
    """Return the Arrow type of a type, and the type by which ADBC reads it; empty if that is its own."""
    if name == "numeric":
        precision, scale = (modifier - 4) >> 16, ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
        if modifier >= 4 and precision <= _DIGITS and 0 <= scale <= precision:
            return pa.decimal128(precision, scale), ""
        return pa.float64(), "double precision"
    if name in _TEXTS:
        return pa.string(), "text" if name in _AS_TEXT else ""
    return _PLAIN.get(name), "bigint" if name == "oid" else ""


def _array(column: PostgreSQLColumn, values: Sequence[Any]) -> pa.Array:
    kind: Any = column.kind
    if column.is_foreign:
        return pa.array(map(_text, values), kind)
    if pa.types.is_list(kind):
        loaded = kind.value_type if _is_native(column, kind.value_type) else pa.string()
        return pa.array(values, pa.list_(loaded)).cast(kind)
    if _is_native(column, kind):
        array_of_values = pa.array(values, kind)
        return pc.utf8_rtrim(array_of_values, " ") if column.type == "bpchar" else array_of_values
    texts = pa.array(values, pa.string())
    return _CASTS.get(kind.id, _cast)(texts, kind)


def _display_column(column: PostgreSQLColumn, values: Sequence[Any]) -> pa.Array:
    kind: Any = column.kind
    if pa.types.is_list(kind) or _is_native(column, kind):
        return text_where_unfit(values, lambda some: _array(column, some), _text)
    cast = _doubles if pa.types.is_floating(kind) else _CASTS.get(kind.id, _cast)
    return text_where_unfit(pa.array(values, pa.string()), lambda some: cast(some, kind), _text)


def _text(value: Any) -> str | None:
    """Return a value as the server writes it."""
    if value is None:
        return None
    return value.text if isinstance(value, Array) else str(value)


def _doubles(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert numbers. Raises ValueError where no double has the whole part: the sum of bigints is numeric."""
    for text in pc.unique(texts.filter(pc.match_substring_regex(texts, _LONG))).to_pylist():
        if Decimal(float(text)) != Decimal(text):
            raise ValueError(text)
    return texts.cast(kind)


def _is_native(column: PostgreSQLColumn, kind: pa.DataType) -> bool:
    """Return True if the driver loads values of the type as Python's, and not as texts."""
    types = pa.types
    fits = (types.is_boolean, types.is_integer, types.is_floating, types.is_string, types.is_binary)
    return any(test(kind) for test in fits) and not column.type.startswith("numeric")


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return texts.cast(kind)


def _moments(texts: pa.Array, kind: Any) -> pa.Array:
    """Convert timestamps. The offset of a zone has seconds where the zone had its own mean time: -04:56:02."""
    if not kind.tz:
        return texts.cast(kind)
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        parts = pc.extract_regex(texts, _MOMENT)
    if parts.null_count != texts.null_count:
        raise ValueError
    local, sign, *clock = parts.flatten()
    hours, minutes, seconds = (pc.if_else(pc.equal(part, ""), "0", part).cast(pa.int64()) for part in clock)
    east = pc.add(pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60)), seconds)
    east = pc.if_else(pc.equal(sign, "-"), pc.negate(east), east)
    return pc.subtract(local.cast(pa.timestamp("us")), east.cast(pa.duration("s"))).cast(kind)


_CASTS: dict[int, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    pa.time64("us").id: times_of_day,
    pa.timestamp("us").id: _moments,
}


def _find_unfit(column: PostgreSQLColumn, values: Sequence[Any]) -> UnfitValueError:
    """Return the error of the first value that cannot be converted."""
    for value in values:
        try:
            _array(column, (value,))
        except (pa.ArrowException, TypeError, ValueError):
            return unfit_error(column, str(value))
    return unfit_error(column, "")
