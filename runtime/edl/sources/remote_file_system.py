"""fsspec file system: DuckDB can read its open files from several threads."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

from fsspec import AbstractFileSystem


class SharedFileSystem(AbstractFileSystem):  # type: ignore[misc]  # no types
    """View of `system` for DuckDB. DuckDB reads one open file from several threads."""

    cachable = False

    def __init__(self, system: Any) -> None:
        super().__init__()
        self._system = system
        self.protocol = system.protocol

    def open(self, path: str, *args: Any, **kwargs: Any) -> SharedFile:
        return SharedFile(lambda: self._system.open(path, *args, **kwargs))

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        facts: dict[str, Any] = self._system.info(path, **kwargs)
        return facts

    def size(self, path: str) -> int:
        bytes_of_file: int = self._system.size(path)
        return bytes_of_file

    def exists(self, path: str, **kwargs: Any) -> bool:
        return bool(self._system.exists(path, **kwargs))

    def isfile(self, path: str) -> bool:
        return bool(self._system.isfile(path))

    def isdir(self, path: str) -> bool:
        return bool(self._system.isdir(path))

    def glob(self, path: str, **kwargs: Any) -> list[str]:
        return list(self._system.glob(path, **kwargs))

    def modified(self, path: str) -> dt.datetime:
        time: dt.datetime = self._system.modified(path)
        return time


class SharedWebFiles(SharedFileSystem):
    """Files behind HTTP: DuckDB asks for a time, which a server need not tell, and for the files of a name, which
    fsspec would begin to read.
    """

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path]

    def modified(self, path: str) -> dt.datetime:
        return dt.datetime.fromtimestamp(0, dt.UTC)


class SharedFile:
    """Open file with a position for each thread.

    DuckDB shares one handle of a file among its threads: it sets the position by one call and reads by another, between
    which another thread may run, and the file would return another range than the one that was asked for. Each thread
    reads from a file of its own, so that threads wait for their ranges at the same time.
    """

    def __init__(self, open_file: Callable[[], Any]) -> None:
        """Open the file for the calling thread. `open_file`: opens it once more, for the others."""
        self._open_file = open_file
        # By the identifier of a thread: threading.local ends with each call of a thread that Python did not start.
        self._files = {threading.get_ident(): open_file()}

    @property
    def _file(self) -> Any:
        thread = threading.get_ident()
        if (file := self._files.get(thread)) is None:
            file = self._files[thread] = self._open_file()
        return file

    def seek(self, position: int, whence: int = 0) -> int:
        place: int = self._file.seek(position, whence)
        return place

    def tell(self) -> int:
        place: int = self._file.tell()
        return place

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        return data

    def close(self) -> None:
        for file in self._files.values():
            file.close()
