"""Writing a result as a file: CSV, Parquet or Arrow by its suffix, batch by batch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from edl.errors import JobError


def check_suffix(file: Path | None) -> None:
    """JobError unless `write_rows` can write such a file."""
    if file is not None and file.suffix.lower() not in _WRITERS:
        raise JobError(f"cannot write {file}", hint=f"known suffixes: {', '.join(_WRITERS)}")


def write_rows(rows: pa.RecordBatchReader, file: Path | None) -> None:
    """Write the rows; CSV to standard output when there is no file. A file appears when it is complete."""
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
        _write(_csv_writer, rows, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # `head` has seen enough; Python must not complain again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(
    open_writer: Callable[[IO[bytes], pa.Schema], Any], rows: pa.RecordBatchReader, sink: IO[bytes]
) -> None:
    with open_writer(sink, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


def _csv_writer(sink: IO[bytes], schema: pa.Schema) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(sink, schema)


def _parquet_writer(sink: IO[bytes], schema: pa.Schema) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(sink, schema)


_WRITERS: Mapping[str, Callable[[IO[bytes], pa.Schema], Any]] = {
    ".csv": _csv_writer,
    ".parquet": _parquet_writer,
    ".arrow": pa.ipc.new_file,
}
