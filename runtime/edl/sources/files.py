"""Files as a data source: CSV, Parquet, JSON and spreadsheets, read by DuckDB.

A query sees the file, or all files of a pattern, as a table of its name, `iris` for iris.csv, and as `rows`; also as
'iris.csv', and by its path, which DuckDB would read by rules of its own. Models
and results are stored in a DuckDB database beside it, `iris.sqlflow.duckdb`, which is removed if it stays empty. The
files themselves are never written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Self, TypeVar

import duckdb

from edl.data.files import csv, sheets
from edl.data.files.csv_dialect import OPTIONS
from edl.data.names import quote_part
from edl.data.url import SourceURL
from edl.errors import SourceError, did_you_mean
from edl.sources.duckdb.engine import open_database
from edl.sources.duckdb.errors import opening_error, raise_interrupt, while_reading
from edl.sources.duckdb.source import DuckDBSource, open_file

STORE = ".sqlflow.duckdb"
ROWS = "rows"

Opened = TypeVar("Opened", bound="FileSource")

_WILD = re.compile(r"[*?\[]")
_ENDINGS = re.compile(
    r"(\.csv|\.tsv|\.parquet|\.txt|\.json|\.jsonl|\.ndjson|\.xlsx|\.xlsm|\.xlsb|\.xls|\.ods)?(\.gz|\.zst)?$",
    re.IGNORECASE,
)


class FileSource(DuckDBSource):
    """DuckDB database with a temporary view of the files."""

    known_options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, connection: duckdb.DuckDBPyConnection, url: str, store: Path, is_new: bool) -> None:
        super().__init__(connection, url, store)
        self._store = store
        self._made = is_new
        self._paths: tuple[str, ...] = ()  # names of the views besides the table's view
        self._query = ""  # of the views; empty if they read what another connection does not have
        self.kept_in = os.path.relpath(store)

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> Self:
        """Open the source. `create` has no effect: files are not created, and the database beside them always is."""
        pattern = os.path.abspath(Path(url.location).expanduser())  # noqa: PTH100 - a pattern, and links stay
        cls._options(url)
        name, store = _name_and_store(pattern)
        files = _files(pattern)
        place = replace(url, location=pattern)
        paths = (Path(pattern).name, url.location, pattern)

        def show(source: Self) -> None:
            source._paths = paths
            source._show(name, source._select(files, place))

        return cls._open_beside(str(url), store, show)

    @classmethod
    def _open_beside(cls, url: str, store: Path, show: Callable[[Self], None]) -> Self:
        """Open the database `store`, and create the views by `show`."""
        is_new = not store.exists()
        try:
            source = cls(open_database(store), url, store, is_new)
        except duckdb.Error as error:
            raise opening_error(error, str(store)) from None
        except KeyboardInterrupt:
            if is_new:
                store.unlink(missing_ok=True)
            raise
        try:
            _show_views(source, show)
        except BaseException as error:
            source.close()
            if isinstance(error, duckdb.Error):
                raise while_reading(error) from None
            raise
        return source

    def release(self) -> None:
        if self._query:
            super().release()

    def _close_connection(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Remove the database if it is empty, before it is closed: afterwards another process may have it open."""
        if self._is_unused(connection):
            self._store.unlink(missing_ok=True)
        super()._close_connection(connection)

    def _is_unused(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Return True if this source made the database, nothing is stored in it, and no other source has it open."""
        uses = (
            "SELECT 1 FROM duckdb_tables() WHERE NOT internal AND NOT temporary"
            " UNION ALL SELECT 1 FROM duckdb_connection_count() WHERE count > 1"
        )
        with suppress(duckdb.Error):
            return self._made and not connection.execute(uses).fetchall()
        return False

    def _open_again(self) -> duckdb.DuckDBPyConnection:
        self._made = self._made or not self._store.exists()
        connection = open_file(self._store)
        self._create_views(connection)
        return connection

    def _is_shown(self) -> str:
        """Return the condition under which SHOW TABLES has a name: the table of the files stands there once."""
        names = [name for name in (ROWS, *self._paths) if name != self._name]
        return f"{super()._is_shown()} AND name NOT IN ({', '.join(map(csv.text, names))})"

    def tables(self) -> list[str]:
        hidden = set(map(quote_part, self._paths)) - ({quote_part(self._name)} if self._paths else set())
        return [table for table in super().tables() if table not in hidden]

    def _show(self, name: str, query: str) -> None:
        """Create the views."""
        self._name, self._query = name, query
        self._create_views(self.connection)

    def _create_views(self, connection: duckdb.DuckDBPyConnection) -> None:
        for view in dict.fromkeys((self._name, ROWS, *self._paths)):
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {quote_part(view)} AS {self._query}")

    def _select(self, files: list[str], url: SourceURL) -> str:
        """Return a query of all rows of the files. `url`: with the absolute path, or pattern, of them."""
        raise NotImplementedError

    @classmethod
    def _options(cls, url: SourceURL) -> dict[str, str]:
        for option, _ in url.options:
            if option not in cls.known_options:
                hint = did_you_mean(option, cls.known_options)
                raise SourceError(f"{url.scheme} files have no option {option}", hint=hint)
        return dict(url.options)


class CSVSource(FileSource):
    """Files of comma-separated values; see `edl.data.files.csv` for the types."""

    known_options: ClassVar[tuple[str, ...]] = OPTIONS

    def __init__(self, connection: duckdb.DuckDBPyConnection, url: str, store: Path, is_new: bool) -> None:
        super().__init__(connection, url, store, is_new)
        self._copies = TemporaryDirectory(prefix="sqlflow-edl-", ignore_cleanup_errors=True)
        self._opened: csv.CSVFiles | None = None
        self._stated: Mapping[str, str] = {}

    def close(self) -> None:
        super().close()
        self._copies.cleanup()

    @property
    def notes(self) -> list[str]:
        """Lines on how the files are read, where that is not plain."""
        return self._files.notes()

    @property
    def readings(self) -> dict[str, str]:
        """Names of the readings of the columns, as they were found or stated."""
        return {**self._files.readings, **self._stated}

    def misfits(self, readings: Mapping[str, str]) -> dict[str, SourceError]:
        """Return an error for each column that has a value which its reading does not fit, from one pass."""
        self._end_result()
        try:
            return csv.find_misfits(self.connection, self._files, readings)
        except RuntimeError as error:
            raise_interrupt(error)
            raise

    def read_as(self, readings: Mapping[str, str]) -> None:
        """Read these columns so from now on, and the others as they were found."""
        present = self._files.readings
        stated = {name: reading for name, reading in readings.items() if present[name] != reading}
        if stated != self._stated:
            self._end_result()
            self._show(self._name, self._files.select(stated))
            self._stated = stated

    @property
    def _files(self) -> csv.CSVFiles:
        if self._opened is None:
            raise RuntimeError("the files are not opened")
        return self._opened

    def _select(self, files: list[str], url: SourceURL) -> str:
        self._opened = csv.open_files(self.connection, files, url, Path(self._copies.name))
        return self._opened.select()


class ExcelSource(CSVSource):
    """Sheets of spreadsheet files; see `edl.data.files.sheets`."""

    known_options = sheets.OPTIONS

    def _select(self, files: list[str], url: SourceURL) -> str:
        self._opened = sheets.open_sheets(self.connection, files, url, Path(self._copies.name))
        return self._opened.select()


class ParquetSource(FileSource):
    """Parquet files. The files of a pattern may order their columns differently."""

    def _select(self, files: list[str], url: SourceURL) -> str:
        listed = ", ".join(csv.text(file) for file in files)
        return f"SELECT * FROM read_parquet([{listed}], union_by_name = {len(files) > 1})"


class JSONSource(FileSource):
    """Files of JSON: an array of objects, or an object in each line.

    JSON has no dates. DuckDB would guess which number of 01-02-2024 is the day, so only one form of each is read.
    """

    def _select(self, files: list[str], url: SourceURL) -> str:
        listed = ", ".join(csv.text(file) for file in files)
        form = "dateformat = '%Y-%m-%d', timestampformat = '%Y-%m-%dT%H:%M:%S'"
        every = f"sample_size = -1, union_by_name = {len(files) > 1}"  # all values decide the types
        return f"SELECT * FROM read_json([{listed}], {form}, {every})"


def _show_views(source: Opened, show: Callable[[Opened], None]) -> None:
    """Create the views of a source by `show`; a signal is the exception of its handler."""
    try:
        show(source)
    except RuntimeError as error:
        raise_interrupt(error)
        raise


def _files(pattern: str) -> list[str]:
    """Return the files of a pattern, sorted. Raises SourceError if there are none."""
    if Path(pattern).is_file():
        return [pattern]
    rows = duckdb.execute("SELECT file FROM glob(?) ORDER BY file", (pattern,)).fetchall()
    if not rows:
        folder = Path(pattern).parent
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        near = did_you_mean(Path(pattern).name, names, list_up_to=0)
        raise SourceError(f"there is no file {pattern}", hint=near or "check the path")
    return [file for (file,) in rows]


def _name_and_store(pattern: str) -> tuple[str, Path]:
    """Return the files' table name and the path of their database.

    The table is named after the file without its suffix, a pattern by the text before its first wildcard, or else by
    the folder.
    """
    path = Path(pattern)
    folder = path.parent
    while not path.is_file() and is_pattern(str(folder)):
        folder = folder.parent
    name = table_name(path)
    return name, folder / (name + STORE)


def store_of(pattern: str) -> Path:
    """Return the path of the database beside the files of a path or pattern, with their models and results."""
    return _name_and_store(os.path.abspath(Path(pattern).expanduser()))[1]  # noqa: PTH100 - a pattern, and links stay


def is_pattern(path: str) -> bool:
    return _WILD.search(path) is not None


def table_name(path: Path) -> str:
    """Return the name of the table of a file or pattern: see `_name_and_store`."""
    name = _ENDINGS.sub("", path.name)
    if not path.is_file() and (wild := _WILD.search(name)):
        name = name[: wild.start()].rstrip("-_. ")
    folder = path.parent
    while not path.is_file() and is_pattern(str(folder)):
        folder = folder.parent
    return name or folder.name or "files"
