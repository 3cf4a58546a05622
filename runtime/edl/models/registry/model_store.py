"""Registry of models for a server, which opens it only while it reads.

An embedded database can be open in one process alone, so a server must not keep it open. A registry in a file is worth
reading again when the file has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edl.data import connect
from edl.data.url import SourceURL, database_file, parse
from edl.models.registry.base import Registry
from edl.models.registry.factory import open_registry

_FILES = ("", ".wal", "-wal")  # a database and its logs

Fingerprint = tuple[tuple[int, int], ...]


class ModelStore:
    """Registry of a data source or a model store, opened anew for each use."""

    def __init__(self, source: str, model_store: str = "") -> None:
        self._source = source
        self._model_store = model_store

    @contextmanager
    def open(self) -> Iterator[Registry]:
        """Open the registry. Raises SourceError if it cannot be reached, or another process has it open."""
        if self._model_store:
            from edl.models.registry.object_store import open_store

            yield open_store(self._model_store)
            return
        with connect(self._source) as source:
            yield open_registry(source)

    def fingerprint(self) -> Fingerprint | None:
        """Return what changes when the file of the source does, or None if only the registry can tell."""
        url = parse(self._source) if not self._model_store else None
        if not isinstance(url, SourceURL) or url.scheme not in ("duckdb", "sqlite"):
            return None
        path = database_file(url, create=False)
        files = [Path(f"{path}{suffix}") for suffix in _FILES]
        return tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.is_file())

    def check(self) -> None:
        """Raise SourceError if the URL is wrong or a file is missing, before anybody asks for a model."""
        if not self._model_store:
            url = parse(self._source)
            if isinstance(url, SourceURL) and url.scheme in ("duckdb", "sqlite"):
                database_file(url, create=False)
