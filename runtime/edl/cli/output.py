"""Output of a result as a file: a model's archive; or rows as CSV, Parquet or Arrow by its suffix, batch by batch.

A file is checked before the work, and replaced once it is complete.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from edl.cli.place import IN_PODS
from edl.cli.streams import discard_writes
from edl.errors import JobError, SemanticError
from edl.files import check_room, replacing

MODEL = Path("model.zip")  # output of a training by default
LEAST_ROOM = 64 << 10  # bytes for a file of unknown size


def prepare_output(options: argparse.Namespace) -> None:
    """Set the default of a model's file, and check that the output can be written at the end of the job.

    A model may need as much room as the older file, or as the weights from which it starts. Raises SemanticError or
    JobError if it cannot be written.
    """
    if options.kind == "train" and options.output is None:
        options.output = MODEL
    output: Path | None = getattr(options, "output", None)
    if output is None or str(output).startswith(IN_PODS):
        return
    if options.kind == "predict":
        check_suffix(output)
    if not output.absolute().parent.is_dir():
        raise SemanticError(f"there is no folder {output.parent} for --output", hint="make it first")
    like = (output, getattr(options, "weights", None))
    with _errors(output):
        sizes = [file.stat().st_size for file in like if file is not None and file.is_file()]
        check_room(output, max([LEAST_ROOM, *sizes]))


def write_model(archive: Path, file: Path) -> None:
    """Copy a model's archive to the file. Raises JobError if that fails; an older file then stays."""
    with _errors(file), replacing(file) as partial:
        shutil.copyfile(archive, partial)


def check_suffix(file: Path | None) -> None:
    """Raise JobError unless `write_rows` supports the file's suffix."""
    if file is not None and file.suffix.lower() not in _WRITERS:
        raise JobError(f"cannot write {file}", hint=f"known suffixes: {', '.join(_WRITERS)}")


def write_rows(rows: pa.RecordBatchReader, file: Path | None) -> None:
    """Write the rows; without a file, as CSV to standard output. A file appears once it is complete."""
    if file is None:
        _print(rows)
        return
    with _errors(file), replacing(file) as partial, partial.open("wb") as sink:
        _write(_WRITERS[file.suffix.lower()], rows, sink)


@contextlib.contextmanager
def _errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JobError(f"cannot write {file}: {error.strerror or error}") from None


def _print(rows: pa.RecordBatchReader) -> None:
    try:
        _write(_CSVWriter, rows, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except OSError as error:
        discard_writes(sys.stdout)
        if not isinstance(error, BrokenPipeError):  # as of a reader such as `head`
            raise JobError(f"cannot write to standard output: {error.strerror or error}") from None


def _write(
    open_writer: Callable[[IO[bytes], pa.Schema], Any], rows: pa.RecordBatchReader, sink: IO[bytes]
) -> None:
    with open_writer(sink, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


class _CSVWriter:
    """Writer of CSV. CSV has no lists: a fixed-size list becomes a column per position, `x_0`, `x_1` and so on; of a
    struct, its fields are columns.
    """

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
    columns: dict[str, pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns |= _flatten_column(name, column)
    return pa.RecordBatch.from_pydict(columns)


def _flatten_column(name: str, column: pa.Array) -> dict[str, pa.Array]:
    import pyarrow.compute as pc

    if pa.types.is_fixed_size_list(column.type):
        return {f"{name}_{place}": pc.list_element(column, place) for place in range(column.type.list_size)}
    if not pa.types.is_struct(column.type):
        return {name: column}
    fields: dict[str, pa.Array] = {}
    for field, values in zip(column.type, column.flatten(), strict=True):
        fields |= _flatten_column(f"{name}_{field.name}", values)
    return fields


def _parquet_writer(sink: IO[bytes], schema: pa.Schema) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(sink, schema)


_WRITERS: Mapping[str, Callable[[IO[bytes], pa.Schema], Any]] = {
    ".csv": _CSVWriter,
    ".parquet": _parquet_writer,
    ".arrow": pa.ipc.new_file,
}
