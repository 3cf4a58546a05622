"""URLs of data sources: parsing, and display without secrets.

    duckdb:///iris.duckdb        a file, relative to the working directory      duckdb:iris.duckdb, iris.duckdb
    duckdb:////data/iris.duckdb  a file by its absolute path                    duckdb:/data/iris.duckdb
    duckdb:                      a database in memory                           duckdb://:memory:
    sqlite:///iris.sqlite        the same forms for SQLite                      sqlite:iris.sqlite, iris.sqlite
    csv:///iris.csv?delim=%3B    files, with options after a question mark      csv:iris.csv, iris.csv, iris.csv?delim=;
    excel:///sales.xlsx?sheet=May  a sheet of a spreadsheet                      sales.xlsx, sales.xlsx?sheet=May
    parquet:///flights/*.parquet several files as one table                     flights/*.parquet
    delta:///lake/sales?version=3  a table of Delta Lake, also delta:s3://lake/sales
    iceberg:///lake/orders?snapshot=3  a table of Iceberg, also iceberg:shop.orders?catalog=prod
    s3://lake/flights            Parquet files in an object store (s3, gs, abfs) or behind http and https
    mysql://user@host:3306/shop  a database of a server, see `edl.data.server_url`
    postgresql://user@host/shop  the same; also postgres://
    clickhouse://user@host:8123/shop  a database of a warehouse, see `edl.extensions.warehouses`
    maxcompute://id@host/api?curr_project=shop  a project of MaxCompute, see `edl.sources.maxcompute.client`
    shop                         a connection of the user's connections file

Percent escapes are decoded in the forms with `//`; the short forms are taken literally, except for the options of
files.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode

from edl.data.server_url import (
    ALIASES,
    PROMPT,
    NoPasswordError,
    ServerURL,
    named_connection,
    near_connection,
    parse_server,
)
from edl.errors import SourceError, nearest
from edl.extension_loader import load

if TYPE_CHECKING:
    import sqlite3

    import duckdb

    from edl.data.source import Source

    Connection: TypeAlias = duckdb.DuckDBPyConnection | sqlite3.Connection  # of a caller

OBJECT_STORES = ("s3", "gs", "abfs")
REMOTE = (*OBJECT_STORES, "http", "https")  # files in object stores and behind HTTP
# scheme -> class of its source, imported on first use
SOURCES = {
    "duckdb": ("edl.sources.duckdb.source", "DuckDBSource"),
    "sqlite": ("edl.sources.sqlite.source", "SQLiteSource"),
    "csv": ("edl.sources.files", "CSVSource"),
    "parquet": ("edl.sources.files", "ParquetSource"),
    "json": ("edl.sources.files", "JSONSource"),
    "excel": ("edl.sources.files", "ExcelSource"),
    "delta": ("edl.extensions.lakes.delta", "DeltaSource"),
    "iceberg": ("edl.extensions.lakes.iceberg", "IcebergSource"),
    **dict.fromkeys(REMOTE, ("edl.sources.remote_files", "RemoteSource")),
    "mysql": ("edl.sources.mysql.source", "MySQLSource"),
    "postgresql": ("edl.sources.postgresql.source", "PostgreSQLSource"),
    "maxcompute": ("edl.sources.maxcompute.source", "MaxComputeSource"),
    "clickhouse": ("edl.extensions.warehouses.clickhouse", "ClickHouseSource"),
    "hive": ("edl.extensions.warehouses.hive", "HiveSource"),
    "redshift": ("edl.extensions.warehouses.redshift", "RedshiftSource"),
    "snowflake": ("edl.extensions.warehouses.snowflake", "SnowflakeSource"),
    "bigquery": ("edl.extensions.warehouses.bigquery", "BigQuerySource"),
    "trino": ("edl.extensions.warehouses.trino", "TrinoSource"),
}
PLANNED = ("recordio",)
_OTHER_DATABASES = (
    "oracle",
    "mssql",
    "sqlserver",
    "db2",
    "access",
    "teradata",
    "mongodb",
    "mongo",
    "sap",
    "odbc",
    "jdbc",
)
# schemes of databases on servers -> default port
SERVERS: dict[str, int | None] = {
    "mysql": 3306,
    "postgresql": 5432,
    "maxcompute": None,
    "clickhouse": 8123,
    "hive": 10000,
    "redshift": 5439,
    "snowflake": None,
    "bigquery": None,
    "trino": 8080,
}
# scheme -> module of the reader of rows pinned in the source
ROWS = {
    "mysql": "edl.sources.mysql.pinning",
    "postgresql": "edl.sources.postgresql.pinning",
    "maxcompute": "edl.sources.maxcompute.download",
}
FILES = ("csv", "parquet", "recordio")  # read directly by model-zoo jobs, by row range
LAKES = ("delta", "iceberg")  # a folder or a URL of an object store follows the scheme
TABLE_FILES = ("csv", "parquet", "json", "excel")  # data sources
DATABASES = ("duckdb", "sqlite")  # embedded; can be created, in a file or in memory

# suffix of a path without a scheme -> scheme
SUFFIXES = {
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".db": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".tsv.zst": "csv",
    ".parquet": "parquet",
    **{
        f"{ending}{packed}": "json"
        for ending in (".json", ".jsonl", ".ndjson")
        for packed in ("", ".gz", ".zst")
    },
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
}
MEMORY = ":memory:"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SECRET_OPTION = re.compile(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
_SCHEME_ALONE = re.compile(r"[\w+.-]+")
_ACCOUNT = re.compile(r":[^@]*@")  # what follows the name in an account, up to its end


@dataclass(frozen=True, slots=True)
class SourceURL:
    """Parsed URL. `location` follows the scheme: a path, a pattern of paths, or `:memory:`."""

    scheme: str
    location: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def in_memory(self) -> bool:
        return self.location == MEMORY

    def __str__(self) -> str:
        if self.scheme in REMOTE:
            return self.location
        shown = f"?{urlencode(self.options)}" if self.options else ""
        if "://" in self.location:
            return f"{self.scheme}:{self.location}{shown}"
        return f"{self.scheme}:///{quote(self.location, safe='/:~*')}{shown}"


def parse(url: str) -> SourceURL | ServerURL:
    """Parse a URL or the name of a connection.

    Raises SourceError for an unknown or missing scheme, or a URL without a location.
    """
    match = _SCHEME.match(url)
    if not match:
        if connection := named_connection(url):
            return parse(connection)
        return _parse_path(url)
    scheme = ALIASES.get(match[1].lower(), match[1].lower())
    if scheme not in SOURCES:
        raise _unknown_error(scheme)
    if scheme in SERVERS:
        return parse_server(url, SERVERS[scheme])
    if scheme in REMOTE:
        return _remote(scheme, url)
    rest = url[match.end() :]
    rest, options = (rest, ()) if scheme in DATABASES else _split_options(rest)
    location = _location(url, rest)
    if location == MEMORY and scheme not in DATABASES:
        raise SourceError(
            f"{redacted(url)} names no file", hint=f"write it as {scheme}:///path/to/file.{scheme}"
        )
    if scheme in LAKES and (store := location.partition("://")[0]) != location:
        if store not in OBJECT_STORES:
            raise SourceError(
                f"{store}:// is not a known object store", hint=f"known: {', '.join(OBJECT_STORES)}"
            )
        location = _remote(store, location).location
    return SourceURL(scheme, location, options)


def _parse_path(path: str) -> SourceURL:
    """Return the URL of a path, with options of files behind it unless a file has that very name."""
    without, options = _split_options(path)
    if (
        options
        and not Path(path).expanduser().exists()
        and (scheme := _scheme_by_suffix(without)) in TABLE_FILES
    ):
        return SourceURL(scheme, without, options)
    return SourceURL(_scheme_of_path(path), path)


def _remote(scheme: str, url: str) -> SourceURL:
    """Return the URL of remote files, which is its own location. Raises SourceError for one that may hold a secret."""
    account, _, path = url.partition("://")[2].partition("/")
    if "?" in url or "#" in url or "@" in account.partition(":")[2] or ("@" in account and scheme != "abfs"):
        raise SourceError(
            f"{redacted(url).partition('?')[0]} has a password or options, which would be stored with each model",
            hint="the library of the store takes them from the environment",
        )
    if not account or not path:
        raise SourceError(f"{url} names no file", hint=f"write it as {scheme}://bucket/folder/*.parquet")
    return SourceURL(scheme, f"{scheme}://{account}/{path}")


def absolute(url: str, folder: Path) -> str:
    """Return the URL of a data source with an absolute path, if its path is one of the folder."""
    parsed = parse(url)
    if not isinstance(parsed, SourceURL) or parsed.in_memory or "://" in parsed.location:
        return url
    location = os.path.abspath(folder / Path(parsed.location).expanduser())  # noqa: PTH100 - a pattern, and links stay
    return str(replace(parsed, location=location))


def parse_files(text: str) -> SourceURL:
    """Parse a path or URL of files that are read directly. The scheme is empty if none is written.

    Raises SourceError for a scheme that is not one of files.
    """
    match = _SCHEME.match(text)
    if not match:
        without, options = _split_options(text)
        if options and not Path(text).expanduser().exists():
            return SourceURL("", without, options)
        return SourceURL("", text)
    scheme = match[1].lower()
    if scheme not in FILES:
        near = nearest(scheme, FILES)
        schemes = f"known schemes of files: {', '.join(FILES)}"
        hint = f"did you mean {near}? {schemes}" if near else schemes
        raise SourceError(f"{scheme} is not a scheme of files: {redacted(text)}", hint=hint)
    rest, options = _split_options(text[match.end() :])
    location = _location(text, rest)
    if location == MEMORY:
        raise SourceError(f"{text} names no file", hint=f"write it as {scheme}:///path/to/file")
    return SourceURL(scheme, location, options)


def redacted(url: str) -> str:
    """Return the URL without password and other secrets: safe to display, log and store.

    Never fails; it removes rather too much if the URL's password has unescaped characters.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME_ALONE.fullmatch(scheme):  # a path, or a URL with a slip
        return _ACCOUNT.sub("@", url)
    rest, question, options = rest.partition("?") if "@" not in rest.partition("?")[2] else (rest, "", "")
    is_path = rest.startswith("/") and scheme.lower() in (*FILES, *TABLE_FILES, *DATABASES, *LAKES)
    if not is_path and "@" in rest:
        account, _, host = rest.rpartition("@")
        rest = f"{account.partition(':')[0]}@{host}"
    shown = [(key, value) for key, value in parse_qsl(options) if not _SECRET_OPTION.search(key)]
    return f"{scheme}://{rest}" + (question + urlencode(shown) if shown else "")


