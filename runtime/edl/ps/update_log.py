"""Update log of a server: the pushes since a checkpoint, on disk before they are acknowledged.

    <checkpoints>/updates/server-0/000001-000002/000004_000001-000003.log

Each process that serves the index has a folder, named by generation and epoch. Its segments are numbered; each has the
pushes that follow the checkpoint in its name, the first one those before any. A record is the CRC-32 and the length of
its payload, both uint32 and little-endian, and the payload: a `Push` as it came (`edl.ps.wire`).

A replacement renames the folders of its predecessors before it reads them. A process that was given up but still runs
finds its segment missing after it has written a push, and does not acknowledge it (fencing). What it writes later is in
no log: the file that it has open was replaced by a copy, so that each later replacement reads the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from edl.errors import JobError, SpecError
from edl.files import sync
from edl.logs import log
from edl.ps import wire
from edl.ps.messages import NotReadyError, Push

UPDATES = "updates"  # folder beside the checkpoints
# Suffixes of a renamed folder, and of one with a copy as its last segment besides.
_CLOSING, _CLOSED = (".closing", ".closed")
_SUFFIX = ".log"
_HEAD = struct.Struct("<II")


class UpdateLog:
    """Log of the process that serves an index in a generation and epoch. Thread-safe.

    `synced`: records survive a crash of the machine, not only of the process. After a failed write all later ones are
    refused: a record behind an incomplete one would not be found.
    """

    def __init__(self, folder: Path, generation: int, epoch: int, *, synced: bool) -> None:
        self._folder = folder / _name(generation, epoch)
        self._synced = synced
        self._writing, self._syncing = threading.Lock(), threading.Lock()
        self._failed = ""
        self._file, self._number = -1, 0
        self.size = self._durable = 0  # bytes of the segment, and those that are on disk
        # Only here: one that is closed must not come back.
        with _translate_os_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            for parent in (
                self._folder.parents[:4] if synced else ()
            ):  # up to the name of the folder of checkpoints
                sync(parent)
        self.begin("")

    def begin(self, checkpoint: str) -> None:
        """Begin the segment that follows a checkpoint. Raises JobError if that fails; then the present one goes on."""
        path = self._folder / f"{self._number:06d}_{checkpoint}{_SUFFIX}"
        with _translate_os_errors(path):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            if self._synced:
                sync(self._folder)
        self.close()
        with self._writing, self._syncing:
            self._path, self._file, self._number = path, file, self._number + 1
            self.size = self._durable = 0

    def append(self, push: Push, arrays: Sequence[wire.Array]) -> None:
        """Write a push; concurrent ones share a flush of the file.

        Raises JobError if it cannot be written, for example to a full disk, and NotReadyError if another process has
        taken the place of this one.
        """
        payload = wire.encode(push, arrays)
        with self._writing, self._usable():
            _write(self._file, _HEAD.pack(zlib.crc32(payload), len(payload)))
            _write(self._file, payload)
            self.size = end = self.size + _HEAD.size + len(payload)
        if self._synced:
            with self._syncing, self._usable():
                if self._durable < end:
                    durable = self.size
                    os.fdatasync(self._file)
                    self._durable = durable
        if not self._path.exists():
            raise NotReadyError("another process has the place of this server")

    def close(self) -> None:
        with self._writing, self._syncing:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        """Refuse to write after a failure, and remember one."""
        if self._failed:
            raise JobError(self._failed)
        if self._file < 0:
            raise NotReadyError("the server is closed")
        try:
            yield
        except OSError as error:
            self._failed = _describe(self._path, error)
            raise JobError(self._failed) from None


def take_over(folder: Path, generation: int, epoch: int) -> None:
    """Close the logs of earlier processes of the generation, and remove the logs of earlier generations.

    Raises JobError if that fails, for example because the disk is full.
    """
    with _translate_os_errors(folder):
        for process_folder in _processes(folder):
            if process_folder.name < _name(generation, epoch) and not process_folder.name.endswith(_CLOSED):
                process_folder = _close(process_folder)
            if process_folder.name < _name(generation, 0):
                shutil.rmtree(process_folder)


def _close(process: Path) -> Path:
    """Close the log of a process that may still run; an earlier replacement may have begun to. Return its folder."""
    if process.suffix != _CLOSING:
        process = process.rename(f"{process}{_CLOSING}")
    last = max(process.glob(f"*{_SUFFIX}"), default=None)
    if last is not None:
        copy = last.with_suffix(".copy")
        shutil.copy(last, copy)
        sync(copy)
        copy.replace(last)
    return process.rename(process.with_suffix(_CLOSED))


def replay(folder: Path, generation: int, since: str) -> Iterator[tuple[Push, list[wire.Array]]]:
    """Yield the pushes of the generation since a checkpoint of it, or all of them if `since` is empty.

    The end of a segment that is not a whole record was never acknowledged, and is skipped. Raises SpecError if the
    segment of the checkpoint is missing, or a log cannot be read.
    """
    segments = _segments(folder, generation)
    if since:
        first = [number for number, path in enumerate(segments) if _follows(path, since)]
        if not first:
            raise SpecError(f"the updates since the checkpoint {since} are missing in {folder}")
        segments = segments[first[0] :]
    for path in segments:
        yield from _records(path)


def trim(folder: Path, generation: int, checkpoint: str) -> None:
    """Remove the segments that only earlier checkpoints need."""
    segments = _segments(folder, generation)
    if any(_follows(path, checkpoint) for path in segments):
        while not _follows(segments[0], checkpoint):
            path = segments.pop(0)
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it has others
                path.parent.rmdir()


def _records(path: Path) -> Iterator[tuple[Push, list[wire.Array]]]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while (start := file.tell()) < size:
                head = file.read(_HEAD.size)
                crc, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, size)
                payload = file.read(length) if length <= size - file.tell() else b""
                if not payload or zlib.crc32(payload) != crc:
                    log(
                        f"{path}: the last {size - start:,} bytes are an incomplete update, which nobody was told of"
                    )
                    return
                yield wire.decode(payload, Push)
    except OSError as error:
        raise SpecError(f"the updates in {path} cannot be read: {error}") from None


def _segments(folder: Path, generation: int) -> list[Path]:
    """Return the segments of the generation in their order."""
    processes = [path for path in _processes(folder) if path.name.startswith(_name(generation, 0)[:7])]
    return [path for process in processes for path in sorted(process.glob(f"*{_SUFFIX}"))]


def _follows(segment: Path, checkpoint: str) -> bool:
    return segment.stem.partition("_")[2] == checkpoint


def _processes(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _name(generation: int, epoch: int) -> str:
    return f"{generation:06d}-{epoch:06d}"


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


@contextlib.contextmanager
def _translate_os_errors(path: Path) -> Iterator[None]:
    """Raise JobError in place of OSError."""
    try:
        yield
    except OSError as error:
        raise JobError(_describe(path, error)) from None


def _describe(path: Path, error: OSError) -> str:
    return f"the update log {path} cannot be written: {error.strerror or error}"
