"""Master's end of `master_client`: files of checkpoints that arrive in pieces and are read again.

Calls may be repeated, by the same or another sender. A file is published when it is complete, and has the checksum that
was sent when it is read back from the disk. Names come over the wire, so only those are accepted that cannot lead out
of the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from edl.checkpoints import GoneError
from edl.checkpoints.integrity import checksum, read_back
from edl.errors import JobError, SpecError
from edl.files import sync

PIECE = 1 << 20  # bytes of a call
RESERVE = 64 << 20  # bytes of the disk that stay free
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_PARTIAL = ".partial"


class Sent(NamedTuple):
    """File that is being sent."""

    name: str
    file: str
    size: int
    crc: int


class FilePiece(NamedTuple):
    """Piece of a stored file. `size` and `crc` describe the whole file."""

    data: bytes
    size: int
    crc: int


class Keeper:
    """Store in `folder`, limited to `most` bytes, or by its disk if that is 0. Thread-safe.

    `arrived` gets name, file and path of a file before it is acknowledged, and may raise JobError to refuse it.
    """

    def __init__(
        self, folder: Path, most: int = 0, arrived: Callable[[str, str, Path], None] = lambda *_: None
    ) -> None:
        self._folder = folder
        self._most = most
        self._arrived = arrived
        self._lock = threading.Lock()
        self._arriving: dict[tuple[str, str], tuple[Sent, int]] = {}  # with the checksum so far
        self._sums: dict[tuple[str, str], int] = {}

    def keep(self, sent: Sent, start: int, data: bytes) -> int:
        """Store a piece and return the number of bytes of the file that are present. A piece from elsewhere is ignored.

        Raises JobError if there is no room, or the file arrived damaged.
        """
        path = self._path(sent.name, sent.file)
        key = sent.name, sent.file
        with self._lock:
            if self._sums.get(key) == sent.crc and _size(path) == sent.size:
                return sent.size
            partial = path.with_name(path.name + _PARTIAL)
            arriving, crc = self._arriving.get(key, (None, 0))
            if arriving != sent or not partial.exists():
                self._begin(partial, sent)
                crc = 0
            upto = partial.stat().st_size
            if start != upto:
                return upto
            crc = zlib.crc32(data, crc)
            self._arriving[key] = sent, crc
            with partial.open("ab") as file:
                file.write(data)
            upto += len(data)
            if upto >= sent.size:
                self._end(partial, path, sent, upto)
            return upto

    def read(self, name: str, file: str, start: int) -> FilePiece:
        """Return a piece of a file. Raises GoneError if the file does not exist."""
        path = self._path(name, file)
        try:
            with path.open("rb") as opened:
                crc = self._sums.get((name, file))
                if crc is None:
                    crc = self._sums[name, file] = checksum(path)
                opened.seek(start)
                size = os.fstat(opened.fileno()).st_size  # a concurrent `remove` may delete the name
                return FilePiece(opened.read(PIECE), size, crc)
        except FileNotFoundError:
            raise GoneError(f"the checkpoint {name} is gone") from None

    def files(self) -> dict[str, list[str]]:
        """Return the complete files of each checkpoint."""
        with self._lock:  # else a folder might vanish while it is listed
            if not self._folder.is_dir():
                return {}
            return {
                folder.name: sorted(path.name for path in folder.iterdir() if path.suffix != _PARTIAL)
                for folder in sorted(self._folder.iterdir())
                if folder.is_dir()
            }

    def remove(self, name: str) -> None:
        folder = self._path(name, "any").parent
        with self._lock:
            for table in (self._arriving, self._sums):
                for key in [key for key in table if key[0] == name]:
                    del table[key]
            shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, partial: Path, sent: Sent) -> None:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        room = shutil.disk_usage(self._folder).free - RESERVE
        if self._most:
            room = min(room, self._most - sum(map(_size, self._folder.glob("*/*"))))
        if sent.size > room:
            raise JobError(
                f"the master has no room for the checkpoint {sent.name}: {sent.file} has {sent.size:,} bytes, "
                f"and {max(room, 0):,} are left",
                hint="kubernetes.master_disk gives it more, kubernetes.volume or kubernetes.checkpoints another place; "
                "training goes on, and resumes from an earlier checkpoint, if there is one",
            )
        partial.touch()
        self._arriving[sent.name, sent.file] = sent, 0

    def _end(self, partial: Path, path: Path, sent: Sent, upto: int) -> None:
        _, crc = self._arriving.pop((sent.name, sent.file))
        if upto != sent.size or crc != sent.crc or read_back(partial) != sent.crc:
            partial.unlink()
            raise JobError(f"{sent.file} of the checkpoint {sent.name} arrived damaged")
        self._arrived(sent.name, sent.file, partial)
        partial.replace(path)
        sync(path.parent)
        self._sums[sent.name, sent.file] = crc

    def _path(self, name: str, file: str) -> Path:
        """Return the path of a file. Raises SpecError if a name is not permitted."""
        if not (_NAME.fullmatch(name) and _NAME.fullmatch(file)) or file.endswith(_PARTIAL):
            raise SpecError(f"{name!r}, {file!r} is not a file of a checkpoint")
        return self._folder / name / file


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
