"""Durable state store of a job, so that a restarted master continues where the last one stopped.

One file that is replaced as a whole. It is small, because a pool of tasks is stored as its exceptions. The writer holds
a file lock for its whole run, so there is one master at a time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from edl.errors import ClusterError, DamagedError, JobError, SpecError
from edl.files import sync

MAGIC = b"edl-state 2\n"
_VERSION = re.compile(rb"edl-state (\d+)\n")


def pack(data: bytes) -> bytes:
    """Return the content of a file with this state: its version and its checksum, then the state."""
    return MAGIC + zlib.crc32(data).to_bytes(4, "little") + data


def unpack(content: bytes, name: str) -> bytes:
    """Return the state in the content of a file. Errors call the file `name`.

    Raises DamagedError if it is not as it was written, SpecError if it was written by another version.
    """
    version = _VERSION.match(content)
    if version is not None and version[0] != MAGIC:
        version_read, version_here = version[1].decode(), MAGIC.split()[1].decode()
        raise SpecError(
            f"{name} was written by another version: it is of version {version_read}, not {version_here}"
        )
    body = content[len(MAGIC) + 4 :]
    if version is None or zlib.crc32(body) != int.from_bytes(content[len(MAGIC) :][:4], "little") or not body:
        raise DamagedError(f"{name} is damaged")
    return body


class StateStore(Protocol):
    """State store of a master. One master at a time holds it."""

    def read(self) -> bytes | None:
        """Return the last written data, or None before the first write.

        Raises DamagedError if it is not as it was written, SpecError if it was written by another version.
        """
        ...

    def write(self, data: bytes) -> None:
        """Write atomically, and return when the data survives a crash. Raises JobError if it cannot be written."""
        ...

    def close(self) -> None: ...


class FileStateStore:
    """State store in a file. Raises ClusterError if another master holds it.

    `flush` flushes what the state is of no use without, rows for example, which may take long. A thread calls it after
    the first write, and the next one waits for it: the first state of a job refers to nothing.
    """

    def __init__(self, path: Path, flush: Callable[[], None] | None = None) -> None:
        self._path = path
        self._flushing = threading.Thread(target=flush, daemon=True) if flush is not None else None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ClusterError("this job has a master already", hint="a job has one at a time") from None

    def read(self) -> bytes | None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return unpack(content, f"the state file {self._path}")

    def write(self, data: bytes) -> None:
        if self._flushing is not None and self._flushing.ident is not None:
            self._flushing.join()
        partial = self._path.with_suffix(".partial")
        try:
            with partial.open("wb") as file:
                file.write(pack(data))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
            sync(self._path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            full = "; the disk is full" if error.errno == errno.ENOSPC else f": {error.strerror}"
            raise JobError(f"the state of the job cannot be written{full}") from None
        if self._flushing is not None and self._flushing.ident is None:
            self._flushing.start()

    def set_aside(self) -> None:
        """Keep a damaged file under another name, so that the next write does not replace it."""
        self._path.replace(self._path.with_suffix(".damaged"))

    def close(self) -> None:
        os.close(self._lock)