def connect(url: str, *, create: bool = False) -> Source:
    """Open a connection to the data source that `url` names.

    `create` makes a database file that does not exist. Without it a missing file is a SourceError, because a typing
    error in the path would otherwise become an empty database and an unknown table.
    """
    parsed = parse(url)
    try:
        return _open_source(parsed, create=create)
    except NoPasswordError:
        prompt = PROMPT.get()
        if prompt is None or not isinstance(parsed, ServerURL) or not (password := prompt(parsed)):
            raise
        parsed.keep(password)
    return _open_source(parsed, create=create)


def _open_source(parsed: SourceURL | ServerURL, *, create: bool) -> Source:
    module, name = SOURCES[parsed.scheme]
    source: Source = load(module, name).connect(parsed, create=create)
    return source


def open_beside(connection: object) -> Source:
    """Open a source over the database of a caller's connection of DuckDB or SQLite.

    The source has a connection of its own, and the caller's settings and transactions stay as they are. It sees
    committed data, and no temporary tables. Raises SourceError for a connection of another kind, or to a SQLite
    database in memory.
    """
    handle = connection
    if not _scheme_of(handle) and hasattr(handle, "cursor"):
        handle = handle.cursor()  # of a wrapper, such as dbt's, round DuckDB: its cursors are connections
    scheme = _scheme_of(handle)
    if not scheme:
        kind = f"{type(connection).__module__}.{type(connection).__name__}"
        raise SourceError(
            f"a {kind} is not a connection of DuckDB or SQLite",
            hint="write the URL of the data source: mysql://…",
        )
    module, name = SOURCES[scheme]
    source: Source = load(module, name).open_beside(handle)
    return source


