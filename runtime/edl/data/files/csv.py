"""CSV files as a query of DuckDB, exactly: RFC 4180, one reading for all values of a column, or text.

`csv_dialect` finds how the text is divided into fields, and `csv_readings` how the fields of a column are read, from
all its values in one pass over the files. DuckDB then reads the files with these settings, and detects nothing itself.
An empty field is NULL; `""` is an empty text, but NULL in a column that is not text.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from edl.data.files import csv_copies, csv_encoding, csv_readings
from edl.data.files.csv_dialect import CSVDialect, find_dialect, settings, shown_options, with_options
from edl.data.files.csv_index import LineScanner
from edl.data.files.csv_readings import TEXT, CSVColumn, Reading
from edl.data.names import quote_part
from edl.data.url import SourceURL
from edl.errors import SourceError, did_you_mean

_BATCH_CELLS = 4 << 20  # of the pass over all values
_MOST_BATCH_ROWS = 1 << 16
_LINE_SIZES = (2_000_000, 64 << 20, 1 << 30)  # DuckDB's largest line, and more where a line is longer
# part of DuckDB's report -> message and hint
_DAMAGES = (
    (
        r"Expected Number of Columns: (\d+) Found: (\d+)",
        "{0} fields are expected, but there are {1}",
        "check its quotes, and the separators",
    ),
    (
        r"unterminated quote",
        "a quote is not closed, or text follows one",
        "write a quote inside quotes twice",
    ),
    (r"Invalid unicode", "its text is not UTF-8", ""),
    (r"invalid state", "the lines end in different ways", "end all lines with a line feed"),
)


@dataclass(frozen=True, slots=True)
class CSVFiles:
    """Files with their dialects, and what the values of all of them tell of each column.

    `copies`: file -> its copy in UTF-8, where DuckDB reads that instead.
    """

    paths: tuple[str, ...]
    dialects: tuple[CSVDialect, ...]
    columns: Mapping[str, CSVColumn]
    copies: Mapping[str, str]
    parallel: bool = True
    line_size: int = _LINE_SIZES[0]

    @property
    def names(self) -> list[str]:
        """Names of the columns, in the order of the first file, without an empty last one that has no name."""
        return column_names(self.dialects[0], self.columns)

    @property
    def readings(self) -> dict[str, str]:
        """Names of the readings of the columns."""
        return {name: reading.name if reading else TEXT for name, reading in self._readings().items()}

    def _readings(self) -> dict[str, Reading | None]:
        return {name: self.columns[name].reading for name in self.names}

    def select(self, stated: Mapping[str, str] | None = None) -> str:
        """Return SQL of all rows. `stated`: readings of some columns instead of those that were found."""
        readings = self._readings()
        for name, reading in (stated or {}).items():
            readings[name] = csv_readings.reading_named(reading)
        columns = (self._type_expression(name, reading) for name, reading in readings.items())
        types = {
            name: reading.type
            for name, reading in readings.items()
            if reading is not None and self._is_direct(name, reading)
        }
        return f"SELECT {', '.join(columns)} FROM ({self.texts(types)})"

    def texts(self, types: Mapping[str, str]) -> str:
        """Return SQL of all rows as texts, but for the columns with `types`, which DuckDB's parser converts."""
        groups: dict[tuple[CSVDialect, bool], list[str]] = {}
        for path, dialect in zip(self.paths, self.dialects, strict=True):
            groups.setdefault((dialect, path in self.copies), []).append(path)
        parts = (
            f"SELECT * FROM {self._read(paths, own_dialect, types)}"
            for (own_dialect, _), paths in groups.items()
        )
        return " UNION ALL BY NAME ".join(parts)

    def _type_expression(self, name: str, reading: Reading | None) -> str:
        """Return SQL of a column, without an expression that occurs twice: DuckDB compares all pairs to find those."""
        column = quote_part(name)
        if reading is None or self._is_direct(name, reading):
            return column
        facts, value = self.columns[name], column
        if not facts.is_trimmed:
            value = f"trim({value})"
        if not facts.is_full:
            value = f"nullif({value}, '')"
        return f"{reading.sql(value)} AS {column}"

    def _is_direct(self, name: str, reading: Reading) -> bool:
        """Return True if DuckDB's parser converts all values of the column as they are."""
        facts = self.columns[name]
        if reading.steps or reading.has_na or reading.type == "TIMESTAMPTZ":
            return False
        return facts.is_trimmed and facts.is_full

    def _read(self, paths: Sequence[str], dialect: CSVDialect, types: Mapping[str, str]) -> str:
        """Return SQL of a call of read_csv that detects nothing."""
        is_copied = paths[0] in self.copies
        files = (text(self.copies.get(path, path)) for path in paths)
        columns = (f"{text(name)}: '{types.get(name, TEXT)}'" for name in dialect.names)
        arguments = {
            "auto_detect": "false",
            "columns": "{" + ", ".join(columns) + "}",
            "header": "true" if dialect.header else "false",
            "delim": text(dialect.delim),
            "quote": text(dialect.quote),
            "escape": text(dialect.escape),
            "nullstr": f"[{', '.join(map(text, dialect.nulls))}]",
            "compression": text("none" if is_copied else dialect.compression or "none"),
            "allow_quoted_nulls": "false",
            "skip": "0" if is_copied else str(dialect.skip),
            "comment": "''",
            "null_padding": "false",
            "max_line_size": str(self.line_size),
            "parallel": "true" if self.parallel else "false",
        }
        listed = ", ".join(f"{key} = {value}" for key, value in arguments.items())
        return f"read_csv([{', '.join(files)}], {listed})"

    def notes(self) -> list[str]:
        """Return the lines of `describe_files`."""
        return describe_files(self.paths, self.dialects, self.columns)


