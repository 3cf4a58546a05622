"""Notes on files of text in queries of DuckDB, which reads them by its own rules: columns that stay texts there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from edl.data import Source
from edl.data.url import SourceURL, parse
from edl.errors import SQLFlowError

_FILE = re.compile(r"\b(?:FROM|JOIN)\s+'([^'\n*?]+\.(?:csv|tsv|txt)(?:\.gz|\.zst)?)'", re.IGNORECASE)
_MOST_NAMED = 8


def describe_file_readings(source: Source, select: str, described: set[str]) -> Iterator[str]:
    """Yield a note for each file in a query with columns that only DuckDB's rules leave as texts.

    Sources of files read such files as `edl.data.files.csv` does, and have no such notes. described: the paths that
    were looked at before; each file is read once in a session, and its path is added.
    """
    url = parse(source.url)
    if not isinstance(url, SourceURL) or url.scheme != "duckdb":
        return
    for path in {*_FILE.findall(select)} - described:
        described.add(path)
        with suppress(SQLFlowError):
            if names := _find_texts(source, path):
                listed = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
                one = len(names) == 1
                are, they = (
                    ("is text", "it is a number or time")
                    if one
                    else ("are texts", "they are numbers or times")
                )
                yield f"DuckDB reads {path} by rules of its own, and {listed} {are}; with --source {path}, {they}"


def _find_texts(source: Source, path: str) -> list[str]:
    """Return the columns of a file that are texts for DuckDB alone."""
    import pyarrow.types as types

    from edl.data.files import csv
    from edl.data.files.csv_readings import TEXT
    from edl.sources.duckdb.engine import open_database

    url = parse(path) if Path(path).is_file() else None
    texts = (
        [field.name for field in source.schema(f"SELECT * FROM '{path}'") if types.is_string(field.type)]
        if isinstance(url, SourceURL)
        else []
    )
    if not isinstance(url, SourceURL) or not texts:
        return []
    with TemporaryDirectory(prefix="sqlflow-edl-") as folder, open_database() as connection:
        readings = csv.open_files(connection, [path], url, Path(folder)).readings
    return [name for name in texts if readings.get(name, TEXT) != TEXT]
