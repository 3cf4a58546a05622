"""Kinds of columns that every database has: their types, literals and random values."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa

Dialect = str
EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Kind:
    """types: by dialect, `""` for all others. simple: values to which a failing input is reduced, simplest first."""

    arrow: pa.DataType
    types: dict[Dialect, str]
    value: Callable[[Random], Any]
    extreme: Callable[[Random], Any]
    simple: tuple[Any, ...]

    def type_in(self, dialect: Dialect) -> str:
        return self.types.get(dialect, self.types[""])


TEXTS = ("a", "b", "Oslo", "Rome", "Kyiv", "Zürich")
ODD_TEXTS = (
    "",
    " ",
    "OSLO",
    "oslo",
    "Oslo ",
    "it's",
    'say "x"',
    "a\\b",
    "a;b -- c",
    "{x} %s",
    "ø",
    "日本",
    "😀",
    "null",
    "NaN",
    "x" * 70,
    "a,b",
    "line\nend",
    "tab\tx",
)
EXTREMES = (1e300, -1e300, 1e-300, 5e-324, 1e39, -1e39, 1e15, 0.1, -0.0, 2.0**53 + 2, 1.7e9)
FAR_DAYS = (dt.date(1000, 1, 1), dt.date(1969, 12, 31), dt.date(2100, 2, 28), dt.date(9999, 12, 31))


def _instant(draw: Random) -> dt.datetime:
    return dt.datetime(2020, 1, 1) + dt.timedelta(minutes=draw.randrange(2_000_000))


KINDS: dict[str, Kind] = {
    "integer": Kind(
        pa.int64(),
        {"": "BIGINT", "sqlite": "INTEGER"},
        lambda draw: draw.randrange(-5, 20),
        lambda draw: draw.choice((2**53 + 1, -(2**53) - 1, 2**31, 2**62, -(2**62), 0)),
        (0, 1),
    ),
    "number": Kind(
        pa.float64(),
        {"": "DOUBLE", "postgres": "DOUBLE PRECISION", "sqlite": "REAL"},
        lambda draw: draw.gauss(10, 3),
        lambda draw: draw.choice(EXTREMES),
        (0.0, 1.0, 2.0),
    ),
    "small": Kind(
        pa.int32(),
        {"": "INTEGER", "maxcompute": "INT"},
        lambda draw: draw.randrange(-5, 20),
        lambda draw: draw.choice((2**31 - 1, -(2**31), 0)),
        (0, 1),
    ),
    "price": Kind(
        pa.decimal128(9, 2),
        {"": "DECIMAL(9, 2)"},
        lambda draw: Decimal(draw.randrange(9999)) / 100,
        lambda draw: Decimal("9999999.99"),
        (Decimal("0.00"), Decimal("1.00")),
    ),
    "decimal": Kind(
        pa.decimal128(12, 2),
        {"": "DECIMAL(12, 2)"},
        lambda draw: Decimal(draw.randrange(-500, 9999)) / 100,
        lambda draw: draw.choice((Decimal("9999999999.99"), Decimal("-9999999999.99"), Decimal("0.01"))),
        (Decimal("0.00"), Decimal("1.00")),
    ),
    "text": Kind(
        pa.string(),
        {"": "VARCHAR(200)", "sqlite": "TEXT", "maxcompute": "STRING"},
        lambda draw: draw.choice(TEXTS),
        lambda draw: draw.choice(ODD_TEXTS),
        ("a", "b"),
    ),
    "boolean": Kind(
        pa.bool_(),
        {"": "BOOLEAN"},
        lambda draw: draw.random() < 0.5,
        lambda draw: draw.random() < 0.5,
        (False, True),
    ),
    "day": Kind(
        pa.date32(),
        {"": "DATE"},
        lambda draw: dt.date(2020, 1, 1) + dt.timedelta(days=draw.randrange(1500)),
        lambda draw: draw.choice(FAR_DAYS),
        (dt.date(2020, 1, 1), dt.date(2020, 1, 2)),
    ),
    "instant": Kind(
        pa.timestamp("us"),
        {"": "TIMESTAMP", "mysql": "DATETIME(6)"},
        _instant,
        lambda draw: dt.datetime.combine(draw.choice(FAR_DAYS), dt.time(23, 59, 59, 999_999)),
        (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 1)),
    ),
}


NATIVE = "sql "  # prefix of kinds that are types of one database, and their values SQL of it


@cache
def kind_of(name: str) -> Kind:
    """A row of KINDS, or the kind of a type that only one database has."""
    if not name.startswith(NATIVE):
        return KINDS[name]
    return Kind(pa.string(), {"": name.removeprefix(NATIVE)}, lambda draw: None, lambda draw: None, ())


def literal(value: Any, kind: str, dialect: Dialect) -> str:
    """Write a value as SQL of the dialect."""
    if value is None:
        return "NULL"
    if kind.startswith(NATIVE):
        return str(value)
    if kind == "number":
        return _number(value, dialect)
    if kind == "text":
        return text_literal(value, dialect)
    if kind == "boolean":
        return str(int(value)) if dialect in ("sqlite", "mysql") else str(value).upper()
    if kind == "day":
        return f"'{value.isoformat()}'" if dialect == "sqlite" else f"DATE '{value.isoformat()}'"
    if kind == "instant":
        text = value.isoformat(" ")
        return f"'{text}'" if dialect == "sqlite" else f"TIMESTAMP '{text}'"
    return str(value)


def text_literal(value: str, dialect: Dialect) -> str:
    escaped = value.replace("'", "''")
    return (
        f"'{escaped.replace(chr(92), chr(92) * 2)}'" if dialect in ("mysql", "maxcompute") else f"'{escaped}'"
    )


def _number(value: float, dialect: Dialect) -> str:
    if math.isfinite(value):
        text = repr(value)
        return text if "e" in text else f"{text}e0"
    if dialect == "sqlite":
        return "NULL" if math.isnan(value) else f"{'-' if value < 0 else ''}9e999"
    return f"CAST('{value!r}' AS {KINDS['number'].type_in(dialect)})"


def quoted(name: str, dialect: Dialect) -> str:
    """Write a name of a column or a table in quotation marks."""
    mark = "`" if dialect in ("mysql", "maxcompute") else '"'
    return mark + name.replace(mark, mark * 2) + mark


def seconds(value: dt.datetime) -> float:
    return (value - EPOCH).total_seconds()
