"""The column types of MaxCompute, and what they are in Arrow and in DuckDB.

DATETIME and TIMESTAMP are moments: Arrow holds them in UTC without a zone, as the tunnel sends them, and DuckDB as
TIMESTAMPTZ, so that a session's time zone decides how they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

_ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "json": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "datetime": pa.timestamp("ms"),
    "timestamp": pa.timestamp("ns"),
    "timestamp_ntz": pa.timestamp("ns"),
    "interval_day_time": pa.struct([("sec", pa.int64()), ("nano", pa.int32())]),
}
_DUCKDB = {
    "int": "INTEGER",
    "string": "VARCHAR",
    "char": "VARCHAR",
    "varchar": "VARCHAR",
    "json": "VARCHAR",
    "binary": "BLOB",
    "datetime": "TIMESTAMPTZ",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP_NS",
}
_FROM_DUCKDB = {
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "HUGEINT": "bigint",
    "UBIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "VARCHAR": "string",
    "JSON": "string",
    "BLOB": "binary",
    "DATE": "date",
    "TIMESTAMP WITH TIME ZONE": "datetime",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_NS": "timestamp_ntz",
    "INTERVAL": "interval_day_time",
    '"NULL"': "string",
}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """name: `bigint`, `array` …; arguments: the numbers of decimal, char and varchar; inner: what is nested."""

    name: str
    arguments: tuple[int, ...] = ()
    inner: tuple[ColumnType, ...] = ()
    fields: tuple[str, ...] = ()  # of a struct

    def __str__(self) -> str:
        if self.name == "struct":
            parts = (f"{field}:{kind}" for field, kind in zip(self.fields, self.inner, strict=True))
            return f"struct<{','.join(parts)}>"
        if self.inner:
            return f"{self.name}<{','.join(map(str, self.inner))}>"
        return self.name + (f"({','.join(map(str, self.arguments))})" if self.arguments else "")

    @property
    def arrow(self) -> pa.DataType:
        """As the tunnel's Arrow streams hold it."""
        return self._arrow(_ARROW)

    @property
    def zoned(self) -> pa.DataType:
        """The same with the zone of moments, in microseconds, as DuckDB takes it."""
        return self._arrow(_ARROW | dict.fromkeys(("datetime", "timestamp"), pa.timestamp("us", "UTC")))

    def _arrow(self, simple: Mapping[str, pa.DataType]) -> pa.DataType:
        inner = [kind._arrow(simple) for kind in self.inner]
        match self.name:
            case "decimal":
                precision, scale = (*self.arguments, 0)[:2] if self.arguments else (38, 18)
                return pa.decimal128(precision, scale)
            case "array":
                return pa.list_(*inner)
            case "map":
                return pa.map_(*inner)
            case "struct":
                return pa.struct(list(zip(self.fields, inner, strict=True)))
        return simple[self.name]

    @property
    def duckdb(self) -> str:
        match self.name:
            case "decimal":
                return f"DECIMAL({self.arrow.precision},{self.arrow.scale})"
            case "array":
                return f"{self.inner[0].duckdb}[]"
            case "map":
                return f"MAP({self.inner[0].duckdb}, {self.inner[1].duckdb})"
            case "struct":
                parts = (f'"{f}" {k.duckdb}' for f, k in zip(self.fields, self.inner, strict=True))
                return f"STRUCT({', '.join(parts)})"
        return _DUCKDB.get(self.name, self.name.upper())


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ColumnType
    comment: str = ""
    nullable: bool = True


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(column.name, column.type.arrow) for column in columns])


def type_of_duckdb(kind: object) -> ColumnType:
    """The type that MaxCompute would give the column of a result."""
    text = str(kind)
    name = getattr(kind, "id", "")
    if name == "decimal":
        precision, scale = map(int, re.findall(r"\d+", text))
        return ColumnType("decimal", (precision, scale))
    if name in ("list", "array"):
        return ColumnType("array", inner=(type_of_duckdb(dict(kind.children)["child"]),))  # type: ignore[attr-defined]
    if name == "map":
        children = dict(kind.children)  # type: ignore[attr-defined]
        return ColumnType("map", inner=(type_of_duckdb(children["key"]), type_of_duckdb(children["value"])))
    if name == "struct":
        children = dict(kind.children)  # type: ignore[attr-defined]
        return ColumnType(
            "struct", inner=tuple(map(type_of_duckdb, children.values())), fields=tuple(children)
        )
    return ColumnType(_FROM_DUCKDB[text])


def parse_prefix(text: str) -> tuple[ColumnType, str]:
    """The type that a text begins with, and the rest."""
    match = re.match(r"\s*([A-Za-z_]+)\s*", text)
    if not match:
        raise ValueError(f"{text!r} is not a type")
    name, rest = match[1].lower(), text[match.end() :]
    if name in ("array", "map"):
        inner, rest = _parse_list(rest, 1 if name == "array" else 2)
        return ColumnType(name, inner=inner), rest
    if name == "struct":
        return _parse_struct(rest)
    if numbers := re.match(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", rest):
        arguments = tuple(int(number) for number in numbers.groups() if number)
        return _known(ColumnType(name, arguments)), rest[numbers.end() :]
    return _known(ColumnType(name)), rest


def _parse_list(text: str, count: int) -> tuple[tuple[ColumnType, ...], str]:
    inner = []
    for index in range(count):
        _expect(text, "," if index else "<")
        kind, text = parse_prefix(text.lstrip()[1:])
        inner.append(kind)
    _expect(text, ">")
    return tuple(inner), text.lstrip()[1:]


def _parse_struct(text: str) -> tuple[ColumnType, str]:
    fields, inner = [], []
    _expect(text, "<")
    while not text.lstrip().startswith(">"):
        match = re.match(r"\s*[<,]\s*`?(\w+)`?\s*:", text)
        if not match:
            raise ValueError(f"{text!r} is not a field")
        kind, text = parse_prefix(text[match.end() :])
        fields.append(match[1])
        inner.append(kind)
    return ColumnType("struct", inner=tuple(inner), fields=tuple(fields)), text.lstrip()[1:]


def _expect(text: str, sign: str) -> None:
    if not text.lstrip().startswith(sign):
        raise ValueError(f"{sign} is expected before {text!r}")


def _known(kind: ColumnType) -> ColumnType:
    if kind.name not in _ARROW and kind.name != "decimal":
        raise ValueError(f"{kind.name} is not a type")
    return kind