def describe_files(
    paths: Sequence[str], dialects: Sequence[CSVDialect], columns: Mapping[str, CSVColumn]
) -> list[str]:
    """Return a line for each file, or for all that are alike, on what is not plain, with options that state it."""
    files: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    names = column_names(dialects[0], columns)
    of_columns, options = csv_readings.describe(columns, names)
    for path, dialect in zip(paths, dialects, strict=True):
        parts = list(dialect.notes)
        if dialect.unnamed_last:
            last = dialect.names[-1]
            named = f"with the name {last} for the last column"
            parts.append(named if last in names else "without the last column, which is empty")
        if words := "; ".join(filter(None, (", ".join(parts), of_columns))):
            files.setdefault((words, (*dialect.stated, *options)), []).append(Path(path).name)
    return [
        f"{alike[0]}{f' and {len(alike) - 1:,} more' if len(alike) > 1 else ''} is read {words}"
        + (f" (as {shown_options(stated)} states)" if stated else "")
        for (words, stated), alike in files.items()
    ]


def open_files(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[str], url: SourceURL, folder: Path
) -> CSVFiles:
    """Find the dialects of the files and, in one pass over all their values, the readings of their columns.

    `folder` receives the copies in UTF-8 of files that DuckDB does not read. Raises SourceError if a file is damaged,
    or a part of its dialect is neither stated nor found.
    """
    options = settings(url.options)
    dialects = tuple(find_dialect(path, options, url) for path in paths)
    check_same(paths, [dialect.names for dialect in dialects])
    copies: dict[str, str] = {}
    for path, dialect in zip(paths, dialects, strict=True):
        if dialect.is_copied:
            copies[path] = _copy_file(path, dialect, folder)
    return observe_files(connection, CSVFiles(tuple(paths), dialects, {}, copies), options, url, folder)


def _copy_file(path: str, dialect: CSVDialect, folder: Path) -> str:
    """Write a copy that DuckDB reads, and return its path."""
    descriptor, copy = tempfile.mkstemp(".csv", dir=folder)
    os.close(descriptor)
    repairs, encoding = dialect.repairs, dialect.encoding
    csv_copies.copy_as_utf8(path, encoding, dialect.skip, Path(copy), dialect.delim, dialect.quote, repairs)
    return copy


def observe_files(
    connection: duckdb.DuckDBPyConnection,
    files: CSVFiles,
    options: Mapping[str, str],
    url: SourceURL,
    folder: Path | None = None,
) -> CSVFiles:
    """Return the files with what all their values tell of the columns.

    options: the options of the URL. `folder` receives copies of files with several kinds of line ends; None: those are
    an error. Raises SourceError if a file is damaged.
    """
    names = files.dialects[0].names
    readings = csv_readings.candidates(options, files.dialects[0].delim)
    texts = _text_columns(options, names)
    while True:
        try:
            batches = _batches(connection, files.texts({}), len(names))
            columns = csv_readings.observe_columns(names, readings, batches)
            return replace(files, columns=columns | {name: CSVColumn([]) for name in texts})
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            files = _next_attempt(files, error, url, folder)


