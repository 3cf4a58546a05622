"""Rows and result tables for a runnable, a Python program of a user that TO RUN runs.

    from edl.runnable import rows, write

    write(summary(batch) for batch in rows())

The rows are a file on this machine, so they can be read several times; results are files too, which become tables
when the program has ended without an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from edl.data.pinned import PinnedReader
from edl.data.results import ResultFolder
from edl.errors import JobError, did_you_mean

VARIABLE = "EDL_RUNNABLE"  # of the environment, with the `RunnablePlace` as JSON


class RunnablePlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """File of the pinned rows, folder of the results, and the tables that INTO names."""

    rows: str
    results: str
    tables: tuple[str, ...]

    def folder(self, position: int) -> ResultFolder:
        """Return the results of the table at that position; a statement without INTO has its results at 0."""
        return ResultFolder(Path(self.results) / str(position))

    def list_results(self) -> list[tuple[ResultFolder, int]]:
        """Return the results of each table with the number of their parts; those without INTO as of one table."""
        folders = [self.folder(position) for position in range(max(len(self.tables), 1))]
        return [(folder, len(folder.staged_files())) for folder in folders]


def rows(columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """Return the rows of the query, in its order, in batches of at most 65,536.

    columns: selects and orders columns; None is all. Each call begins with the first row. Raises SourceError for a
    missing column, JobError outside of TO RUN.
    """
    reader = PinnedReader(Path(_place().rows))
    batches = reader.read(0, reader.rows, columns)
    schema = reader.schema
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(schema, batches)


def write(result: Any, table: str = "") -> int:
    """Add rows to a table that INTO names, or to the result set of a statement without INTO; return their number.

    result: a data frame of pandas or polars, Arrow data, a mapping of names to columns, or an iterable of these,
    of which one at a time is in memory. table: needed if INTO names several. Raises JobError for other tables and
    objects, SourceError for values that no database holds.
    """
    place = _place()
    folder = place.folder(_position(table, place.tables))
    return folder.stage(len(folder.staged_files()), 0, _batches(result))


def _place() -> RunnablePlace:
    try:
        return msgspec.json.decode(os.environ[VARIABLE], type=RunnablePlace)
    except KeyError:
        raise JobError(
            "only a program that a statement runs has rows: SELECT … TO RUN program.py INTO table"
        ) from None


def _position(table: str, tables: Sequence[str]) -> int:
    if not table and len(tables) > 1:
        raise JobError(f"name the table of the rows, as in write(rows, {tables[0]!r})")
    folded = [name.casefold() for name in tables]
    if table and table.casefold() not in folded:
        raise JobError(f"INTO does not name {table}; {did_you_mean(table, tables) or 'it is missing'}")
    return folded.index(table.casefold()) if table else 0


def _batches(result: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows; a batch without rows, which has the columns, if there are none."""
    if hasattr(result, "iloc"):  # of pandas
        result = pa.Table.from_pandas(result, preserve_index=False)
    elif isinstance(result, Mapping):
        result = pa.table(dict(result))
    if isinstance(result, pa.RecordBatch):
        yield result
    elif hasattr(result, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(result)
        first = next(reader, None)
        yield first if first is not None else pa.RecordBatch.from_pylist([], schema=reader.schema)
        yield from reader
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes):
        for part in result:
            yield from _batches(part)
    else:
        raise JobError(
            f"a {type(result).__name__} is not a table: write a data frame, Arrow data, or columns by name"
        )
