"""Pinned rows: one Arrow IPC file, written once, mapped by every process that reads it.

The file holds batches of 65,536 rows (the last may be shorter), so row m lies in batch m // 65,536 and a range of rows
is a slice of memory, not a copy. Its digest covers its bytes: the same rows in the same order give the same file, byte
for byte.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec
import pyarrow as pa

from edl.data.arrow_types import BATCH_ROWS, fields, rechunk_rows, zero_nulls
from edl.data.source import Pinned
from edl.errors import SourceError, SpecError, did_you_mean

FILE = "rows.arrow"
RECORD = "pinned.json"  # description of the pinned rows, beside them
RESERVE = 64 << 20  # bytes of disk space that an export leaves free


def write_rows(folder: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> tuple[int, str]:
    """Write `<folder>/rows.arrow`. Return the number of rows and the digest of the file.

    The file appears once it is complete; nothing of it remains after an error. Raises SourceError if the disk is full
    or would be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{FILE}.partial"
    try:
        with partial.open("wb") as file:
            sink = _Digesting(file, folder)
            rows = _write(sink, schema, batches)
        partial.replace(folder / FILE)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise disk_full(folder) from None
    finally:
        partial.unlink(missing_ok=True)
    return rows, sink.digest.hexdigest()


def pin_rows(
    folder: Path, reader: pa.RecordBatchReader, *, source: str, select: str, seed: int, shuffled: bool
) -> Pinned:
    """Write the rows that a source yields. Return the description of the pinned set."""
    rows, digest = write_rows(folder, reader.schema, reader)
    return Pinned(
        source=source,
        select=select,
        file=FILE,
        rows=rows,
        schema=fields(reader.schema),
        digest=digest,
        seed=seed,
        shuffled=shuffled,
    )


def write_pinned(folder: Path, pinned: Pinned) -> None:
    """Write the description of the pinned rows into `folder` for the processes that read them."""
    (folder / RECORD).write_bytes(msgspec.json.encode(pinned))


def read_pinned(folder: Path) -> Pinned:
    """Return the description stored by `write_pinned`. Raises SpecError if it is missing or damaged."""
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=Pinned)
    except OSError as error:
        raise SpecError(f"cannot read {folder / RECORD}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{folder / RECORD} is damaged: {error}") from None


def remove_rows(pinned: Pinned, folder: Path) -> None:
    (folder / pinned.file).unlink(missing_ok=True)


def open_reader(pinned: Pinned, folder: Path) -> PinnedReader:
    """Map the pinned rows in `folder`.

    Raises SourceError if they are missing, or are not the rows that were pinned.
    """
    path = folder / pinned.file
    try:
        reader = PinnedReader(path)
    except FileNotFoundError:
        raise SourceError(
            f"the pinned rows of this job no longer exist: {path}",
            hint="rows are removed when a job ends; submit it again",
        ) from None
    except pa.ArrowInvalid as error:
        raise SourceError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
    if reader.rows != pinned.rows or fields(reader.schema) != pinned.schema:
        raise SourceError(f"{path} holds other rows than the job pinned", hint="submit the job again")
    reader.check_columns = pinned.check_fits
    return reader


class PinnedReader:
    """Reader of row ranges of one file, without copies. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        self._lock = threading.Lock()
        self.check_columns: Callable[[Iterable[str] | None], None] = lambda names: (
            None
        )  # raises for one of them
        self.schema: pa.Schema = self._file.schema
        batches = self._file.num_record_batches
        self.rows: int = (batches - 1) * BATCH_ROWS + self._batch(batches - 1).num_rows if batches else 0

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order, in batches of at most 65,536.

        `columns` selects and orders columns; None selects all. Raises SourceError for a missing column, ValueError
        unless 0 <= start <= end <= rows.
        """
        if not 0 <= start <= end <= self.rows:
            raise ValueError(f"rows [{start}, {end}) of {self.rows}")
        names = self._check_columns(columns)
        self.check_columns(columns)
        return self._slices(start, end, names)

    def _slices(self, start: int, end: int, names: list[str] | None) -> Iterator[pa.RecordBatch]:
        while start < end:
            index, offset = divmod(start, BATCH_ROWS)
            batch = self._batch(index).slice(offset, end - start)
            yield batch if names is None else batch.select(names)
            start += batch.num_rows

    def _batch(self, index: int) -> pa.RecordBatch:
        with self._lock:
            return self._file.get_batch(index)

    def _check_columns(self, columns: Sequence[str] | None) -> list[str] | None:
        names = self.schema.names  # a new list at each access
        present = set(names)
        for name in columns or ():
            if name not in present:
                raise SourceError(f"the pinned rows have no column {name}", hint=did_you_mean(name, names))
        return None if columns is None else list(columns)


def check_disk(folder: Path) -> None:
    """Raise SourceError if the disk of a folder, which need not exist yet, has no room for rows."""
    existing = next(candidate for candidate in (folder, *folder.parents) if candidate.exists())
    if shutil.disk_usage(existing).free < RESERVE:
        raise disk_full(existing)


def disk_full(folder: Path) -> SourceError:
    free = shutil.disk_usage(folder).free
    return SourceError(
        f"the disk of {folder} is full: {free / 2**20:,.0f} MiB are left",
        hint="free some space, select fewer rows or columns, or set XDG_STATE_HOME to a folder on another disk",
    )


def _write(sink: _Digesting, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with pa.ipc.new_file(pa.PythonFile(sink, mode="w"), schema) as writer:
        for batch in rechunk_rows(batches, schema):
            sink.check_space(batch.nbytes)
            writer.write_batch(zero_nulls(batch))
            rows += batch.num_rows
    return rows


def verify_rows(folder: Path) -> None:
    """Read the file of pinned rows, and raise SpecError if it is not as it was written. Others have no file."""
    pinned = read_pinned(folder)
    if (
        pinned.file != FILE or len(pinned.digest) != 2 * _hash().digest_size
    ):  # a reader of the user has its own
        return
    try:
        with (folder / FILE).open("rb") as file:
            digest = hashlib.file_digest(file, _hash).hexdigest()
    except OSError as error:
        raise SpecError(f"{FILE} cannot be read: {error.strerror}") from None
    if digest != pinned.digest:
        raise SpecError(f"bytes of {FILE} have changed since it was written")


def _hash() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)


class _Digesting:
    """File that is hashed while it is written, with a check of the free disk space."""

    closed = False

    def __init__(self, file: IO[bytes], folder: Path) -> None:
        self.digest = _hash()
        self._file = file
        self._folder = folder
        self.check_space(0)

    def check_space(self, coming: int) -> None:
        """Raise SourceError if `coming` more bytes would use the space reserved for others on this disk."""
        if shutil.disk_usage(self._folder).free < coming + RESERVE:
            raise disk_full(self._folder)

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        """Leave the file open: the caller closes it."""
