"""Types of MySQL columns, and conversion of the bytes that the server sends to Arrow, a column at a time.

| column | Arrow |
|---|---|
| TINYINT(1), BIT(1) | boolean; TINYINT(1) must hold 0, 1 or NULL |
| integers, YEAR | of the same width and sign; BIT(n) is uint64 |
| FLOAT, DOUBLE, DECIMAL(p, s) | float, double, decimal128 with at most 38 digits |
| DATE, TIME, DATETIME, TIMESTAMP | date32, time64, timestamp, timestamp in UTC |
| texts, ENUM, SET, JSON, UUID, INET6 | string |
| binary strings | binary |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.data.arrow_types import of_database, plain_name, times_of_day
from edl.data.displayed_rows import text_where_unfit
from edl.data.names import quote_part
from edl.errors import UnfitValueError

UTC = "+00:00"  # the time zone of sessions, unless a user sets another
BINARY = 63  # the character set of binary strings
_UNSIGNED = 32
_DIGITS = 38  # limit of a decimal

# the server's type codes
_DECIMALS = (0, 246)
_TINY, _FLOAT, _DOUBLE, _NULL, _YEAR, _BIT, _JSON, _FIXED = 1, 4, 5, 6, 13, 16, 245, 254
_WHOLE = {1: 8, 2: 16, 3: 32, 9: 32, 8: 64}
_TIMES = {
    10: "date",
    14: "date",
    11: "time",
    19: "time",
    12: "timestamp",
    18: "timestamp",
    7: "instant",
    17: "instant",
}
_TEXTS = (15, 247, 248, 249, 250, 251, 252, 253, 254)
_NAMES = {255: "GEOMETRY", 242: "VECTOR"}
_AS_TEXT = {"GEOMETRY": "ST_AsText({0}) AS {0}", "VECTOR": "CAST({0} AS CHAR) AS {0}"}

_OFFSET = re.compile(r"([+-])(\d\d?):(\d\d)")
_PLAIN = {_FLOAT: pa.float32(), _DOUBLE: pa.float64(), _YEAR: pa.int16()}
_ARROW = {
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True, slots=True)
class MySQLColumn:
    """Column of a result. `code` is the server's number of its type.

    `unfit`: takes the error of a value that the type cannot hold, by column, and the value is NULL. None: it is raised.
    """

    name: str
    kind: pa.DataType
    code: int = 0
    bits: bool = False  # the bytes are a binary number, not digits
    unfit: dict[str, UnfitValueError] | None = field(default=None, compare=False)


def columns(fields: Iterable[Any]) -> list[MySQLColumn]:
    """Convert the columns of a result, as PyMySQL describes them."""
    return [
        MySQLColumn(_text(field.name), _kind(field), field.type_code, field.type_code == _BIT)
        for field in fields
    ]


def schema(described: Sequence[MySQLColumn]) -> pa.Schema:
    return pa.schema([(column.name, column.kind) for column in described])


def describe_columns(described: Sequence[MySQLColumn]) -> pa.Schema:
    """Return the Arrow schema. It names the types that only MySQL has."""
    return pa.schema(
        [
            of_database(column.name, column.kind, name, instead.format(quote_part(column.name, "`")))
            if (name := _NAMES.get(column.code)) and (instead := _AS_TEXT[name])
            else pa.field(column.name, column.kind)
            for column in described
        ]
    )


def batch(described: Sequence[MySQLColumn], sent: Sequence[pa.Array], zone: str = UTC) -> pa.RecordBatch:
    """Convert the columns to Arrow. Raises UnfitValueError for a value that its column's type cannot hold.

    `sent` has the bytes that the server sent. `zone` is the time zone of the session: an offset, a name, or empty if it
    is not known.
    """
    arrays = [array(column, values, zone) for column, values in zip(described, sent, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in described])


def displayed_batch(
    described: Sequence[MySQLColumn], sent: Sequence[pa.Array], zone: str = UTC
) -> pa.RecordBatch:
    """Convert the columns for display: a column is text where a value does not fit its type."""
    arrays = [_display_column(column, values, zone) for column, values in zip(described, sent, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in described])


def array(column: MySQLColumn, values: pa.Array, zone: str = UTC) -> pa.Array:
    """Convert the values of one column. Raises UnfitValueError for a value that its type cannot hold."""
    kind: Any = column.kind
    try:
        if pa.types.is_binary(kind):
            return values.cast(kind)
        if column.bits:
            return _bits(values.to_pylist(), kind)
        return from_texts(values.cast(pa.string()), kind, zone)
    except (pa.ArrowException, UnicodeDecodeError, ValueError):
        if column.unfit is None:
            raise _unfit_error(column, values, zone) from None
        if column.name not in column.unfit:
            column.unfit[column.name] = _unfit_error(column, values, zone)
        return _with_nulls(column, values, zone)


def _with_nulls(column: MySQLColumn, values: pa.Array, zone: str) -> pa.Array:
    if len(values) == 1:
        return pa.nulls(1, column.kind)
    middle = len(values) // 2
    return pa.concat_arrays([array(column, some, zone) for some in (values[:middle], values[middle:])])


def _display_column(column: MySQLColumn, values: pa.Array, zone: str) -> pa.Array:
    kind: Any = column.kind
    if pa.types.is_binary(kind) or column.bits or pa.types.is_null(kind):
        return array(column, values)
    if pa.types.is_boolean(kind):
        with suppress(ValueError, pa.ArrowException):
            return from_texts(values.cast(pa.string()), kind)
        kind = pa.int8()
    return text_where_unfit(values, lambda some: from_texts(some.cast(pa.string()), kind, zone), _decode_text)


def _decode_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def from_texts(texts: pa.Array, kind: Any, zone: str = UTC) -> pa.Array:
    """Convert texts, or numbers, to the type. Raises ArrowException or ValueError for a value that it cannot hold."""
    if pa.types.is_timestamp(kind) and kind.tz:
        return _instants(texts, kind, zone)
    return texts if texts.type == kind else _CASTS.get(kind.id, _cast)(texts, kind)


def exact_expression(column: MySQLColumn) -> str:
    """Return the expression that reads the column: the server truncates a FLOAT, but not a DOUBLE."""
    name = quote_part(column.name, "`")
    return f"{name} + 0e0" if column.code == _FLOAT else name


def exact_in_arrow(column: MySQLColumn) -> str:
    """Return the expression with values that connectorx reads exactly.

    A decimal or a time is a text; of a number of bits the digits are read.
    """
    if column.bits:
        return f"{quote_part(column.name, '`')} + 0"
    if column.code == _JSON or column.kind.id in _AS_TEXTS:
        return f"CAST({quote_part(column.name, '`')} AS CHAR)"
    if column.code in _NAMES:
        return f"CAST({quote_part(column.name, '`')} AS BINARY)"
    return exact_expression(column)


def _kind(field: Any) -> pa.DataType:
    code, unsigned = field.type_code, bool(field.flags & _UNSIGNED)
    if code in _WHOLE:
        boolean = code == _TINY and field.length == 1 and not unsigned
        return pa.bool_() if boolean else _integer(_WHOLE[code], unsigned)
    if code in _DECIMALS:
        precision = field.length - (field.scale > 0) - (not unsigned)
        return pa.decimal128(max(1, min(precision, _DIGITS)), min(field.scale, _DIGITS))
    if code in _PLAIN:
        return _PLAIN[code]
    if code == _BIT:
        return pa.bool_() if field.length == 1 else pa.uint64()
    if code == _NULL or (code == _FIXED and field.length == 0 and field.charsetnr == BINARY):
        return pa.null()  # a NULL of a subquery is BINARY(0)
    if code in _TIMES:
        return _ARROW[_TIMES[code]]
    if code == _JSON or (code in _TEXTS and field.charsetnr != BINARY):
        return pa.string()
    return pa.binary()


def _integer(bits: int, unsigned: bool) -> pa.DataType:
    return getattr(pa, f"{'u' if unsigned else ''}int{bits}")()


def _bits(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Convert big-endian numbers of up to 8 bytes. A BIT(1) may also come as one byte."""
    filled = b"".join((value or b"").rjust(8, b"\0") for value in values)
    missing = np.fromiter((value is None for value in values), bool, len(values))
    return pa.array(np.frombuffer(filled, ">u8").astype("u8"), mask=missing).cast(kind)


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return texts.cast(kind)


