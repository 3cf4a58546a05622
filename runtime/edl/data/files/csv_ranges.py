"""CSV by row range: an index of row offsets, and pieces of rows parsed by Arrow.

The same files give the same rows and types as the SQL source does (`csv` beside it), with these differences, each a
named error: a quote may only enclose a whole field, a lone carriage return ends no line, the encoding is UTF-8 or one
of one byte a character, and all files have the same dialect. So the parity of the quotes distinguishes the line end of
a row from one inside a field, and one vectorised pass over the bytes finds every row exactly.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from edl.data.files import csv_dialect, csv_encoding, csv_readings
from edl.data.files.csv import check_same, column_names, describe_files
from edl.data.files.csv_dialect import (
    CSVDialect,
    find_dialect,
    options_of,
    same_dialect,
    settings,
    shown_options,
)
from edl.data.files.csv_encoding import BLOCK_BYTES
from edl.data.files.csv_index import LineScanner
from edl.data.files.csv_readings import ARROW, TEXT, Reading
from edl.data.files.file_ranges import Columns, FileIndex, FileSet, changed_file_error, watch_file
from edl.data.paths import DataFiles
from edl.errors import SourceError

PIECE_ROWS = 4096
PIECE_BYTES = 1 << 20

_FIELDS = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")

Ints = npt.NDArray[np.int64]


def index(files: DataFiles, note: Callable[[str], None]) -> FileSet:
    """Index the files: one pass over the bytes for rows, one over the values for types.

    Raises SourceError if a file is damaged.
    """
    options = settings(files.options)
    dialects = [find_dialect(path, options, files.url) for path in files.paths]
    for path, dialect in zip(files.paths, dialects, strict=True):
        _check(path, dialect)
        if options_of(dialect) != options_of(dialects[0]):
            stated = shown_options(tuple(options_of(dialects[0]).items()))
            raise SourceError(
                f"{path} is not written as {files.paths[0]} is",
                hint=f"convert it, or state what holds: {stated}",
            )
    check_same(files.paths, [dialect.names for dialect in dialects])
    indexed = tuple(_index(*arguments) for arguments in zip(files.paths, dialects, strict=True))
    texts = [CSVTexts(*arguments) for arguments in zip(indexed, dialects, strict=True)]
    readings = csv_readings.candidates(options, dialects[0].delim)
    batches = (batch for file_texts in texts for batch in file_texts.all())
    columns = csv_readings.observe_columns(dialects[0].names, readings, batches)
    chosen = {name: columns[name].reading for name in column_names(dialects[0], columns)}
    for line in describe_files(files.paths, dialects, columns):
        note(line)
    types = {name: reading.name if reading else TEXT for name, reading in chosen.items()}
    return FileSet("csv", indexed, {**options_of(dialects[0]), **options}, types)


def read_as(files: FileSet, readings: Mapping[str, str]) -> FileSet:
    """Return the files with the readings of a model's training rows in place of those found.

    A column that was plain may be of another plain type now, or its values tell another form of the same kind, such as
    a decimal comma. Raises SourceError for other values that do not fit.
    """
    stated = {
        name: readings[name] for name, found in files.types.items() if readings.get(name, found) != found
    }
    for name, reading_name in list(stated.items()):
        reading = csv_readings.reading_named(reading_name)
        misfit = _first_misfit(files, name, reading) if reading is not None else None
        if reading is None or misfit is None:
            continue
        found = files.types[name]
        if reading.is_plain and (csv_readings.is_plain(found) or csv_readings.are_alike(found, reading_name)):
            del stated[name]
            continue
        raise SourceError(
            f"column {name} has the value {misfit}, which is not {reading.words or reading.type}, as the training "
            "rows are",
            hint="correct the value, leave out its row, or train the model again",
        )
    return msgspec.structs.replace(files, types={**files.types, **stated})


def _first_misfit(files: FileSet, name: str, reading: Reading) -> str | None:
    """Return the first value of a column that the reading does not fit, with its place."""
    for file in files.files:
        texts = CSVTexts(file, same_dialect(file.path, files.options))
        for piece, first in enumerate(file.starts[:-1]):
            values = texts.load(piece, [name]).column(0)
            if (bad := csv_readings.first_misfit(reading, values)) is not None:
                return f"{values[bad].as_py()!r} in row {first + bad + 1:,} of {file.path}"
    return None


def open_pieces(files: FileSet, file: FileIndex) -> CSVPieces:
    """Return the pieces of a file. Raises SourceError if its columns are other ones now."""
    texts = CSVTexts(file, same_dialect(file.path, files.options))
    if (
        not set(files.types).issubset(texts.names)
        or len(texts.names) - len(files.types) > texts.may_lack_last
    ):
        raise changed_file_error(file)
    return CSVPieces(texts, files.types)


class CSVPieces:
    """Pieces of one file. Each column has the type determined by all values of the job's files."""

    def __init__(self, texts: CSVTexts, types: Mapping[str, str]) -> None:
        self._texts = texts
        self._readings = {name: csv_readings.reading_named(kind) for name, kind in types.items()}
        # Arrow parses numbers much faster than it casts texts.
        self._direct = {
            name: reading.arrow
            for name, reading in self._readings.items()
            if reading is not None and reading.name in ("BIGINT", "DOUBLE")
        }
        names = [name for name in texts.names if name in types]
        self.schema = pa.schema([(name, self._type(name)) for name in names])

    def load(self, piece: int, columns: Columns) -> pa.RecordBatch:
        names = self.schema.names if columns is None else list(columns)
        read = self._texts.load(piece, names or self._texts.names[:1], self._direct).select(names)
        arrays = [
            _convert_texts(column, self._readings[name])
            for name, column in zip(names, read.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([self.schema.field(name) for name in names])
        )

    def _type(self, name: str) -> pa.DataType:
        reading = self._readings[name]
        return ARROW[TEXT] if reading is None else reading.arrow


class CSVTexts:
    """Pieces of one file as unparsed texts. `names` are its columns, in the file's order."""

    def __init__(self, file: FileIndex, dialect: CSVDialect) -> None:
        self._file = file
        self._encoding = dialect.encoding
        self.names = list(dialect.names)
        self.may_lack_last = dialect.unnamed_last
        self._read = csv.ReadOptions(column_names=self.names, use_threads=False)
        self._parse = csv.ParseOptions(
            delimiter=dialect.delim,
            quote_char=dialect.quote,
            newlines_in_values=True,
            ignore_empty_lines=len(self.names) > 1,  # with a single column, an empty line is a NULL
        )
        self._nulls = list(dialect.nulls)

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
        try:
            if self._encoding != csv_encoding.UTF8:
                data = csv_encoding.decode(data, self._encoding).encode()
            self._read.block_size = len(data) + 1
            table = self._parse_piece(data, names, direct or {})
        except (pa.ArrowException, UnicodeError) as error:
            if direct:  # `+1`, or `""` for NULL
                return self.load(piece, names)
            raise self._damage_error(str(error), piece) from None
        row, behind = self._file.starts[piece : piece + 2]
        if table.num_rows != behind - row:
            raise self._damage_error(f"{behind - row} rows are expected, and {table.num_rows} found", piece)
        [batch] = table.combine_chunks().to_batches()
        return batch

    def _parse_piece(self, data: bytes, names: Sequence[str], direct: Mapping[str, pa.DataType]) -> pa.Table:
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

    def _damage_error(self, report: str, piece: int) -> SourceError:
        """Translate Arrow's report; it counts rows from the beginning of the piece."""
        path, before = self._file.path, self._file.starts[piece]
        if match := _FIELDS.search(report):
            row, expected, present = map(int, match.groups())
            message = (
                f"row {before + row:,} of {path}: {expected} fields are expected, but there are {present}"
            )
            return SourceError(message, hint="check its quotes")
        words = report.splitlines()[0].removeprefix("CSV parse error: ")
        hint = f"name its encoding: ?encoding={csv_encoding.WESTERN}" if "UTF" in report else None
        return SourceError(f"{path}, after row {before:,}: {words}", hint=hint)


def _index(path: str, dialect: CSVDialect) -> FileIndex:
    with watch_file(path) as stamp, Path(path).open("rb") as file:
        one_column = len(dialect.names) == 1
        start = csv_dialect.start_of_table(file.read(BLOCK_BYTES).decode("latin-1"), dialect.skip)
        file.seek(start)
        scanner = LineScanner(path, dialect.delim.encode(), dialect.quote.encode(), one_column, start)
        pieces = _Cutter(header=dialect.header)
        checksum = 0
        while block := file.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
            pieces.add(scanner.rows(block))
        pieces.add(scanner.end())
    starts, offsets = pieces.cut(stamp.size)
    return FileIndex(path, *stamp, starts=starts, offsets=offsets, checksum=checksum)


def _check(path: str, dialect: CSVDialect) -> None:
    """Raise SourceError if the file is of a form that only the SQL source reads."""
    if dialect.compression:  # of a name that does not tell it
        raise SourceError(
            f"{path} is compressed as a whole, so ranges of its rows cannot be read", hint="decompress it"
        )
    if not (dialect.encoding == csv_encoding.UTF8 or csv_encoding.is_single_byte(dialect.encoding)):
        raise SourceError(
            f"ranges of rows cannot be read in the encoding {dialect.encoding}", hint="convert it to UTF-8"
        )
    if dialect.escape != dialect.quote:
        raise SourceError(
            "ranges of rows cannot be read with an escape character in front of quotes",
            hint="double the quotes inside of quotes instead, as RFC 4180 says",
        )
    if dialect.repairs:
        raise SourceError(
            f"ranges of rows cannot be read of {path}, which is read {', '.join(dialect.notes)}",
            hint="quote fields as RFC 4180 says: without blanks beside them, with quotes doubled inside of them",
        )
    for option, value in (("delim", dialect.delim), ("quote", dialect.quote)):
        if not value.isascii():
            raise SourceError(f"the option {option} must be an ASCII character, not {value!r}")


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
        """Return the index among these rows where the next piece begins."""
        if not self._offsets:
            return 0
        by_bytes = int(np.searchsorted(begins, self._offsets[-1] + PIECE_BYTES))
        at_least = self._starts[-1] + 1 - self._rows
        return max(at_least, min(by_bytes, self._starts[-1] + PIECE_ROWS - self._rows))

    def cut(self, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return first rows and offsets of all pieces of a file of `size` bytes, with the total behind them."""
        return (*self._starts, self._rows), (*self._offsets, size)


def _convert_texts(column: pa.Array, reading: Reading | None) -> pa.Array:
    """Convert texts to a type that all of them have. Surrounding blanks are ignored; an empty text is NULL."""
    if reading is None or column.type == reading.arrow:
        return column
    trimmed = pc.utf8_trim(column, " ")
    return reading.convert(pc.if_else(pc.equal(trimmed, ""), None, trimmed))
