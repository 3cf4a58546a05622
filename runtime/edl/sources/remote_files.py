"""Parquet files in object stores and behind HTTP, read in place by DuckDB through fsspec.

DuckDB reads the ranges of a file that a query needs. Models and results are stored in a DuckDB database in the working
directory. Credentials come from where the library of the store looks for them, such as AWS_ACCESS_KEY_ID.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from edl.data.url import SourceURL, redacted
from edl.errors import SourceError
from edl.installation import install_packages
from edl.sources.files import STORE, ParquetSource, is_pattern, table_name

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs", "http": "aiohttp", "https": "aiohttp"}
WEB = ("http", "https")
_OTHERS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".json", ".orc", ".avro")


class RemoteSource(ParquetSource):
    """DuckDB database with a temporary view of remote files: of one, of a pattern, or of a folder."""

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> Self:
        """Open the source. `create` has no effect."""
        system = _filesystem(url.scheme)
        pattern = url.location.rstrip("/")
        if pattern.endswith(_OTHERS):
            raise SourceError(
                f"{url} is not a Parquet file", hint="files elsewhere are Parquet; copy others here"
            )
        if not pattern.endswith(".parquet"):
            pattern += "/**/*.parquet"
        files = _files(system, url.scheme, pattern)
        name = table_name(Path(url.location.rstrip("/")))

        def show(source: Self) -> None:
            source.connection.register_filesystem(system)
            source._show(name, source._select(files, url))

        return cls._open_beside(str(url), Path.cwd() / (name + STORE), show)

    def estimate_rows(self, query: str) -> None:
        return None  # each query reads files, which may be far away

    def release(self) -> None:
        """Keep the database open: its connection has the file system."""


def _filesystem(scheme: str) -> Any:
    """Return a file system of a scheme for DuckDB. Raises SourceError if its package is not installed."""
    try:
        import fsspec

        system = fsspec.filesystem(scheme, skip_instance_cache=True)  # with no list of an earlier connection
    except ImportError:
        package = PACKAGES[scheme]
        raise SourceError(
            f"{scheme}:// needs fsspec and {package}", hint=install_packages("fsspec", package)
        ) from None
    from edl.sources.remote_file_system import SharedFileSystem, SharedWebFiles

    return (SharedWebFiles if scheme in WEB else SharedFileSystem)(system)


def _has(system: Any, path: str) -> bool:
    """Return True if there is the file. Raises the error of its library if it cannot be asked for."""
    try:
        system.info(path)
    except FileNotFoundError as error:  # of any failure of HTTP
        if (cause := error.__cause__) is not None and getattr(cause, "status", None) != 404:
            raise cause from None
        return False
    return True


def _files(system: Any, scheme: str, pattern: str) -> list[str]:
    """Return the URLs of the files of a pattern, sorted. Raises SourceError if there are none."""
    shown = redacted(pattern)
    if scheme in WEB:
        if is_pattern(pattern):
            raise SourceError(
                f"{shown} is a pattern or a folder, and HTTP lists no files", hint="name one file"
            )
        names = [pattern] if _ask_store(lambda: _has(system, pattern), shown) else []
    elif is_pattern(pattern):
        names = [f"{scheme}://{name.lstrip('/')}" for name in _ask_store(lambda: system.glob(pattern), shown)]
    else:
        names = [pattern] if _ask_store(lambda: _has(system, pattern), shown) else []
    if not names:
        raise SourceError(
            f"there is no file {shown}", hint="check the path, and the rights of the credentials"
        )
    return sorted(names)


def _ask_store(ask: Any, shown: str) -> Any:
    """Return the answer of the store. Raises SourceError for an error of its library, which may be of any class."""
    try:
        return ask()
    except Exception as error:
        raise SourceError(
            f"{shown} cannot be read: {type(error).__name__}: {str(error)[:200]}",
            hint="the library of the store takes credentials and endpoints from the environment",
        ) from None
