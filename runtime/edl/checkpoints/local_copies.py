"""Base of stores other than a folder: each instance has its own folder, to send from and to fetch into."""

from __future__ import annotations

import contextlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from edl.checkpoints import GoneError


class Copies(ABC):
    """Store with local copies. `folder` belongs to this instance; files are removed after sending and before the next
    fetch.
    """

    shared = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fetched = ""

    def publish(self, name: str, *files: str) -> None:
        folder = self.folder / name
        for file in files:
            self._send(name, folder / file)
            (folder / file).unlink()
        with contextlib.suppress(OSError):  # it holds other files
            folder.rmdir()

    def fetch(self, name: str, *files: str) -> Path:
        if self._fetched not in ("", name):
            shutil.rmtree(self.folder / self._fetched, ignore_errors=True)
        self._fetched = name
        folder = self.folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        missing_files = files or self._files(name)
        if not missing_files:
            raise GoneError(f"the checkpoint {name} is gone")
        for file in missing_files:
            partial = folder / f"{file}.partial"
            self._receive(name, file, partial)
            partial.replace(folder / file)
        return folder

    @abstractmethod
    def _send(self, name: str, path: Path) -> None:
        """Send a file, so that others find it."""

    @abstractmethod
    def _receive(self, name: str, file: str, path: Path) -> None:
        """Write a sent file to `path`. Raises GoneError if it does not exist any more."""

    @abstractmethod
    def _files(self, name: str) -> Sequence[str]:
        """Return the names of a checkpoint's files."""
