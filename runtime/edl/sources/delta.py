"""Tables of Delta Lake as a data source, read in place by DuckDB.

A session sees one version of the table: the one that the URL names, or the latest when the source is opened. It is
part of the URL of the source, so a job of several processes reads that version whatever is written meanwhile. Models
and results are stored in a DuckDB database beside the table, or in the working directory if the table is in an object
store.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from edl.data.url import OBJECT_STORES, SourceURL
from edl.errors import SourceError
from edl.sources.files import ROWS, STORE, FileSource


class DeltaSource(FileSource):
    """DuckDB database with a temporary view of a version of a Delta table."""

    known_options: ClassVar[tuple[str, ...]] = ("version",)

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> Self:
        """Open the source. `create` has no effect: tables of Delta Lake are not written."""
        version = _version(cls._options(url).get("version"))
        location = url.location.rstrip("/")
        stored = location.startswith(tuple(f"{store}://" for store in OBJECT_STORES))
        path = Path(location).expanduser()
        table, dataset = _opened(location if stored else str(path), version)
        folder = Path.cwd() if stored else path.absolute().parent
        pinned = SourceURL(url.scheme, location, (("version", str(table.version())),))

        def show(source: Self) -> None:
            for name in dict.fromkeys((path.name, ROWS)):
                source.connection.register(name, dataset)

        return cls._beside(str(pinned), folder / (path.name + STORE), show)


def _version(written: str | None) -> int | None:
    if written is not None and not (written.isascii() and written.isdigit()):
        raise SourceError(f"version is {written!r}", hint="write a whole number from 0, such as version=3")
    return None if written is None else int(written)


def _opened(location: str, version: int | None) -> tuple[Any, Any]:
    """Return a version of the table, and its rows as a dataset of Arrow. Raises SourceError."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise SourceError("delta:// needs deltalake", hint="pip install 'sqlflow-edl[delta]'") from None
    try:
        table = DeltaTable(location)
        if version is not None and version != (latest := table.version()):
            if version > latest:
                raise SourceError(
                    f"{location} has no version {version}", hint=f"the latest version is {latest}"
                )
            table.load_as_version(version)
        return table, table.to_pyarrow_dataset()
    except TableNotFoundError:
        raise SourceError(
            f"there is no Delta table at {location}", hint="name the folder that has _delta_log in it"
        ) from None
    except (
        DeltaError,
        OSError,
        ValueError,
    ) as error:  # also a feature of the table that deltalake does not read
        raise SourceError(f"{location} cannot be read: {str(error)[:200]}") from None