def _scheme_of(connection: object) -> str:
    """Return the scheme of a connection of DuckDB or SQLite; empty for another object."""
    package = type(connection).__module__.partition(".")[0]
    if type(connection).__name__ not in ("DuckDBPyConnection", "Connection"):
        return ""
    return {"duckdb": "duckdb", "_duckdb": "duckdb", "sqlite3": "sqlite"}.get(package, "")


def database_file(url: SourceURL, *, create: bool) -> Path | str:
    """Return the path of an embedded database, or `:memory:`.

    Raises SourceError if it is missing and `create` is false.
    """
    if url.in_memory:
        return MEMORY
    path = Path(url.location).expanduser()
    if path.is_dir():
        raise SourceError(
            f"{path} is a folder, not a database file", hint=f"name a file: {url.scheme}:///{path}/my.db"
        )
    if not create and not path.is_file():
        raise SourceError(f"there is no database file {path}", hint=_hint_for_missing(url, path))
    return path


def _hint_for_missing(url: SourceURL, path: Path) -> str:
    from_root = Path("/") / path
    if not path.is_absolute() and not path.parent.is_dir() and from_root.parent.is_dir():
        return f"with three slashes a path begins in this folder; write {url.scheme}:///{from_root}"
    names = (
        [sibling.name for sibling in path.parent.iterdir() if sibling.is_file()]
        if path.parent.is_dir()
        else []
    )
    names = [name for name in names if SUFFIXES.get(Path(name).suffix) == url.scheme]
    if near := nearest(path.name, names):
        return f"did you mean {path.parent / near}?"
    return "check the path; --create, or create=True in Python, makes a new database"


