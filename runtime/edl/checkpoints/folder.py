"""Checkpoints in a folder that all instances see: written files are published."""

from __future__ import annotations

import shutil
from pathlib import Path

from edl.checkpoints import GoneError


class SharedFolder:
    """Store in a folder. `volume` is True if the folder is outside of the job's."""

    shared = True

    def __init__(self, folder: Path, *, volume: bool = False) -> None:
        self.folder = folder
        self._volume = volume

    def publish(self, name: str, *files: str) -> None:
        """Do nothing: the files are in the shared folder already."""

    def fetch(self, name: str, *files: str) -> Path:
        found = self.folder / name
        if not found.is_dir():
            raise GoneError(f"the checkpoint {found} is gone")
        return found

    def names(self, having: str = "") -> list[str]:
        if not self.folder.is_dir():
            return []
        found = (path for path in self.folder.iterdir() if path.is_dir())
        return sorted(path.name for path in found if not having or (path / having).is_file())

    def remove(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def clear(self) -> None:
        if self._volume:
            shutil.rmtree(self.folder, ignore_errors=True)
