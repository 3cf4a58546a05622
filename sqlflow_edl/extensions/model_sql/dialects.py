"""Databases that a model can be written for, and the forms in which their SQL differs.

A form is an expression of the column `c`, parsed by sqlglot in the database's own dialect.

The hash of `edl.features.hashing` in SQL is a sum of mixed bytes modulo 2**64, exactly. It needs whole numbers beyond
64 bits, bitwise operators, and a way through the bytes of a text within an expression. DuckDB and PostgreSQL have them.
In MySQL a subquery cannot read the bytes of a row, and SQLite has numbers of 63 bits and no exclusive or. Its forms are
`hash` of a text, and `mix` of a whole number from 0 on; both give a number from 0 to 2**64 - 1. Columns of subqueries
are qualified, by which `stages` knows them from its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, cast

from edl.errors import SemanticError, did_you_mean

if TYPE_CHECKING:
    from sqlglot import exp

_ALL = 2**64
_GAMMA = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # shifts, and the factors behind them
_LAST = 31


def _hash_of_list(numbers: str) -> str:
    """Return the mixed numbers of a list of DuckDB: a step of the function for all of them is one call.

    The modulus is a mask, since a division of numbers of 128 bits takes fifty times as long.
    """
    wide = "CAST({} AS UHUGEINT)".format
    low = f"& {wide(_ALL - 1)}"
    mixed = f"LIST_TRANSFORM({numbers}, LAMBDA x : (CAST(x AS UHUGEINT) + {wide(_GAMMA)}) {low})"
    for shift, factor in _STEPS:
        mixed = f"LIST_TRANSFORM({mixed}, LAMBDA x : (XOR(x, x >> {shift}) * {wide(factor)}) {low})"
    return f"LIST_TRANSFORM({mixed}, LAMBDA x : XOR(x, x >> {_LAST}))"


def _hash_of_number(expression: str) -> str:
    """Return the mixed number of PostgreSQL. Its bit operations are on signed numbers, and its products are numeric.
    OFFSET 0 keeps a subquery from being merged into the next, which reads it twice.
    """
    half = 2**63

    def signed(number: str) -> str:
        return f"CAST(MOD(MOD({number}, {_ALL}) + {3 * half}, {_ALL}) - {half} AS BIGINT) AS b"

    def shifted(shift: int) -> str:
        return f"CAST(m.b # ((m.b >> {shift}) & {2 ** (64 - shift) - 1}) AS DECIMAL)"

    mixed = f"SELECT {signed(f'{expression} + {_GAMMA}')} OFFSET 0"
    for shift, factor in _STEPS:
        mixed = f"SELECT {signed(f'{shifted(shift)} * {factor}')} FROM ({mixed}) AS m OFFSET 0"
    return f"(SELECT MOD({shifted(_LAST)} + {_ALL}, {_ALL}) FROM ({mixed}) AS m)"


def _duckdb_hash() -> dict[str, str]:
    size = "OCTET_LENGTH(ENCODE(c))"
    byte = "CAST('0x' || SUBSTR(HEX(c), 2 * x + 1, 2) AS INT)"
    terms = _hash_of_list(f"LIST_TRANSFORM(RANGE({size}), LAMBDA x : 256 * x + {byte} + 1)")
    # a sum of unsigned numbers would be a double
    total = f"COALESCE(LIST_SUM(LIST_TRANSFORM({terms}, LAMBDA x : CAST(x AS HUGEINT))), 0)"
    return {"hash": f"({_hash_of_list(f'[{total} + {size}]')})[1]", "mix": f"({_hash_of_list('[c]')})[1]"}


def _postgresql_hash() -> dict[str, str]:
    size = "OCTET_LENGTH(CONVERT_TO(c, 'UTF8'))"
    term = _hash_of_number("256 * g.i + GET_BYTE(CONVERT_TO(c, 'UTF8'), g.i) + 1")
    total = f"(SELECT COALESCE(SUM({term}), 0) FROM GENERATE_SERIES(0, {size} - 1) AS g(i))"
    return {"hash": _hash_of_number(f"{total} + {size}"), "mix": _hash_of_number("c")}


DUCKDB, POSTGRES = _duckdb_hash(), _postgresql_hash()


_STANDARD = {
    "year": "EXTRACT(YEAR FROM c)",
    "month": "EXTRACT(MONTH FROM c)",
    "day": "EXTRACT(DAY FROM c)",
    "weekday": "EXTRACT(ISODOW FROM c)",
    "hour": "EXTRACT(HOUR FROM c)",
    "minute": "EXTRACT(MINUTE FROM c)",
}


@dataclass(frozen=True)
class Target:
    """Database that the query is for.

    `forms`: parts of a time, from year 1, month 1, Monday 1 and hour 0 on; `seconds` of a time since 1970, `date` of a
    date, `time` of a time of day since midnight; `utc`, a time with a zone as one without; `text`, a text that is
    compared by its bytes; `floor` of a positive number; `hash` and `mix`, see `hashing`. A form that is lacking is the
    column itself, or is refused. `once` is the way in which a common table expression is kept from being merged into
    the next, which would evaluate it several times.
    """

    name: str
    forms: Mapping[str, str]
    greatest: str = "GREATEST"
    once: str = ""  # materialized, or limit
    truths: bool = True  # TRUE and FALSE are values
    not_finite: bool = True  # columns may hold NaN or infinities
    literals_are_doubles: bool = True  # literals with an exponent
    longest: int = 0  # characters of a statement; 0 is no known limit
    most_columns: int = 1_000  # of a SELECT
    notes: tuple[str, ...] = ()
    notes_on_times: tuple[str, ...] = ()

    @property
    def sqlglot(self) -> str:
        """Name of the dialect in sqlglot. MaxCompute's queries are written as Hive's, with or without its plug-in."""
        return "hive" if self.name == "maxcompute" else self.name

    def real(self, expression: exp.Expression) -> exp.Expression:
        """Return a double, of an expression that may consist of literals alone."""
        from sqlglot import exp

        return expression if self.literals_are_doubles else exp.cast(expression, exp.DataType.Type.DOUBLE)

    def form(self, name: str, column: exp.Expression) -> exp.Expression | None:
        """Return a form of the column, None if the database has none."""
        if name not in self.forms:
            return None
        expression = _parse_template(self.forms[name], self.sqlglot).transform(
            lambda node: column.copy() if node.name == "c" and node.key == "column" else node
        )
        return cast("exp.Expression", expression)


@cache
def _parse_template(text: str, dialect: str) -> exp.Expression:
    import sqlglot

    return cast("exp.Expression", sqlglot.parse_one(text, read=dialect))


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            "duckdb",
            {
                **_STANDARD,
                "seconds": "EPOCH(c)",
                "date": "EPOCH(c)",
                "time": "EPOCH(c)",
                "utc": "c AT TIME ZONE 'UTC'",
                **DUCKDB,
            },
        ),
        Target(
            "sqlite",
            {
                "year": "CAST(STRFTIME('%Y', c) AS INTEGER)",
                "month": "CAST(STRFTIME('%m', c) AS INTEGER)",
                "day": "CAST(STRFTIME('%d', c) AS INTEGER)",
                "weekday": "(CAST(STRFTIME('%w', c) AS INTEGER) + 6) % 7 + 1",
                "hour": "CAST(STRFTIME('%H', c) AS INTEGER)",
                "minute": "CAST(STRFTIME('%M', c) AS INTEGER)",
                "seconds": "CAST(STRFTIME('%s', c) AS REAL) + (STRFTIME('%f', c) - STRFTIME('%S', c))",
                "date": "CAST(STRFTIME('%s', c) AS REAL)",
                "time": "CAST(STRFTIME('%s', c) AS REAL) - 946684800 + (STRFTIME('%f', c) - STRFTIME('%S', c))",
                "text": "c COLLATE BINARY",
                "floor": "CAST(c AS INTEGER)",
            },
            greatest="MAX",
            once="materialized",
            truths=False,
            longest=1_000_000,
            notes=("It needs SQLite 3.35 or later with its mathematical functions.",),
        ),
        Target(
            "mysql",
            {
                **_STANDARD,
                "weekday": "WEEKDAY(c) + 1",
                "seconds": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c) / 1e6",
                "date": "DATEDIFF(c, '1970-01-01') * 86400e0",
                "time": "TIME_TO_SEC(c) + 0e0",
                "text": "CAST(CONVERT(c USING utf8mb4) AS BINARY)",
            },
            once="limit",
            truths=False,
            not_finite=False,
            notes_on_times=(
                "Columns of the type TIMESTAMP are read in the time zone of the session, which must be UTC.",
            ),
        ),
        Target(
            "postgres",
            {
                **_STANDARD,
                "seconds": "CAST(EXTRACT(EPOCH FROM c) AS DOUBLE PRECISION)",
                "date": "CAST(EXTRACT(EPOCH FROM c) AS DOUBLE PRECISION)",
                "time": "CAST(EXTRACT(EPOCH FROM c) AS DOUBLE PRECISION)",
                "utc": "c AT TIME ZONE 'UTC'",
                **POSTGRES,
            },
            once="materialized",
            literals_are_doubles=False,
        ),
        Target(
            "maxcompute",
            {
                "year": "YEAR(c)",
                "month": "MONTH(c)",
                "day": "DAY(c)",
                "weekday": "WEEKDAY(c) + 1",
                "hour": "HOUR(c)",
                "minute": "MINUTE(c)",
                "date": "DATEDIFF(CAST(c AS DATE), CAST('1970-01-01' AS DATE)) * 86400e0",
            },
            notes=("It was never run on MaxCompute.",),
        ),
        Target(
            "bigquery",
            {
                **_STANDARD,
                "weekday": "MOD(EXTRACT(DAYOFWEEK FROM c) + 5, 7) + 1",
                "seconds": "UNIX_MICROS(CAST(c AS TIMESTAMP)) / 1e6",
                "date": "UNIX_DATE(c) * 86400e0",
            },
            notes=("It was never run on BigQuery.",),
        ),
    )
}


def target_named(name: str) -> Target:
    """Return the database of that name. Raises SemanticError with the nearest name if there is none."""
    if name not in TARGETS:
        raise SemanticError(
            f"a model cannot be written in the SQL of {name}", hint=did_you_mean(name, TARGETS)
        )
    return TARGETS[name]
