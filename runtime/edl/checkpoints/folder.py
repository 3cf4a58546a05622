"""Checkpoints in a folder that all instances see: written files are published."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from edl.checkpoints import DAMAGED, Facts, GoneError


class SharedFolder:
    """Store in a folder. `volume` is True if the folder is outside of the job's."""

    shared = True

    def __init__(self, folder: Path, *, volume: bool = False) -> None:
        self.folder = folder
        self._volume = volume

    def publish(self, name: str, *files: str) -> None:
        """Do nothing: the files are in the shared folder already."""

    def fetch(self, name: str, *files: str) -> Path:
        checkpoint = self.folder / name
        if not checkpoint.is_dir():
            raise GoneError(f"the checkpoint {checkpoint} is gone")
        return checkpoint

    def names(self, having: str = "") -> list[str]:
        if not self.folder.is_dir():
            return []
        folders = (path for path in self.folder.iterdir() if path.is_dir())
        return sorted(path.name for path in folders if not having or (path / having).is_file())

    def facts(self, name: str) -> Facts:
        stats = [path.stat() for path in (self.folder / name).iterdir() if path.name != DAMAGED]
        return Facts(
            sum(stat.st_size for stat in stats), max((stat.st_mtime for stat in stats), default=None)
        )

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):  # the last file first: half of a removed checkpoint is none
            for path in sorted((self.folder / name).iterdir(), key=_write_time, reverse=True):
                path.unlink()
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def clear(self) -> None:
        if self._volume:
            shutil.rmtree(self.folder, ignore_errors=True)


def _write_time(path: Path) -> int:
    return path.stat().st_mtime_ns
