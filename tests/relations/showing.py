"""Relations of rows that are only shown: every value of any type can be shown, and is the value in the database."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial
from random import Random
from typing import Any

import pyarrow.parquet as parquet

from sqlflow_edl.display.output import WRITERS
from sqlflow_edl.session.session import Session
from tests.relations.comparing import Pair, answer
from tests.relations.kinds import NATIVE, quoted
from tests.relations.registry import Case, Input, Pairs, relation
from tests.relations.tables import ODD_NAMES, POSITION, Column, Table

# Types of each database with odd and extreme values of theirs, as SQL. A type whose text has several forms, all of them
# right, is only looked at for whether it is shown at all.
TYPES: dict[str, dict[str, tuple[str, ...]]] = {
    "duckdb": {
        "TINYINT": ("-128", "127"),
        "BIGINT": ("-9223372036854775808", "9223372036854775807", "0"),
        "UBIGINT": ("18446744073709551615", "0"),
        "HUGEINT": ("170141183460469231731687303715884105727", "-1"),
        "UHUGEINT": ("340282366920938463463374607431768211455",),
        "DOUBLE": ("1e300", "'inf'", "'-inf'", "'nan'", "0.1", "0.1e0 + 0.2e0", "-0.0", "5e-324"),
        "FLOAT": ("0.1", "'inf'", "16777216"),
        "DECIMAL(38, 10)": ("1234567890123456789012345678.0123456789", "-0.0000000001"),
        "BOOLEAN": ("true", "false"),
        "VARCHAR": (
            "''",
            "'null'",
            "'a,b'",
            "'line' || chr(10) || 'end'",
            "'it''s \"x\"'",
            "'日本😀'",
            "' x '",
        ),
        "DATE": (
            "'2024-02-29'",
            "'infinity'",
            "'-infinity'",
            "'0044-03-15 (BC)'",
            "'99999-01-01'",
            "'0001-01-01'",
        ),
        "TIME": ("'00:00:00'", "'23:59:59.999999'", "'24:00:00'"),
        "TIMETZ": ("'10:00:00+02'", "'23:59:59.5-11:30'"),
        "TIMESTAMP": (
            "'2024-02-29 10:00:00.123456'",
            "'infinity'",
            "'-infinity'",
            "'99999-01-01 00:00:00'",
            "'0044-03-15 (BC) 00:00:00'",
        ),
        "TIMESTAMP_S": ("'1900-01-01 00:00:01'",),
        "TIMESTAMP_NS": ("'2024-01-01 00:00:00.123456789'",),
        "TIMESTAMPTZ": ("'2024-06-01 12:00:00+00'", "'infinity'", "'1800-01-01 00:00:00+00'"),
        "INTERVAL": ("'3 days'", "'1 year 2 months'", "'-01:30:00'", "'400 days 25:00:00.5'"),
        "BLOB": ("'\\xAA\\x00'::BLOB", "''::BLOB"),
        "BIT": ("'10101'::BIT", "'0'::BIT"),
        "UUID": ("'12345678-1234-1234-1234-123456789abc'",),
        "INTEGER[]": ("[1, NULL, 3]", "[]"),
        "STRUCT(a INTEGER, b VARCHAR)": ("{'a': 1, 'b': 'x, y'}", "{'a': NULL, 'b': ''}"),
        "MAP(VARCHAR, INTEGER)": ("MAP {'k': 1}", "MAP {}"),
        "UNION(n INTEGER, t VARCHAR)": ("union_value(n := 1)", "union_value(t := 'x')"),
        "JSON": ("'{\"a\": [1, null]}'",),
        "INTEGER[2]": ("[1, 2]",),
    },
    "sqlite": {
        "INTEGER": ("-9223372036854775808", "9223372036854775807", "0"),
        "REAL": ("1e300", "9e999", "-9e999", "0.1", "5e-324"),
        "TEXT": ("''", "'null'", "'a,b'", "'line' || char(10) || 'end'", "'日本😀'", "'it''s'"),
        "BLOB": ("x'AA00'", "x''"),
        "ANY": ("1", "'text'", "2.5", "x'00'"),
        "DATE": ("'2024-02-29'", "'0000-00-00'", "'not a date'", "'10000-01-01'"),
        "TIMESTAMP": ("'2024-02-29 10:00:00'", "'infinity'", "1700000000"),
        "BOOLEAN": ("0", "1", "2", "'true'"),
        "DECIMAL(30, 2)": ("12345678901234567890.12", "0.01"),
        "NUMERIC": ("1", "1.5", "'x'"),
    },
    "mysql": {
        "TINYINT": ("-128", "127"),
        "BIGINT": ("-9223372036854775808", "9223372036854775807"),
        "BIGINT UNSIGNED": ("18446744073709551615", "0"),
        "DOUBLE": ("1e300", "0.1", "0.1e0 + 0.2e0", "-0.0", "5e-324"),
        "DECIMAL(65, 30)": ("12345678901234567890123456789012345.000000000000000000000000000001", "0"),
        "DECIMAL(20, 0)": ("99999999999999999999", "-1"),
        "VARCHAR(100)": ("''", "'null'", "'a,b'", "'line\\nend'", "'it''s \"x\"'", "'日本😀'", "'a\\\\b'"),
        "CHAR(5)": ("'ab'", "''"),
        "ENUM('a','b c','')": ("'a'", "'b c'", "''"),
        "SET('x','y','z')": ("'x'", "'x,z'", "''"),
        "DATE": ("'2024-02-29'", "'0000-00-00'", "'9999-12-31'", "'1000-01-01'", "'2024-00-00'"),
        "TIME(6)": ("'10:00:00'", "'83:03:20.5'", "'-838:59:59'", "'24:00:00'"),
        "DATETIME(6)": (
            "'2024-02-29 10:00:00.123456'",
            "'0000-00-00 00:00:00'",
            "'9999-12-31 23:59:59.999999'",
        ),
        "TIMESTAMP NULL": ("'2024-06-01 12:00:00'", "'0000-00-00 00:00:00'", "'1970-01-02 00:00:01'"),
        "YEAR": ("2024", "0", "1901"),
        "BIT(12)": ("b'101'", "b'0'"),
        "JSON": ("'{\"a\": [1, null]}'",),
        "BLOB": ("x'AA00'", "x''"),
        "GEOMETRY": ("ST_PointFromText('POINT(1 2)')",),
        "UUID": ("'12345678-1234-1234-1234-123456789abc'",),
        "INET6": ("'::1'",),
    },
    "postgres": {
        "smallint": ("-32768", "32767"),
        "bigint": ("-9223372036854775808", "9223372036854775807"),
        "double precision": (
            "1e300",
            "'Infinity'",
            "'-Infinity'",
            "'NaN'",
            "0.1",
            "0.1::float8 + 0.2::float8",
            "'-0'",
            "5e-324",
        ),
        "real": ("0.1", "'Infinity'"),
        "numeric": ("123456789012345678901234567890.0123456789", "'NaN'", "'Infinity'", "0", "1e-20"),
        "numeric(40, 5)": ("99999999999999999999999999999999999.12345", "-1"),
        "boolean": ("true", "false"),
        "text": ("''", "'null'", "'a,b'", "E'line\\nend'", "'it''s \"x\"'", "'日本😀'", "'a\\b'"),
        "char(5)": ("'ab'", "''"),
        '"char"': ("'a'",),
        "name": ("'relname'",),
        "date": (
            "'2024-02-29'",
            "'infinity'",
            "'-infinity'",
            "'4713-01-01 BC'",
            "'0044-03-15 BC'",
            "'99999-01-01'",
        ),
        "time": ("'00:00:00'", "'23:59:59.999999'", "'24:00:00'"),
        "timetz": ("'10:00:00+02'", "'23:59:59.5-11:30'"),
        "timestamp": (
            "'2024-02-29 10:00:00.123456'",
            "'infinity'",
            "'-infinity'",
            "'99999-01-01'",
            "'0044-03-15 BC'",
        ),
        "timestamptz": ("'2024-06-01 12:00:00+00'", "'infinity'", "'1800-01-01 00:00:00+00'"),
        "interval": ("'3 days'", "'1 year 2 mons'", "'-01:30:00'", "'400 days 25:00:00.5'"),
        "bytea": ("'\\xaa00'", "''"),
        "bit(5)": ("B'10101'", "B'00000'"),
        "varbit": ("B'101'", "B''"),
        "uuid": ("'12345678-1234-1234-1234-123456789abc'",),
        "json": ("'{\"a\": [1, null]}'", "'1'"),
        "jsonb": ("'{\"a\": [1, null]}'",),
        "xml": ("'<a>x</a>'",),
        "money": ("'12.34'", "'-92233720368547758.08'"),
        "inet": ("'10.0.0.1/24'", "'::1/64'"),
        "cidr": ("'10.0.0.0/8'",),
        "macaddr": ("'08:00:2b:01:02:03'",),
        "point": ("'(1,2)'",),
        "box": ("'(1,2),(0,0)'",),
        "int4range": ("'[1,5)'", "'empty'"),
        "tsvector": ("'a fat cat'",),
        "oid": ("4294967295",),
        "regtype": ("'integer'",),
        "integer[]": ("'{1,NULL,3}'", "'{}'", "'{{1,2},{3,4}}'"),
        "text[]": ("'{a,\"b c\",NULL}'",),
        "pg_lsn": ("'16/B374D848'",),
    },
}
# Types that the product may show in another form than the database's own text.
FREE = re.compile(r"(?i)BLOB|bytea|\[|STRUCT|MAP|UNION|GEOMETRY|JSON|BIT|ANY|xml")


def draw_rows(draw: Random, shape: str, source: str, model: str) -> Input:
    """A table of one to six native types."""
    types = TYPES[source]
    chosen = draw.sample([*types], draw.randint(1, min(6, len(types))))
    names = (
        draw.sample(ODD_NAMES, len(chosen)) if shape == "names" else [f"c{at}" for at in range(len(chosen))]
    )
    rows = draw.randint(1, 6)

    def values(kind: str) -> tuple[Any, ...]:
        return tuple(None if draw.random() < 0.15 else draw.choice(types[kind]) for _ in range(rows))

    return Input(
        Table(
            tuple(Column(name, NATIVE + kind, values(kind)) for name, kind in zip(names, chosen, strict=True))
        )
    )


shown_relation = partial(relation, models=("none",), shapes=("plain", "names"), draw=draw_rows)


@shown_relation()
def shown_as_text(case: Case) -> Pairs:
    """A value of any type is shown, as the text that the database makes of it."""
    with prepared(case) as (session, name):
        for column in case.table.columns:
            title = quoted(column.name, session.dialect)
            shown = answer(
                lambda title=title: cells(session, f"SELECT {title} FROM {name} ORDER BY {POSITION}")
            )
            if FREE.search(column.kind):
                yield Pair(
                    len(shown) if isinstance(shown, list) else shown, case.table.rows, what=column.kind
                )
                continue
            text = [canonical(each) for each in own_text(case, title, name)]
            found = [canonical(each[0]) for each in shown] if isinstance(shown, list) else shown
            if case.source == "mysql" and isinstance(
                found, list
            ):  # which shows no zone; the session's is UTC
                found = [each.removesuffix("+00") for each in found]
            yield Pair(
                found, text, what=f"{column.kind.removeprefix(NATIVE)}, shown and the database's own text"
            )


@shown_relation()
def shown_side_by_side(case: Case) -> Pairs:
    """A column shows the same cells alone and beside all others."""
    with prepared(case) as (session, name):
        titles = [quoted(column.name, session.dialect) for column in case.table.columns]
        every = answer(lambda: cells(session, f"SELECT {', '.join(titles)} FROM {name} ORDER BY {POSITION}"))
        for at, title in enumerate(titles):
            alone = answer(
                lambda title=title: cells(session, f"SELECT {title} FROM {name} ORDER BY {POSITION}")
            )
            beside = [row[at : at + 1] for row in every] if isinstance(every, list) else every
            yield Pair(alone, beside, what=title)


@shown_relation()
def shown_in_every_format(case: Case) -> Pairs:
    """The formats of results show the same cells, and as many rows."""
    with prepared(case) as (session, name):
        titles = ", ".join(quoted(column.name, session.dialect) for column in case.table.columns)
        query = f"SELECT {titles} FROM {name} ORDER BY {POSITION}"
        first = answer(lambda: cells(session, query))
        yield Pair(case.table.rows, len(first) if isinstance(first, list) else first, what="csv")
        for form in ("tsv", "json", "jsonl", "markdown", "parquet"):
            found = answer(lambda form=form: written(session, query, form))
            if isinstance(found, list) and form != "tsv" and isinstance(first, list):
                yield Pair(len(first), len(found), what=form)
            else:
                yield Pair(first, found, what=form)


def prepared(case: Case) -> Any:
    """The stored table; MySQL takes what its strict mode refuses."""
    session = case.place.session(case.source)
    if case.source == "mysql":
        session.source.execute("SET sql_mode = ''")
    return case.place.stored(case.table, case.source)


def cells(session: Session, query: str) -> list[list[str]]:
    return written(session, query, "csv")


def written(session: Session, query: str, form: str) -> list[Any]:
    """The rows that a format shows."""
    [result] = session.run(query)
    assert result.reader is not None
    binary = io.BytesIO()
    out = (
        io.TextIOWrapper(binary, encoding="utf-8", newline="")
        if form == "parquet"
        else io.StringIO(newline="")
    )
    WRITERS[form](result.reader, out)
    if form == "parquet":
        rows: list[Any] = [None] * parquet.read_metadata(io.BytesIO(binary.getvalue())).num_rows
        return rows
    text = out.getvalue()  # type: ignore[attr-defined]
    readers: dict[str, Callable[[], list[Any]]] = {
        "csv": lambda: [*csv.reader(io.StringIO(text, newline=""))][1:],
        "tsv": lambda: [*csv.reader(io.StringIO(text, newline=""), delimiter="\t")][1:],
        "markdown": lambda: text.splitlines()[2:],
        "json": lambda: text.splitlines()[1:-1],
        "jsonl": lambda: text.splitlines(),
    }
    return readers[form]()


def own_text(case: Case, title: str, name: str) -> list[str]:
    """The text that the database's own client gets; NULL is empty, as in CSV."""
    if case.source == "sqlite":  # its own casts keep 15 digits of a number
        rows = case.place.own_rows("sqlite", f"SELECT {title} FROM {name} ORDER BY {POSITION}")
        return ["" if each is None else str(each) for (each,) in rows]
    cast = {"mysql": "CHAR", "duckdb": "VARCHAR", "postgres": "TEXT"}[case.source]
    if case.source == "duckdb":  # the file is open in this process, which is its own client
        rows = (
            case.place.session("duckdb")
            .source.stream(f"SELECT CAST({title} AS {cast}) FROM {name} ORDER BY {POSITION}")
            .read_all()
            .column(0)
            .to_pylist()
        )
    else:
        query = f"SELECT CAST({title} AS {cast}) FROM {name} ORDER BY {POSITION}"
        rows = [row[0] for row in case.place.own_rows(case.source, query)]
    return ["" if each is None else str(each) for each in rows]


TIME = re.compile(
    r"(.*?\d{1,2}:\d{2}(?::\d{2})?)(\.\d+)?([+-]\d{2})?(?::?(\d{2}))?(?::\d{2})?( BC| \(BC\))?$"
)
TRUTH = {"t": "true", "f": "false", "True": "true", "False": "false"}


def canonical(text: str) -> str:
    """One form of a text that databases write in several: numbers, times, truth, infinity."""
    text = TRUTH.get(text, text)
    if text.casefold() in ("inf", "infinity", "-inf", "-infinity", "nan"):
        return text.casefold().replace("infinity", "inf")
    try:
        number = Decimal(text)
        return str(number.normalize()) if number.is_finite() and abs(number.adjusted()) < 400 else text
    except InvalidOperation:
        pass
    if match := TIME.match(text.replace("T", " ", 1) if re.match(r"\d{4}-\d\d-\d\dT", text) else text):
        head, fraction, zone, minutes, era = match.groups(default="")
        return f"{head}{fraction.rstrip('0').rstrip('.')}{zone}{minutes if minutes != '00' else ''}{era}"
    return text
