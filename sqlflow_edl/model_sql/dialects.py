"""Databases that a model can be written for, and the forms in which their SQL differs.

A form is an expression of the column `c`, parsed by sqlglot in the database's own dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, cast

from edl.errors import SemanticError, did_you_mean
from sqlflow_edl.model_sql import hashing

if TYPE_CHECKING:
    from sqlglot import exp

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
                **hashing.DUCKDB,
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
                **hashing.POSTGRES,
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
