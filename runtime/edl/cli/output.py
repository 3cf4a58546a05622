"""Output of a result as a file: CSV, Parquet or Arrow by its suffix, batch by batch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from edl.errors import JobError


def check_suffix(file: Path | None) -> None:
    """Raise JobError unless `write_rows` supports the file's suffix."""
    if file is not None and file.suffix.lower() not in _WRITERS:
        raise JobError(f"cannot write {file}", hint=f"known suffixes: {', '.join(_WRITERS)}")


def write_rows(rows: pa.RecordBatchReader, file: Path | None) -> None:
    """Write the rows; without a file, as CSV to standard output. A file appears once it is complete."""
    if file is None:
        _print(rows)
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as sink:
            _write(_WRITERS[file.suffix.lower()], rows, sink)
        partial.replace(file)
    except OSError as error:
        raise JobError(f"cannot write {file}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _print(rows: pa.RecordBatchReader) -> None:
    try:
        _write(_CSVWriter, rows, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # closed by a reader such as `head`; Python must not report it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(
    open_writer: Callable[[IO[bytes], pa.Schema], Any], rows: pa.RecordBatchReader, sink: IO[bytes]
) -> None:
    with open_writer(sink, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


class _CSVWriter:
    """Writer of CSV, which has no lists: a fixed-size list becomes a column per position, `x_0`, `x_1` and so on."""

    def __init__(self, sink: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow import csv

        self._writer = csv.CSVWriter(sink, _flat(pa.RecordBatch.from_pylist([], schema=schema)).schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(_flat(batch))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow.compute as pc

    columns: dict[str, pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_fixed_size_list(column.type):
            columns[name] = column
            continue
        for place in range(column.type.list_size):
            columns[f"{name}_{place}"] = pc.list_element(column, place)
    return pa.RecordBatch.from_pydict(columns)


def _parquet_writer(sink: IO[bytes], schema: pa.Schema) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(sink, schema)


_WRITERS: Mapping[str, Callable[[IO[bytes], pa.Schema], Any]] = {
    ".csv": _CSVWriter,
    ".parquet": _parquet_writer,
    ".arrow": pa.ipc.new_file,
}