def _nothing(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(texts))


def _boolean(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    numbers = texts.cast(pa.int8())
    extremes = pc.min_max(numbers)
    if extremes["min"].as_py() not in (None, 0, 1) or extremes["max"].as_py() not in (None, 0, 1):
        raise ValueError
    return numbers.cast(kind)


def _instants(texts: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """Convert texts in the session's time zone. Raises ValueError for an hour that the zone has twice."""
    local = texts.cast(pa.timestamp(kind.unit))
    if offset := _OFFSET.fullmatch(zone):
        minutes = int(offset[1] + "1") * (60 * int(offset[2]) + int(offset[3]))
        utc = pc.subtract(local, pa.scalar(60 * minutes, pa.duration("s"))) if minutes else local
        return utc.cast(kind)
    if not zone:
        raise ValueError
    return pc.assume_timezone(local, zone, ambiguous="raise", nonexistent="raise").cast(kind)


_CASTS: dict[int, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    pa.null().id: _nothing,
    pa.bool_().id: _boolean,
    pa.time64("us").id: times_of_day,
}

# what is written in the SELECT instead of a column with a value that cannot be converted
_INSTEAD = (
    (pa.types.is_date, "NULLIF({0}, 0)"),
    (pa.types.is_timestamp, "NULLIF({0}, 0)"),
    (pa.types.is_time, "TIME_TO_SEC({0})"),
    (pa.types.is_decimal, "CAST({0} AS DOUBLE)"),
    (pa.types.is_string, "CAST({0} AS BINARY)"),
)
_AS_TEXTS = {pa.decimal128(1).id, pa.time64("us").id}


def _unfit_error(column: MySQLColumn, values: pa.Array, zone: str) -> UnfitValueError:
    """Return the error of the first value that cannot be converted, with the expression to write instead."""
    name = column.name
    kind: Any = column.kind
    example = _first_unfit(column, values, zone)
    if pa.types.is_boolean(kind):
        return UnfitValueError(
            f"column {name} is a TINYINT(1), a boolean, but holds {example}",
            column=name,
            hint=f"write CAST({name} AS SIGNED) AS {name}",
        )
    if pa.types.is_timestamp(kind) and kind.tz and zone != UTC and not example.startswith("0000"):
        return UnfitValueError(
            f"column {name} holds {example!r}, of which the time zone of the session has no one moment",
            column=name,
            hint="SET time_zone = '+00:00'",
        )
    instead = next((text for fits, text in _INSTEAD if fits(kind)), "CAST({0} AS CHAR)").format(name)
    return UnfitValueError(
        f"column {name} holds {example!r}, which is not a {plain_name(kind)}",
        column=name,
        hint=f"write {instead} AS {name}",
    )


def _first_unfit(column: MySQLColumn, values: pa.Array, zone: str) -> str:
    """Return the beginning of the first value that cannot be converted."""
    present: list[bytes] = values.drop_null().to_pylist()
    for value in present if len(present) > 1 else ():
        try:
            array(MySQLColumn(column.name, column.kind), pa.array([value], pa.binary()), zone)
        except UnfitValueError:
            return value.decode(errors="replace")[:40]
    return present[0].decode(errors="replace")[:40] if present else ""


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