def _text_columns(options: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns that the option `text` keeps as text. Raises SourceError for a name that no column has."""
    columns = [name.strip() for name in options["text"].split(",")] if "text" in options else []
    for name in columns:
        if name not in names:
            raise SourceError(
                f"the option text names the unknown column {name}", hint=did_you_mean(name, names)
            )
    return columns


def find_misfits(
    connection: duckdb.DuckDBPyConnection, files: CSVFiles, readings: Mapping[str, str]
) -> dict[str, SourceError]:
    """Return an error for each column that has a value which the reading of that name does not fit."""
    expected = {name: csv_readings.reading_named(reading) for name, reading in readings.items()}
    expected = {name: reading for name, reading in expected.items() if reading is not None}
    if not expected:
        return {}
    query = f"SELECT {', '.join(map(quote_part, expected))} FROM ({files.texts({})})"
    misfits: dict[str, SourceError] = {}
    first = 1
    for batch in _batches(connection, query, len(expected)):
        for name, reading in expected.items():
            if name in misfits or reading is None:
                continue
            if (bad := csv_readings.first_misfit(reading, batch[name])) is not None:
                where = f"row {first + bad:,} of {files.paths[0] if len(files.paths) == 1 else 'the files'}"
                shown = reading.words or reading.type
                misfits[name] = SourceError(
                    f"column {name} has the value {batch[name][bad].as_py()!r} in {where}, which is not {shown}"
                )
        first += batch.num_rows
    return misfits


def _batches(connection: duckdb.DuckDBPyConnection, query: str, columns: int) -> Iterator[pa.RecordBatch]:
    rows = max(2048, min(_MOST_BATCH_ROWS, _BATCH_CELLS // columns))
    yield from connection.sql(query).to_arrow_reader(rows)


def _next_attempt(files: CSVFiles, error: Exception, url: SourceURL, folder: Path | None) -> CSVFiles:
    """Return the files with other settings of DuckDB's parser. Raises SourceError if the error is of the files."""
    is_unified = all(dialect.repairs.line_ends for dialect in files.dialects)
    if folder and not is_unified and any(map(_has_two_line_ends, files.paths, files.dialects)):
        return _unify_line_ends(files, folder)
    if "Maximum line size" in str(error) and files.line_size < _LINE_SIZES[-1]:
        return replace(files, line_size=next(size for size in _LINE_SIZES if size > files.line_size))
    if files.parallel and all(map(_is_sound, files.paths, files.dialects)):
        # A parallel scan may start inside a long quoted field and mistake it for rows.
        return replace(files, parallel=False)
    raise _shorten_duckdb_error(files, error, url) from None


def _has_two_line_ends(path: str, dialect: CSVDialect) -> bool:
    """Return True if some line feeds have a carriage return before them, and others have none."""
    feeds, pairs, last = 0, 0, ""
    with contextlib.suppress(csv_encoding.EncodingError):  # which is the error, then
        for block in csv_encoding.decode_blocks(path, dialect.encoding):
            feeds += block.count("\n")
            pairs += block.count("\r\n") + (last == "\r" and block[:1] == "\n")
            last = block[-1:] or last
            if 0 < pairs < feeds:
                return True
    return False


def _unify_line_ends(files: CSVFiles, folder: Path) -> CSVFiles:
    """Return the files as copies in which all lines end with a line feed."""
    dialects = tuple(
        replace(dialect, repairs=replace(dialect.repairs, line_ends=True)) for dialect in files.dialects
    )
    copies = {
        path: _copy_file(path, dialect, folder) for path, dialect in zip(files.paths, dialects, strict=True)
    }
    return replace(files, dialects=dialects, copies=copies)


def _is_sound(path: str, dialect: CSVDialect) -> bool:
    """Return True if every quote encloses a whole field and is closed.

    DuckDB's single-threaded parser does not check this.
    """
    marks, repairs = dialect.delim + dialect.quote, dialect.repairs
    if dialect.escape != dialect.quote or not marks.isascii():
        return False
    scanner = LineScanner(path, dialect.delim.encode(), dialect.quote.encode(), empty_lines=False)
    try:
        blocks = csv_encoding.decode_blocks(path, dialect.encoding)
        for block in repairs.apply(blocks, dialect.delim, dialect.quote):
            scanner.rows(block.encode())
        scanner.end()
    except SourceError:
        return False
    return True


def column_names(dialect: CSVDialect, columns: Mapping[str, CSVColumn]) -> list[str]:
    """Return the names of the columns of a file, without the last one if it has neither name nor values."""
    if dialect.unnamed_last:
        last = columns[dialect.names[-1]]
        if not last.number and last.is_full:
            return list(dialect.names[:-1])
    return list(dialect.names)


def text(value: str) -> str:
    """Return a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def check_same(files: Sequence[str], headers: Sequence[Sequence[str]]) -> None:
    """Raise SourceError unless all files have the same columns, in any order."""
    for file, header in zip(files, headers, strict=True):
        if sorted(header) != sorted(headers[0]):
            raise SourceError(
                f"{file} has the columns {', '.join(header)}, {files[0]} has {', '.join(headers[0])}",
                hint="name files with the same columns only",
            )


def _shorten_duckdb_error(files: CSVFiles, error: Exception, url: SourceURL) -> SourceError:
    """Shorten DuckDB's page-long report to one sentence."""
    report = str(error)
    file = re.search(r"^ *file = (.*)$", report, re.MULTILINE)
    line = re.search(r"on Line: (\d+)", report)
    path = file[1] if file else ""
    lines = int(line[1]) if line else 0
    for original, copy in files.copies.items():
        if path == copy:
            path, lines = original, lines + files.dialects[files.paths.index(original)].skip
    for pattern, words, hint in _DAMAGES:
        if match := re.search(pattern, report):
            where = f"line {lines} of {path}: " if lines and path else f"{path or files.paths[0]}: "
            if not hint:
                hint = f"write {with_options(url, ('encoding', csv_encoding.WESTERN))} if it is of Western Europe"
            return SourceError(where + words.format(*match.groups()), hint=hint)
    return SourceError(f"{path}: {report.splitlines()[0]}" if path else report.splitlines()[0])
