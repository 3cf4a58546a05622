"""Checkpoints in an object store, such as s3://bucket/folder or gs://bucket/folder, by fsspec.

Objects are written atomically, and read back. A checkpoint is complete when its last one exists.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from edl.checkpoints import Facts, GoneError
from edl.checkpoints.integrity import checksum, checksum_of
from edl.checkpoints.local_copies import Copies
from edl.errors import JobError


class ObjectStore(Copies):
    """Store of this job's checkpoints at `url`."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(folder)
        self._url = url
        self._system, self._root = open_file_system(url)

    def names(self, having: str = "") -> list[str]:
        return [name for name in self._list_files(self._root) if not having or having in self._files(name)]

    def facts(self, name: str) -> Facts:
        with self._errors(f"describe {name}"):
            self._system.invalidate_cache()
            objects = self._system.ls(f"{self._root}/{name}", detail=True)
            times = [self._system.modified(entry["name"]).timestamp() for entry in objects]
            return Facts(sum(entry["size"] or 0 for entry in objects), max(times, default=None))

    def remove(self, name: str) -> None:
        files = [file for file in self._files(name) if not file.endswith(".safetensors")]
        with contextlib.suppress(GoneError), self._errors(f"remove {name}"):
            for file in files:  # what completes it first: half of a removed checkpoint is none
                self._system.rm_file(f"{self._root}/{name}/{file}")
            self._system.rm(f"{self._root}/{name}", recursive=True)

    def clear(self) -> None:
        with contextlib.suppress(GoneError), self._errors("remove the job's checkpoints"):
            self._system.rm(self._root, recursive=True)

    def _send(self, name: str, path: Path) -> None:
        with self._errors(f"take {name}/{path.name}"):
            self._system.makedirs(f"{self._root}/{name}", exist_ok=True)
            self._system.put_file(str(path), f"{self._root}/{name}/{path.name}")
            with self._system.open(f"{self._root}/{name}/{path.name}", "rb") as object_:
                crc = checksum_of(object_)
        if crc != checksum(path):
            raise JobError(f"{self._url} gives back {name}/{path.name} differently from how it was sent")

    def _receive(self, name: str, file: str, path: Path) -> None:
        with self._errors(f"give {name}/{file}"):
            self._system.get_file(f"{self._root}/{name}/{file}", str(path))

    def _files(self, name: str) -> Sequence[str]:
        return self._list_files(f"{self._root}/{name}")

    def _list_files(self, folder: str) -> list[str]:
        with contextlib.suppress(GoneError), self._errors("list its files"):
            self._system.invalidate_cache()
            paths = self._system.ls(folder, detail=False)
            return sorted(PurePosixPath(path).name for path in paths)
        return []

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Convert any exception of a store's library to GoneError or JobError. `what` is the attempted operation."""
        try:
            yield
        except FileNotFoundError:
            raise GoneError(f"the checkpoint is gone: {self._url} cannot {what}") from None
        except Exception as error:
            raise JobError(f"{self._url} cannot {what}: {error}") from error


def open_file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a folder or URL, and the path in it. Raises JobError if it cannot be opened."""
    try:
        from fsspec.core import url_to_fs

        files, root = url_to_fs(url)
    except ImportError as error:  # fsspec, or the package for this kind of store
        raise JobError(
            f"checkpoints cannot be stored in {url}: {error}",
            hint="the image needs fsspec, and the package that it names for this kind of store",
        ) from None
    except ValueError as error:
        raise JobError(f"checkpoints cannot be stored in {url}: {error}") from None
    return files, root.rstrip("/")
