"""Notes on files of text in queries of DuckDB, which reads them by its own rules.

Its rules leave columns as texts, divide a file into other columns, or guess the order of day, month and year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from edl.data import Source
from edl.data.names import quote_part
from edl.data.url import SourceURL, parse
from edl.errors import SQLFlowError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_FILE = re.compile(r"\b(?:FROM|JOIN)\s+'([^'\n*?]+\.(?:csv|tsv|txt)(?:\.gz|\.zst)?)'", re.IGNORECASE)
_MOST_NAMED = 8
_MOST_BYTES = 256 << 20  # of a file that is read once more for its notes
_DIRECTIVE = re.compile("%[dmyY]")
_ORDERS = ("dmy", "mdy", "ymd")  # that people write
_PARTS = {"d": "day", "m": "month", "y": "year", "Y": "year"}


def describe_file_readings(source: Source, select: str, described: set[str]) -> Iterator[str]:
    """Yield notes for each file in a query that DuckDB's rules read otherwise than `edl.data.files.csv`, or by a guess.

    Sources of files read such files by our rules, and have no such notes. described: the paths that were looked at
    before; each file is read once in a session, and its path is added.
    """
    url = parse(source.url)
    if not isinstance(url, SourceURL) or url.scheme != "duckdb":
        return
    import duckdb

    for path in sorted({*_FILE.findall(select)} - described):
        described.add(path)
        with suppress(SQLFlowError, duckdb.Error):  # the query itself meets them again
            if Path(path).is_file() and Path(path).stat().st_size <= _MOST_BYTES:
                yield from _describe_file(path, source.schema(f"SELECT * FROM '{path}'"))


def _describe_file(path: str, schema: pa.Schema) -> Iterator[str]:
    """Yield the notes on a file. schema: of its columns as DuckDB reads them."""
    from edl.sources.duckdb.engine import open_database

    with open_database() as connection:
        yield from _describe_dates(connection, path, schema)
        yield from _describe_columns(connection, path, schema)


def _describe_columns(connection: duckdb.DuckDBPyConnection, path: str, schema: pa.Schema) -> Iterator[str]:
    """Yield a note if DuckDB alone finds other columns in a file, or if columns are texts for DuckDB alone."""
    import pyarrow.types as types

    from edl.data.files import csv
    from edl.data.files.csv_readings import TEXT

    url, names = parse(path), [field.name for field in schema if types.is_string(field.type)]
    if not isinstance(url, SourceURL) or not names:  # a file that is divided wrongly has texts, too
        return
    with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        files = csv.open_files(connection, [path], url, Path(folder))
    dialect = files.dialects[0]
    if dialect.repairs.blanks:
        yield f"DuckDB keeps the blanks beside quotes of {path}, and these quotes; --source {path} leaves them out"
    if len(schema) != len(dialect.names) and not dialect.unnamed_last:
        listed, ours = _list_names(schema.names), _list_names(dialect.names)
        yield f"DuckDB reads {path} as the columns {listed}; with --source {path}, they are {ours}"
        return
    readings = files.readings
    texts = [name for name in names if readings.get(name, TEXT) != TEXT]
    if texts:
        are, they = "are texts", "they are numbers or times"
        if len(texts) == 1:
            are, they = "is text", "it is a number or time"
        rules = f"DuckDB reads {path} by rules of its own"
        yield f"{rules}, and {_list_names(texts)} {are}; with --source {path}, {they}"


def _describe_dates(connection: duckdb.DuckDBPyConnection, path: str, schema: pa.Schema) -> Iterator[str]:
    """Yield a note for each column of dates or times if all of them fit several orders of day, month and year."""
    import pyarrow.types as types

    [forms] = connection.execute(f"SELECT DateFormat, TimestampFormat FROM sniff_csv('{path}')").fetchall()
    for field in schema:
        for has_type, option, form in zip(
            (types.is_date, types.is_timestamp), ("dateformat", "timestampformat"), forms, strict=True
        ):
            if form and has_type(field.type):
                yield from _describe_order(connection, path, field.name, option, form)


def _describe_order(
    connection: duckdb.DuckDBPyConnection, path: str, column: str, option: str, form: str
) -> Iterator[str]:
    """Yield a note if all dates of a column fit another order as well. form: the format that DuckDB chose."""
    name, others = quote_part(column), _reorder(form)
    if not others:
        return
    texts = f"(SELECT {name} FROM read_csv('{path}', all_varchar = true) WHERE {name} IS NOT NULL)"
    fits = ", ".join(f"bool_and(try_strptime({name}, '{other}') IS NOT NULL)" for other in others)
    [fitting] = connection.execute(f"SELECT {fits} FROM {texts}").fetchall()
    rivals = [other for other, fit in zip(others, fitting, strict=True) if fit]
    if not rivals:
        return
    read = f"try_strptime({name}, '{form}')"
    changed = f"{read} <> try_strptime({name}, '{rivals[0]}')"
    query = f"SELECT {name}, {read}::DATE FROM {texts} WHERE {changed} LIMIT 1"
    shown = connection.execute(query).fetchall()
    if not shown:
        return
    [(text, date)] = shown
    order = "/".join(_PARTS[directive[1]] for directive in _DIRECTIVE.findall(form))
    ways = " or ".join(f"read_csv('{path}', {option} = '{rival}')" for rival in rivals)
    yield (
        f"DuckDB reads {column} of {path} as {order}, so {text!r} is {date}, and no value tells if that is "
        f"right; {ways} in place of '{path}' reads another order"
    )


def _reorder(form: str) -> list[str]:
    """Return a format of dates with its day, month and year in other orders; empty if it has no such three."""
    directives = {directive.lower(): directive for directive in _DIRECTIVE.findall(form)}
    if sorted(directives) != ["%d", "%m", "%y"]:
        return []
    between = _DIRECTIVE.sub("{}", form)
    forms = [between.format(*(directives[f"%{part}"] for part in order)) for order in _ORDERS]
    return [other for other in forms if other != form]


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
