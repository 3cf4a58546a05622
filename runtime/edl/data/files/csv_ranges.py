"""CSV by row range: an index of row offsets, and pieces of rows parsed by Arrow.

The same files give the same rows and types as the SQL source does (`csv` beside it), with these differences, each a
named error: a quote may only enclose a whole field, a lone carriage return ends no line, and the file is UTF-8 or
Latin-1. So the parity of the quotes distinguishes the line end of a row from one inside a field, and one vectorised
pass over the bytes finds every row exactly.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from edl.data.arrow_types import Watched
from edl.data.files import csv as csv_files
from edl.data.files.csv import BLOCK_BYTES
from edl.data.files.csv_index import LineScanner
from edl.data.files.file_ranges import Columns, FileIndex, FileSet, changed, stamped
from edl.data.paths import Files
from edl.errors import SourceError

PIECE_ROWS = 4096
PIECE_BYTES = 1 << 20

_FIELDS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")

Ints = npt.NDArray[np.int64]


def index(files: Files) -> FileSet:
    """Index the files: one pass over the bytes for rows, one over the values for types.

    Raises SourceError if a file is damaged.
    """
    settings = csv_files.settled(files.paths[0], files.options)
    _check_settings(settings)
    names = [csv_files.column_names(path, files.options) for path in files.paths]
    csv_files.check_same(files.paths, names)
    indexed = tuple(_index(path, settings, len(names[0])) for path in files.paths)
    texts = [Texts(file, each, settings) for file, each in zip(indexed, names, strict=True)]
    return FileSet("csv", indexed, settings, _types(texts))


def open_pieces(files: FileSet, file: FileIndex) -> CSVPieces:
    texts = Texts(file, csv_files.column_names(file.path, files.options), files.options)
    if sorted(texts.names) != sorted(files.types):
        raise changed(file)
    return CSVPieces(texts, files.types)


class CSVPieces:
    """Pieces of one file. Each column has the type determined by all values of the job's files."""

    def __init__(self, texts: Texts, types: Mapping[str, str]) -> None:
        self._texts = texts
        self._types = types
        # Arrow parses numbers much faster than it casts texts.
        self._direct = {name: _ARROW[kind] for name, kind in types.items() if kind in ("BIGINT", "DOUBLE")}
        self.schema = pa.schema([(name, _ARROW[types[name]]) for name in texts.names])

    def load(self, piece: int, columns: Columns) -> pa.RecordBatch:
        names = self._texts.names if columns is None else list(columns)
        read = self._texts.load(piece, names or self._texts.names[:1], self._direct).select(names)
        arrays = [
            _converted(column, self._types[name]) for name, column in zip(names, read.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([self.schema.field(name) for name in names])
        )


class Texts:
    """Pieces of one file as unparsed texts. `names` are its columns, in the file's order."""

    def __init__(self, file: FileIndex, names: list[str], settings: Mapping[str, str]) -> None:
        self._file = file
        self.names = names
        self._read = csv.ReadOptions(
            column_names=names,
            use_threads=False,
            encoding="utf8" if settings["encoding"].lower() == "utf-8" else "latin-1",
        )
        self._parse = csv.ParseOptions(
            delimiter=settings["delim"],
            quote_char=settings["quote"],
            newlines_in_values=True,
            ignore_empty_lines=len(names) > 1,  # with a single column, an empty line is a NULL
        )
        self._nulls = list(dict.fromkeys(["", settings["nullstr"]]))

    def load(
        self, piece: int, names: Sequence[str], direct: Mapping[str, pa.DataType] | None = None
    ) -> pa.RecordBatch:
        """Return the texts of a piece, and numbers for the columns in `direct` if all of them are written plainly.

        Raises SourceError if the piece holds other rows than the index says, or is not text.
        """
        first, last = self._file.offsets[piece : piece + 2]
        with Path(self._file.path).open("rb") as file:
            file.seek(first)
            data = file.read(last - first)
        self._read.block_size = len(data) + 1
        try:
            table = self._parsed(data, names, direct or {})
        except (pa.ArrowException, UnicodeError) as error:
            if direct:  # `+1`, or `""` for NULL
                return self.load(piece, names)
            raise self._damaged(str(error), piece) from None
        row, behind = self._file.starts[piece : piece + 2]
        if table.num_rows != behind - row:
            raise self._damaged(f"{behind - row} rows are expected, and {table.num_rows} found", piece)
        [batch] = table.combine_chunks().to_batches()
        return batch

    def _parsed(self, data: bytes, names: Sequence[str], direct: Mapping[str, pa.DataType]) -> pa.Table:
        convert = csv.ConvertOptions(
            column_types={**dict.fromkeys(self.names, pa.string()), **direct},
            include_columns=names,
            null_values=self._nulls,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return csv.read_csv(pa.BufferReader(data), self._read, self._parse, convert)

    def all(self) -> Iterator[pa.RecordBatch]:
        for piece in range(len(self._file.offsets) - 1):
            yield self.load(piece, self.names)

    def _damaged(self, report: str, piece: int) -> SourceError:
        """Translate Arrow's report, which counts rows from the beginning of the piece."""
        path, before = self._file.path, self._file.starts[piece]
        if match := _FIELDS.search(report):
            row, expected, found = map(int, match.groups())
            message = f"row {before + row:,} of {path}: {expected} fields are expected, but there are {found}"
            return SourceError(message, hint="check its quotes")
        words = report.splitlines()[0].removeprefix("CSV parse error: ")
        hint = "if it is not UTF-8, add ?encoding=latin-1 to the URL" if "UTF" in report else None
        return SourceError(f"{path}, after row {before:,}: {words}", hint=hint)


def _types(texts: Sequence[Texts]) -> dict[str, str]:
    """Determine types with DuckDB, which consumes batches as they come; its state does not grow with the files."""
    names = texts[0].names
    schema = pa.schema([(name, pa.string()) for name in names])

    def batches() -> Iterator[pa.RecordBatch]:
        return (batch.select(names) for each in texts for batch in each.all())

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        first = pa.Table.from_batches(itertools.islice(batches(), 3), schema)
        watched = Watched(batches())
        connection.register("first_rows", first)
        connection.register("all_rows", pa.RecordBatchReader.from_batches(schema, watched))
        with watched.errors(duckdb.Error, pa.ArrowException):
            return csv_files.types(connection, "FROM first_rows", "FROM all_rows", names)


def _index(path: str, settings: Mapping[str, str], columns: int) -> FileIndex:
    with stamped(path) as stamp, Path(path).open("rb") as file:
        scanner = LineScanner(path, settings["delim"].encode(), settings["quote"].encode(), columns == 1)
        pieces = _Cutter(header=settings["header"].lower() == "true")
        checksum = 0
        while block := file.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
            pieces.add(scanner.rows(block))
        pieces.add(scanner.end())
    starts, offsets = pieces.cut(stamp.size)
    return FileIndex(path, *stamp, starts=starts, offsets=offsets, checksum=checksum)


def _check_settings(settings: Mapping[str, str]) -> None:
    """Raise SourceError if the file has options that only the SQL source supports."""
    if settings["encoding"].lower() not in ("utf-8", "latin-1"):
        raise SourceError(
            f"ranges of rows cannot be read in the encoding {settings['encoding']}",
            hint="convert it to UTF-8",
        )
    if settings["escape"] != settings["quote"]:
        raise SourceError(
            "ranges of rows cannot be read with an escape character in front of quotes",
            hint="double the quotes inside of quotes instead, as RFC 4180 says",
        )
    for option in ("delim", "quote"):
        if not settings[option].isascii():
            raise SourceError(f"the option {option} must be an ASCII character, not {settings[option]!r}")


class _Cutter:
    """Splitter of rows into pieces of at most `PIECE_ROWS` rows that begin less than `PIECE_BYTES` apart."""

    def __init__(self, *, header: bool) -> None:
        self._skip = header
        self._rows = 0
        self._starts: list[int] = []
        self._offsets: list[int] = []

    def add(self, begins: Ints) -> None:
        """Add the next rows by their byte offsets."""
        if self._skip and len(begins):
            begins, self._skip = begins[1:], False
        while (position := self._next(begins)) < len(begins):
            self._starts.append(self._rows + position)
            self._offsets.append(int(begins[position]))
        self._rows += len(begins)

    def _next(self, begins: Ints) -> int:
        """Return the index among these rows at which the next piece begins."""
        if not self._offsets:
            return 0
        by_bytes = int(np.searchsorted(begins, self._offsets[-1] + PIECE_BYTES))
        at_least = self._starts[-1] + 1 - self._rows
        return max(at_least, min(by_bytes, self._starts[-1] + PIECE_ROWS - self._rows))

    def cut(self, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return first rows and offsets of all pieces of a file of `size` bytes, with the total behind them."""
        return (*self._starts, self._rows), (*self._offsets, size)


_ARROW: Mapping[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}


def _converted(column: pa.Array, kind: str) -> pa.Array:
    """Convert texts to a type that all of them have. Surrounding blanks are ignored; an empty text is NULL."""
    if column.type == _ARROW[kind]:
        return column
    trimmed = pc.utf8_trim(column, " ")
    values = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    if kind == "BOOLEAN":
        return pc.equal(pc.utf8_lower(values), "true")
    if kind in ("BIGINT", "DOUBLE"):
        values = pc.utf8_ltrim(values, "+")
    return pc.cast(values, _ARROW[kind])
