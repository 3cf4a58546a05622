"""Result sets as Parquet files, whatever values they have."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as parquet

from edl.data.arrow_types import BATCH_ROWS
from edl.data.displayed_rows import DisplayedRows, as_displayed_rows, as_type, common_type


def write_rows(
    rows: pa.RecordBatchReader | DisplayedRows, out: BinaryIO, names: Sequence[str]
) -> tuple[int, str]:
    """Write all rows with these names of columns. Return their number, and a note on columns that became text.

    A column may turn out to be text behind rows that are written already; then these are written again.
    """
    rows = as_displayed_rows(rows)
    fields = [_parquet_field(field.with_name(name)) for field, name in zip(rows.schema, names, strict=True)]
    file = _File(pa.schema(fields), _folder(out))
    total = 0
    try:
        for batch in rows:
            file.write(batch)
            total += batch.num_rows
        file.copy_to(out)
    finally:
        file.close()
    return total, rows.texts_note(file.schema)


class _File:
    """Parquet file without a name, until all its rows are known."""

    def __init__(self, schema: pa.Schema, folder: Path | None) -> None:
        self.schema = schema
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by `close`)
        self._writer = parquet.ParquetWriter(self._file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        kinds = [
            common_type({old.type, new.type}) for old, new in zip(self.schema, batch.schema, strict=True)
        ]
        if kinds != self.schema.types:
            self._begin_again(kinds)
        arrays = [as_type(column, kind) for column, kind in zip(batch.columns, kinds, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def copy_to(self, out: BinaryIO) -> None:
        self._writer.close()
        self._file.seek(0)
        shutil.copyfileobj(self._file, out, 1 << 20)

    def close(self) -> None:
        self._writer.close()
        self._file.close()

    def _begin_again(self, kinds: list[pa.DataType]) -> None:
        """Write the rows so far with other types of the columns."""
        self._writer.close()
        before = self._file
        self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
        self.schema = pa.schema(
            [
                old if old.type == kind else pa.field(old.name, kind)
                for old, kind in zip(self.schema, kinds, strict=True)
            ]
        )
        self._writer = parquet.ParquetWriter(self._file, self.schema)
        with before:
            for batch in parquet.ParquetFile(before).iter_batches(BATCH_ROWS):
                self.write(batch)


def _parquet_field(field: pa.Field) -> pa.Field:
    """Return the field with a type that Parquet has."""
    try:
        parquet.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
    except pa.ArrowException:
        return pa.field(field.name, pa.string())
    return field


def _folder(out: BinaryIO) -> Path | None:
    """Return the folder of an output file: its disk has room for the rows. None for a device or a pipe."""
    name = getattr(out, "name", None)
    folder = Path(name).parent if isinstance(name, str) else None
    return folder if folder and out.seekable() and os.access(folder, os.W_OK) else None
