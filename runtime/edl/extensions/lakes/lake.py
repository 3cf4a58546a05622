"""Tables of a lake house as a data source: one version of a table, read in place.

A session sees the version that the URL names, or the latest when the source is opened. It is part of the URL of the
source, so a job of several processes reads that version whatever is written meanwhile. Models and results are stored
in a DuckDB database beside the table, or in the working directory if the table has no folder on this machine.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from edl.data.url import SourceURL
from edl.errors import SourceError
from edl.sources.files import ROWS, STORE, FileSource


class LakeSource(FileSource):
    """DuckDB database in which a version of the table has its name, and the name `rows`."""

    version_option: ClassVar[str]

    def estimate_rows(self, query: str) -> None:
        return None  # each query reads files, which may be far away

    @classmethod
    def connect(cls, url: SourceURL, *, create: bool = False) -> Self:
        """Open the source. `create` has no effect: tables of a lake house are not written."""
        options = cls._options(url)
        version_asked = _whole_number(cls.version_option, options.get(cls.version_option))
        location = url.location.rstrip("/")
        is_local = "://" not in location and "catalog" not in options
        place = str(Path(location).expanduser().absolute()) if is_local else location
        version, rows = cls._open(place, version_asked, options)
        if version is not None:
            options[cls.version_option] = str(version)
        folder = Path(cls._folder(place, options))

        def show(source: Self) -> None:
            for table in dict.fromkeys((folder.name, ROWS)):
                source.connection.register(table, rows)

        pinned = SourceURL(url.scheme, location, tuple(options.items()))
        home = folder.parent if is_local else Path.cwd()
        return cls._open_beside(str(pinned), home / (folder.name + STORE), show)

    @classmethod
    @abstractmethod
    def _open(cls, location: str, version: int | None, options: dict[str, str]) -> tuple[int | None, Any]:
        """Return the version of the table, and its rows as an object that DuckDB scans. Raises SourceError."""

    @classmethod
    def _folder(cls, location: str, options: dict[str, str]) -> str:
        """Return the folder of a table; of one in a catalog, its name alone."""
        return location


def _whole_number(option: str, text: str | None) -> int | None:
    if text is not None and not (text.isascii() and text.isdigit()):
        raise SourceError(f"{option} is {text!r}", hint=f"write a whole number from 0, such as {option}=3")
    return None if text is None else int(text)
