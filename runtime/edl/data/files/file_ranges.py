"""Rows of files by range, read in place: RecordIO, CSV and Parquet as the data of model-zoo jobs.

The file itself fixes the rows, so nothing is copied. An index makes [start, end) cheap: every file is divided into
*pieces* (some thousand rows of a CSV file, some chunks of RecordIO, a row group of Parquet) that can be found, read
and decoded on their own. `pin_files` makes the index in one streaming pass and writes it into the job folder as
`files.json`, which every process that reads the rows opens. Decoded pieces are cached for the next range, up to
`KEPT_BYTES` or one piece.

A file that changes during a job is a SourceError, never different rows.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import msgspec
import pyarrow as pa

from edl.data.arrow_types import cast_batch, fields, normal_schema
from edl.data.paths import FORMATS, DataFiles, found_files
from edl.data.source import Pinned
from edl.errors import SourceError, SpecError, did_you_mean

FILE = "files.json"
KEPT_BYTES = 256 << 20  # of decoded pieces cached by a reader

Columns = tuple[str, ...] | None


class FileIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Index of the pieces of one file.

    A relative `path` leads to a copy beside the index, sent with the job. `size` (bytes) and `modified` (nanoseconds)
    are the file's when it was indexed. `starts` holds the first row of each piece, then the number of rows. `offsets`
    holds the byte at which each piece begins, then the end of the last; it is empty for Parquet, where pieces are row
    groups. `checksum` covers the contents that the index has read.
    """

    path: str
    size: int
    modified: int
    starts: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    checksum: int = 0

    @property
    def rows(self) -> int:
        return self.starts[-1]


class FileSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files of a job, in order, and how they are read. `types` are DuckDB's names for the types of CSV columns."""

    format: str
    files: tuple[FileIndex, ...]
    options: dict[str, str] = {}
    types: dict[str, str] = {}

    @property
    def digest(self) -> str:
        """Digest of sizes, times and contents, independent of the files' location."""
        seen = [msgspec.structs.replace(file, path="") for file in self.files]
        data = msgspec.json.encode((self.format, seen, self.options, self.types), order="deterministic")
        return hashlib.blake2b(data, digest_size=32).hexdigest()


class Pieces(Protocol):
    """Pieces of one file, as its format reads them."""

    schema: pa.Schema

    def load(self, piece: int, columns: Columns) -> pa.RecordBatch:
        """Return all rows of a piece. `columns` selects columns; None selects all."""
        ...


class _Format(Protocol):
    """Interface of a format's module."""

    def index(self, files: DataFiles, note: Callable[[str], None]) -> FileSet: ...

    def open_pieces(self, files: FileSet, file: FileIndex) -> Pieces: ...


def pin_files(
    location: str,
    folder: Path,
    note: Callable[[str], None] = lambda text: None,
    readings: Mapping[str, str] | None = None,
) -> Pinned:
    """Fix the rows of the files that `location` names: a path, a folder, a pattern, or a URL with options.

    `note` receives lines on how they are read, where that is not plain. `readings`: how a model's training rows were
    read, see `found_readings`; other values are an error. Writes the index into `folder`. Raises
    SourceError if there are no such files, or one cannot be read.
    """
    files = found_files(location)
    file_set = _module(files.format).index(files, note)
    if readings and file_set.types:
        from edl.data.files import csv_ranges

        file_set = csv_ranges.read_as(file_set, readings)
    reader = RangeReader(file_set)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(msgspec.json.encode(file_set))
    return Pinned(
        source=str(files.url),
        select="",
        file=FILE,
        rows=reader.rows,
        schema=fields(reader.schema),
        digest=file_set.digest,
        seed=0,
        shuffled=False,
    )