def names_file(path: str) -> bool:
    """Return True for a path with the suffix of a file of rows, such as .csv or .parquet."""
    return _scheme_by_suffix(path) not in (None, *DATABASES) and Path(path).is_file()


def _scheme_by_suffix(path: str) -> str | None:
    return next((scheme for suffix, scheme in SUFFIXES.items() if path.lower().endswith(suffix)), None)


def _scheme_of_path(path: str) -> str:
    if scheme := _scheme_by_suffix(path):
        return scheme
    shown, hint = redacted(path) or "(empty)", "write it as duckdb:///path/to/file.duckdb"
    without, options = _split_options(path)
    if Path(without).is_file():
        hint = f"if it is text, write {shlex.quote(str(SourceURL('csv', without, options)))}"
    raise SourceError(f"{shown} is not the URL of a data source", hint=near_connection(path) or hint)


def _unknown_error(scheme: str) -> SourceError:
    if scheme in PLANNED:
        return SourceError(
            f"data sources of the scheme {scheme} are not supported yet", hint=f"known: {', '.join(SOURCES)}"
        )
    if scheme in _OTHER_DATABASES:
        hint = "export the rows to a CSV or Parquet file, and give that: --source rows.parquet"
        return SourceError(f"{scheme} is not a scheme of data sources", hint=hint)
    near = nearest(scheme, SOURCES)
    schemes = f"known schemes: {', '.join(SOURCES)}; not supported yet: {', '.join(PLANNED)}"
    return SourceError(
        f"{scheme} is not a scheme of data sources",
        hint=f"did you mean {near}? {schemes}" if near else schemes,
    )


def _split_options(rest: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Split off the options.

    A pattern may have `?` for one character, so only text of the form `name=…` is an option.
    """
    path, question, options = rest.rpartition("?")
    if question and re.match(r"\w+=", options):
        return path, tuple(parse_qsl(options, keep_blank_values=True))
    return rest, ()


def _location(url: str, rest: str) -> str:
    """Return the location, from `rest` after the scheme and colon."""
    if not rest.startswith("//"):
        return rest or MEMORY
    host, _, path = rest[2:].partition("/")
    if host not in ("", MEMORY) or (host and path):
        scheme = url.partition(":")[0].lower()
        raise SourceError(
            f"{redacted(url)} names a host, {host.rpartition('@')[2]}, but files have none",
            hint=f"{scheme}:///file is relative to the working directory, {scheme}:////data/file absolute",
        )
    return unquote(path) or MEMORY