def found_readings(folder: Path) -> dict[str, str]:
    """Return how the CSV columns in a folder of `pin_files` are read; empty for files of another format."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=FileSet).types


def open_files(pinned: Pinned, folder: Path) -> RangeReader:
    """Return a reader of rows fixed by `pin_files`. Raises SourceError if a file is missing or has changed."""
    try:
        file_set = msgspec.json.decode((folder / pinned.file).read_bytes(), type=FileSet)
    except OSError as error:
        raise SourceError(f"the index of this job's files is missing: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{folder / pinned.file} is damaged: {error}") from None
    if file_set.format not in FORMATS:
        raise SpecError(f"{folder / pinned.file} is damaged: there is no format {file_set.format}")
    return RangeReader(
        msgspec.structs.replace(file_set, files=tuple(_place_index(file, folder) for file in file_set.files))
    )


def _place_index(file: FileIndex, folder: Path) -> FileIndex:
    """Return the index with the location of a copy that was sent, and the time at which it arrived."""
    if Path(file.path).is_absolute():
        return file
    path = folder / file.path
    try:
        return msgspec.structs.replace(file, path=str(path), modified=path.stat().st_mtime_ns)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None


class RangeReader:
    """Reader of row ranges of several files. Safe to use from several threads."""

    def __init__(self, file_set: FileSet) -> None:
        self._files = file_set.files
        for file in file_set.files:
            check_unchanged(file)
        module = _module(file_set.format)
        self._pieces = [module.open_pieces(file_set, file) for file in file_set.files]
        self.schema: pa.Schema = normal_schema(self._pieces[0].schema)
        for file, pieces in zip(self._files, self._pieces, strict=True):
            _check_same(file, normal_schema(pieces.schema), self._files[0], self.schema)
        self._firsts = list(itertools.accumulate((file.rows for file in file_set.files), initial=0))
        self.rows = self._firsts[-1]
        self._kept = _Kept()

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows [start, end) in order, in batches that end where files and pieces do.

        `columns` selects and orders columns; None selects all. Raises SourceError for a missing column or a changed
        file, ValueError unless 0 <= start <= end <= rows.
        """
        if not 0 <= start <= end <= self.rows:
            raise ValueError(f"rows [{start}, {end}) of {self.rows}")
        names = dict.fromkeys(self.schema.names)
        for name in columns or ():
            if name not in names:
                hint = did_you_mean(name, names)
                raise SourceError(f"{self._files[0].path} has no column {name}", hint=hint)
        return self._slices(start, end, None if columns is None else tuple(columns))

    def _slices(self, start: int, end: int, columns: Columns) -> Iterator[pa.RecordBatch]:
        while start < end:
            number = bisect.bisect_right(self._firsts, start) - 1
            file, row = self._files[number], start - self._firsts[number]
            piece = bisect.bisect_right(file.starts, row) - 1
            first, last = file.starts[piece : piece + 2]
            batch = self._piece(number, piece, columns)
            if batch.num_rows != last - first:
                raise changed_file_error(file)
            part = batch.slice(row - first, min(last - row, end - start))
            yield part
            start += part.num_rows

    def _piece(self, number: int, piece: int, columns: Columns) -> pa.RecordBatch:
        kept = self._kept.get((number, piece, columns))
        if kept is not None:
            return kept
        file = self._files[number]
        check_unchanged(file)
        batch = self._pieces[number].load(piece, columns)
        check_unchanged(file)  # data read during a write is not a row of the file
        names = self.schema.names if columns is None else columns
        schema = pa.schema([self.schema.field(name) for name in names])
        batch = cast_batch(batch.select(list(names)), schema)
        self._kept.put((number, piece, columns), batch)
        return batch


_Key = tuple[int, int, Columns]


class _Kept:
    """Least-recently-used cache of decoded pieces: up to `KEPT_BYTES`, and always the last one."""

    def __init__(self) -> None:
        self._batches: OrderedDict[_Key, pa.RecordBatch] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> pa.RecordBatch | None:
        with self._lock:
            if key in self._batches:
                self._batches.move_to_end(key)
            return self._batches.get(key)

    def put(self, key: _Key, batch: pa.RecordBatch) -> None:
        with self._lock:
            if key in self._batches:  # loaded by another thread meanwhile
                return
            self._batches[key] = batch
            self._bytes += batch.nbytes
            while self._bytes > KEPT_BYTES and len(self._batches) > 1:
                _, oldest = self._batches.popitem(last=False)
                self._bytes -= oldest.nbytes


def check_unchanged(file: FileIndex) -> None:
    """Raise SourceError if the file is missing or is not the one that was indexed."""
    try:
        now = Path(file.path).stat()
    except OSError as error:
        raise SourceError(f"cannot read {file.path}: {error.strerror}") from None
    if (now.st_size, now.st_mtime_ns) != (file.size, file.modified):
        raise changed_file_error(file)


def changed_file_error(file: FileIndex) -> SourceError:
    return SourceError(
        f"{file.path} has changed since the job began", hint="a job reads fixed rows: start it again"
    )


class Stamp(NamedTuple):
    """Size in bytes and modification time in nanoseconds: together they identify one state of a file."""

    size: int
    modified: int


@contextlib.contextmanager
def watch_file(path: str) -> Iterator[Stamp]:
    """Yield size and time of a file. Raises SourceError if the file changes meanwhile or cannot be read."""
    try:
        before = Path(path).stat()
        yield Stamp(before.st_size, before.st_mtime_ns)
        after = Path(path).stat()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise SourceError(f"{path} changes while it is read", hint="wait until it is written")


def _module(name: str) -> _Format:
    return cast(_Format, import_module(FORMATS[name]))


def _check_same(file: FileIndex, schema: pa.Schema, first: FileIndex, expected: pa.Schema) -> None:
    """Raise SourceError unless both files have the same columns, in any order."""
    ours, theirs = ({field.name: field.type for field in one_schema} for one_schema in (schema, expected))
    if ours != theirs:
        differing = sorted({name for name, _ in ours.items() ^ theirs.items()})
        raise SourceError(
            f"{file.path} and {first.path} differ in the columns {', '.join(differing[:8])}",
            hint="name files with the same columns only",
        )
